// The rows that a product takes, in the form its kernel reads.
#pragma once

#include "memory.h"
#include "table.h"

namespace linnet {

struct Rows {
    const void* x;
    int64_t stride;
    int64_t rows;
    int64_t cols;
    bool is_bf16;

    const float* f(int64_t row) const { return static_cast<const float*>(x) + row * stride; }
    const bf16* h(int64_t row) const { return static_cast<const bf16*>(x) + row * stride; }
};

// x as f32 with rows of `width`, zeros behind the inputs; as it is where that fits.
const float* as_f32(const Rows& x, int64_t width, int64_t* stride, Scratch& scratch);
// x as bf16 with rows of `width`, a multiple of 32; in tiles where asked, rows then up to a multiple
// of 16.
const bf16* as_bf16(const Rows& x, int64_t width, bool tiles, int64_t* stride, Scratch& scratch);
// x in blocks of 32 inputs rounded to int8.
Input as_int8(const Rows& x, int64_t width, Scratch& scratch);

}  // namespace linnet
