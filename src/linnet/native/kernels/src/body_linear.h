// Products with packed weights, on a namespace's F and I. Included after a simd_*.h.
#include "body_thin.h"
#include "body_gemm.h"

static void fill_linear(Table& t) {
    t.exact[0] = thin<F32>;
    t.exact[1] = thin<Bf16>;
    t.exact[2] = t.exact[3] = thin<BytesExact>;
    t.exact[4] = thin<Q4Exact>;
    t.exact[5] = thin<Q41Exact>;
    t.rounded[0] = t.rounded[1] = nullptr;
    t.rounded[2] = t.rounded[3] = thin<BytesRounded>;
    t.rounded[4] = thin<Q4Rounded>;
    t.rounded[5] = thin<Q41Rounded>;
    t.thin_rows = kThinRows;
    t.gemm_f32 = gemm_f32;
    t.gemm_bf16 = nullptr;
    t.tiles = false;
    t.begin_tiles = t.end_tiles = [] {};
    t.expand_f32 = expand_f32;
    t.expand_bf16 = expand_bf16;
    t.finish = finish;
    t.quantize = quantize;
}
