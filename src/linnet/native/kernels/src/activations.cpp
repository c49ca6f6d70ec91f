#include "activations.h"

#include <cstring>

namespace linnet {
namespace {

// One row into its cells, 32 columns at a time; zeros behind the inputs.
void put_row(const Table& t, const Rows& x, int64_t row, int64_t width, bool tiles, bf16* y) {
    for (int64_t c = 0; c < width; c += kBlock) {
        bf16* cell = y + tile_cell(tiles, row, c, width);
        const int64_t left = row < x.rows ? x.cols - c : 0;
        const int64_t n = left < 0 ? 0 : left < kBlock ? left : kBlock;
        if (n < kBlock) std::memset(static_cast<void*>(cell), 0, kBlock * sizeof(bf16));
        if (n == 0) continue;
        if (x.is_bf16) {
            std::memcpy(cell, x.h(row) + c, static_cast<size_t>(n) * 2);
        } else {
            t.narrow(x.f(row) + c, n, cell);
        }
    }
}

}  // namespace

const float* as_f32(const Rows& x, int64_t width, int64_t* stride, Scratch& scratch) {
    if (!x.is_bf16 && width == x.cols) {
        *stride = x.stride;
        return x.f(0);
    }
    float* y = scratch.take<float>(x.rows * width);
    *stride = width;
    const Table& t = table();
    pool().ranges(x.rows, (1 << 15) / (width + 1) + 1, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
            float* row = y + r * width;
            if (x.is_bf16) {
                t.widen(x.h(r), x.cols, row);
            } else {
                std::memcpy(row, x.f(r), static_cast<size_t>(x.cols) * 4);
            }
            for (int64_t k = x.cols; k < width; ++k) row[k] = 0.0f;
        }
    });
    return y;
}

const bf16* as_bf16(const Rows& x, int64_t width, bool tiles, int64_t* stride, Scratch& scratch) {
    if (!tiles && x.is_bf16 && width == x.cols) {
        *stride = x.stride;
        return x.h(0);
    }
    const int64_t rows = tiles ? round_up(x.rows, 16) : x.rows;
    bf16* y = scratch.take<bf16>(rows * width);
    *stride = width;
    const Table& t = table();
    pool().ranges(rows, (1 << 15) / (width + 1) + 1, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) put_row(t, x, r, width, tiles, y);
    });
    return y;
}

Input as_int8(const Rows& x, int64_t width, Scratch& scratch) {
    int64_t stride;
    const float* f = as_f32(x, width, &stride, scratch);
    const int64_t blocks = width / kBlock;
    auto* q = scratch.take<int8_t>(x.rows * width);
    auto* scale = scratch.take<float>(x.rows * blocks);
    auto* sum = scratch.take<int32_t>(x.rows * blocks);
    const Table& t = table();
    pool().ranges(x.rows, (1 << 14) / (width + 1) + 1, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
            t.quantize(f + r * stride, width, q + r * width, scale + r * blocks, sum + r * blocks);
        }
    });
    Input in;
    in.q = q;
    in.scale = scale;
    in.sum = sum;
    in.stride = width;
    in.rows = x.rows;
    return in;
}

}  // namespace linnet
