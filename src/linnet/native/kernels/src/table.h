// What each instruction set provides: one table of functions, filled from the bottom up.
#pragma once

#include "layout.h"

#if defined(__x86_64__) && !defined(LINNET_PORTABLE_ONLY)
#define LINNET_X86 1
#else
#define LINNET_X86 0
#endif

#define LN_INLINE static inline __attribute__((always_inline))

namespace linnet {

// Where a product goes: y [rows, n], f32 or bf16, with an optional bias of either.
struct Out {
    void* y = nullptr;
    int64_t stride = 0;
    const void* bias = nullptr;
    int64_t n = 0;
    bool y_bf16 = false;
    bool bias_bf16 = false;
};

// x as a kernel wants it; padded inputs are zero.
struct Input {
    const float* f = nullptr;       // f32 [rows, stride]
    const bf16* h = nullptr;        // bf16 [rows, stride]
    const int8_t* q = nullptr;      // int8 [rows, stride]
    const float* scale = nullptr;   // of q: [rows, stride / 32]
    const int32_t* sum = nullptr;   // of q: the blocks' sums
    int64_t stride = 0;
    int64_t rows = 0;
};

// All rows of x against panels [begin, end).
using Thin = void (*)(const Panels& w, const Input& x, int64_t begin, int64_t end, const Out& out);

// Memory that will be read soon.
struct Soon {
    const void* at = nullptr;
    int64_t bytes = 0;
};

// y [rows, 16 np] (+)= x [rows, k] times np f32 panels of k lines, `panel_stride` floats apart.
using GemmF32 = void (*)(const float* panels, int64_t panel_stride, int64_t np, const float* x,
                         int64_t x_stride, int64_t rows, int64_t k, float* y, int64_t y_stride,
                         bool accumulate);
// The same with bf16 panels (k a multiple of 32, in lines of pairs). Where `tiles`, x is laid out as
// `tile_cell` says and begins a block of 16 rows, x_stride is a multiple of 32, and x and y have rows
// up to the next multiple of 16 (of which the last may be anything).
// `soon` is memory that is read next and is asked for on the way.
using GemmBf16 = void (*)(const bf16* panels, int64_t panel_stride, int64_t np, const bf16* x,
                          int64_t x_stride, int64_t rows, int64_t k, float* y, int64_t y_stride,
                          bool accumulate, const Soon& soon);

// Where columns [column, column + 32) of a row lie in bf16 rows of `stride`: one row after another, or
// in tiles of 16 rows by 32 columns that lie one after the other, as AMX loads them best.
inline int64_t tile_cell(bool tiles, int64_t row, int64_t column, int64_t stride) {
    if (!tiles) return row * stride + column;
    return (row - row % 16) * stride + column * 16 + row % 16 * 32;
}

constexpr int kKinds = 6;

// `columns` (at most 64) columns of one head's memory, over `tokens` tokens; see `delta_rule`.
struct DeltaColumns {
    const void *q = nullptr, *k = nullptr, *v = nullptr;  // of the first token: [keys], [keys], [columns]
    const float *decay = nullptr, *beta = nullptr;
    const float* start = nullptr;  // [keys, row], null: zeros
    float* after = nullptr;        // like start, null: not wanted
    float* out = nullptr;
    int64_t qk_token = 0, v_token = 0, gate_token = 0;  // from one token to the next; out as v
    int64_t tokens = 0, keys = 0, columns = 0, row = 0;
    float scale = 1.0f;
    float* work = nullptr;  // 66 * keys floats
};

struct Table {
    Thin exact[kKinds];    // x.f
    Thin rounded[kKinds];  // x.q (int8, q8, q4, q4_1); bf16: x.h or null
    int64_t thin_rows;     // rows one pass over a panel serves
    GemmF32 gemm_f32;
    GemmBf16 gemm_bf16;  // null: none
    bool tiles;
    // Around calls of gemm_bf16.
    void (*begin_tiles)();
    void (*end_tiles)();
    // One panel as an f32 panel (layout.inputs lines) or a bf16 panel (layout.inputs / 2 lines).
    void (*expand_f32)(const Panels& w, int64_t panel, float* y);
    void (*expand_bf16)(const Panels& w, int64_t panel, bf16* y);
    // out rows [0, rows), columns [column, column + count) from y.
    void (*finish)(const float* y, int64_t y_stride, int64_t rows, int64_t column, int64_t count,
                   const Out& out, int64_t first_row);
    // x [n] to int8 in blocks of 32 (n a multiple), their scales and sums.
    void (*quantize)(const float* x, int64_t n, int8_t* q, float* scale, int32_t* sum);

    void (*widen)(const bf16* x, int64_t n, float* y);
    void (*narrow)(const float* x, int64_t n, bf16* y);

