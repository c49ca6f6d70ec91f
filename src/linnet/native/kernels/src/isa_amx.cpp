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

// Inputs at a time, so that two panels of weights stay in the first cache (32 KiB) while all rows pass.
constexpr int64_t kInputs = 512;

// Tiles 0..3: sums of (row block, panel) (0,0) (0,1) (1,0) (1,1); 4, 5: x; 6, 7: weights.
template <int R, int P>
static void block(const bf16* panels, int64_t panel_stride, const bf16* x, int64_t x_stride,
                  int64_t k, float* y, int64_t y_stride, bool accumulate) {
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
                     int64_t rows, int64_t k, float* y, int64_t y_stride, bool accumulate) {
    int64_t r = 0;
    for (; r + 16 < rows; r += 32) {
        block<2, P>(panels, panel_stride, x + r * x_stride, x_stride, k, y + r * y_stride, y_stride, accumulate);
    }
    if (r < rows) {
        block<1, P>(panels, panel_stride, x + r * x_stride, x_stride, k, y + r * y_stride, y_stride, accumulate);
    }
}

template <int P>
static void all_inputs(const bf16* panels, int64_t panel_stride, const bf16* x, int64_t x_stride,
                       int64_t rows, int64_t k, float* y, int64_t y_stride, bool accumulate) {
    if (k == 0) return all_rows<P>(panels, panel_stride, x, x_stride, rows, 0, y, y_stride, accumulate);
    // Even parts: 576 inputs are done at once rather than as 512 and 64.
    const int64_t parts = (k + kInputs * 5 / 4 - 1) / (kInputs * 5 / 4);
    const int64_t step = ((k / 32 + parts - 1) / parts) * 32;
    for (int64_t i = 0; i < k; i += step) {
        const int64_t n = k - i < step ? k - i : step;
        all_rows<P>(panels + i * 16, panel_stride, x + i * 16, x_stride, rows, n, y, y_stride, accumulate || i > 0);
    }
}

static void gemm_bf16(const bf16* panels, int64_t panel_stride, int64_t np, const bf16* x,
                      int64_t x_stride, int64_t rows, int64_t k, float* y, int64_t y_stride,
                      bool accumulate) {
    const Config config;
    _tile_loadconfig(&config);
    int64_t p = 0;
    for (; p + 2 <= np; p += 2) {
        all_inputs<2>(panels + p * panel_stride, panel_stride, x, x_stride, rows, k, y + 16 * p, y_stride, accumulate);
    }
    if (p < np) all_inputs<1>(panels + p * panel_stride, panel_stride, x, x_stride, rows, k, y + 16 * p, y_stride, accumulate);
    _tile_release();
}

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
}

}  // namespace linnet
#endif
