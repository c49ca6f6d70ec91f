// AMX: tiles of 16 rows of 32 bf16 against tiles of 16 pairs by 16 outputs.
#include <cstring>

#include "table.h"

#if LINNET_X86
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,amx-tile,amx-bf16"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx512f,amx-tile,amx-bf16")
#endif

namespace linnet {
namespace amx {

struct alignas(64) Config {
    uint8_t palette = 1;
    uint8_t start_row = 0;
    uint8_t reserved[14] = {};
    uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static const Config kConfig;

// Memory that is asked for a few lines at a time, in as many steps as there are.
class Ahead {
public:
    Ahead(const Soon& soon, int64_t steps)
        : at_(static_cast<const char*>(soon.at)), end_(at_ + soon.bytes),
          a_step_(steps > 0 ? (soon.bytes / 64 + steps - 1) / steps : 0) {}

    void ask() {
        for (int64_t k = 0; k < a_step_ && at_ < end_; ++k, at_ += 64) _mm_prefetch(at_, _MM_HINT_T1);
    }

private:
    const char *at_, *end_;
    int64_t a_step_;
};

// Tiles 0..3: sums of (row block, panel) (0,0) (0,1) (1,0) (1,1); 4, 5: x; 6, 7: weights.
template <int R, int P>
static void block(const bf16* panels, int64_t panel_stride, const bf16* x, int64_t x_stride,
                  int64_t k, float* y, int64_t y_stride, bool accumulate, Ahead& ahead) {
    const auto ys = static_cast<size_t>(y_stride) * 4;
    float* y1 = y + 16 * y_stride;
    if (accumulate) {
        _tile_loadd(0, y, ys);
        if (P > 1) _tile_loadd(1, y + 16, ys);
        if (R > 1) _tile_loadd(2, y1, ys);
        if (R > 1 && P > 1) _tile_loadd(3, y1 + 16, ys);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    for (int64_t i = 0; i < k; i += 32) {
        ahead.ask();
        _tile_loadd(6, panels + i * 16, 64);
        _tile_loadd(4, x + i * 16, 64);
        _tile_dpbf16ps(0, 4, 6);
        if (P > 1) {
            _tile_loadd(7, panels + panel_stride + i * 16, 64);
            _tile_dpbf16ps(1, 4, 7);
        }
        if (R > 1) {
            _tile_loadd(5, x + 16 * x_stride + i * 16, 64);
            _tile_dpbf16ps(2, 5, 6);
            if (P > 1) _tile_dpbf16ps(3, 5, 7);
        }
    }
    _tile_stored(0, y, ys);
    if (P > 1) _tile_stored(1, y + 16, ys);
    if (R > 1) _tile_stored(2, y1, ys);
    if (R > 1 && P > 1) _tile_stored(3, y1 + 16, ys);
}

template <int P>
static void all_rows(const bf16* panels, int64_t panel_stride, const bf16* x, int64_t x_stride,
                     int64_t rows, int64_t k, float* y, int64_t y_stride, bool accumulate, Ahead& ahead) {
    int64_t r = 0;
    for (; r + 16 < rows; r += 32) {
        block<2, P>(panels, panel_stride, x + r * x_stride, x_stride, k, y + r * y_stride, y_stride, accumulate, ahead);
    }
    if (r < rows) {
        block<1, P>(panels, panel_stride, x + r * x_stride, x_stride, k, y + r * y_stride, y_stride, accumulate, ahead);
    }
}

static void gemm_bf16(const bf16* panels, int64_t panel_stride, int64_t np, const bf16* x,
                      int64_t x_stride, int64_t rows, int64_t k, float* y, int64_t y_stride,
                      bool accumulate, const Soon& soon) {
    const int64_t steps = (rows + 31) / 32 * ((np + 1) / 2) * (k / 32);
    Ahead ahead(soon, steps);
    int64_t p = 0;
    for (; p + 2 <= np; p += 2) {
        all_rows<2>(panels + p * panel_stride, panel_stride, x, x_stride, rows, k, y + 16 * p, y_stride, accumulate, ahead);
    }
    if (p < np) all_rows<1>(panels + p * panel_stride, panel_stride, x, x_stride, rows, k, y + 16 * p, y_stride, accumulate, ahead);
}

static void begin_tiles() { _tile_loadconfig(&kConfig); }

static void end_tiles() { _tile_release(); }

}  // namespace amx
}  // namespace linnet

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace linnet {

void fill_amx(Table& t) {
    t.gemm_bf16 = amx::gemm_bf16;
    t.tiles = true;
    t.begin_tiles = amx::begin_tiles;
    t.end_tiles = amx::end_tiles;
}

}  // namespace linnet
#endif