    void (*rms_norm_f)(const float*, const float*, float, int64_t rows, int64_t n, float*);
    void (*rms_norm_h)(const bf16*, const bf16*, float, int64_t rows, int64_t n, bf16*);
    void (*layer_norm_f)(const float*, const float*, const float*, float, int64_t, int64_t, float*);
    void (*layer_norm_h)(const bf16*, const bf16*, const bf16*, float, int64_t, int64_t, bf16*);
    void (*softmax_f)(const float*, int64_t rows, int64_t n, float*);
    void (*softmax_h)(const bf16*, int64_t rows, int64_t n, bf16*);
    int64_t (*argmax_f)(const float*, int64_t n);
    int64_t (*argmax_h)(const bf16*, int64_t n);
    void (*rope_f)(const float* x, const float* cos, const float* sin, int64_t width, float* y);
    void (*rope_h)(const bf16* x, const bf16* cos, const bf16* sin, int64_t width, bf16* y);
    void (*silu_f)(const float*, int64_t, float*);
    void (*silu_h)(const bf16*, int64_t, bf16*);
    void (*silu_mul_f)(const float*, const float*, int64_t, float*);
    void (*silu_mul_h)(const bf16*, const bf16*, int64_t, bf16*);
    void (*silu_mul_fh)(const float*, const float*, int64_t, bf16*);  // rounded once
    void (*gelu_f)(const float*, int64_t, float*);
    void (*gelu_h)(const bf16*, int64_t, bf16*);
    void (*add_f)(const float*, const float*, int64_t, float*);
    void (*add_h)(const bf16*, const bf16*, int64_t, bf16*);
    void (*exp_f)(const float*, int64_t, float*);

    // Attention, few queries: scores [rows, keys] = q [rows, width] k^T with row strides (v: the values of these
    // keys, which are read next); out [rows, width] += p [rows, keys] v. q, p and out are dense f32.
    void (*scores_f)(const float* q, int64_t rows, const float* k, const float* v, int64_t kv_row, int64_t keys,
                     int64_t width, float* scores, int64_t s_row);
    void (*scores_h)(const float* q, int64_t rows, const bf16* k, const bf16* v, int64_t kv_row, int64_t keys,
                     int64_t width, float* scores, int64_t s_row);
    void (*mix_f)(const float* p, int64_t p_row, int64_t rows, const float* v, int64_t v_row,
                  int64_t keys, int64_t width, float* out);
    void (*mix_h)(const float* p, int64_t p_row, int64_t rows, const bf16* v, int64_t v_row,
                  int64_t keys, int64_t width, float* out);
    // One row of online softmax: s [n] = exp(scale * s - new peak); peak and total updated; returns
    // what earlier sums are to be multiplied with.
    float (*soften)(float* s, int64_t n, float scale, float* peak, float* total);
    // The same with the results in bf16, 32 to a cell and cells `cell_step` apart, zeros from n to `lines`
    // (a multiple of 32); n = 0: nothing changes but the zeros.
    float (*soften_h)(const float* s, int64_t n, int64_t lines, float scale, float* peak, float* total, bf16* y,
                      int64_t cell_step);
    void (*scale_row)(float* x, int64_t n, float by);
    // Keys [keys, width] as f32 panels of 16 keys (lines along width); values as panels of 16 columns
    // (lines along keys), `lines` lines each; bf16 panels likewise in pairs. Padding is zero.
    void (*pack_keys_f)(const float* k, int64_t k_row, int64_t keys, int64_t width, float* y);
    void (*pack_keys_hf)(const bf16* k, int64_t k_row, int64_t keys, int64_t width, float* y);
    void (*pack_values_f)(const float* v, int64_t v_row, int64_t keys, int64_t lines, int64_t width,
                          float* y);
    void (*pack_values_hf)(const bf16* v, int64_t v_row, int64_t keys, int64_t lines, int64_t width,
                           float* y);
    void (*pack_keys_h)(const bf16* k, int64_t k_row, int64_t keys, int64_t width, bf16* y);
    void (*pack_values_h)(const bf16* v, int64_t v_row, int64_t keys, int64_t lines, int64_t width,
                          bf16* y);

    void (*delta_f)(const DeltaColumns&);
    void (*delta_h)(const DeltaColumns&);

    uint64_t (*read)(const void* data, int64_t bytes);
};

const Table& table();

void fill_portable(Table&);
#if LINNET_X86
void fill_avx2(Table&);
void fill_avx512(Table&);
void fill_avx512_vnni(Table&);
void fill_avx512_bf16(Table&, bool amd);
void fill_amx(Table&);
#endif

}  // namespace linnet
