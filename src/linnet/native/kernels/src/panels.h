// One panel's contents (see layout.h): from floats, quantised where asked, and from GGUF blocks.
#pragma once

#include "layout.h"

namespace linnet {

// How weights come: numbers, or the blocks of 32 inputs that GGUF files hold.
enum class Source { f32, bf16, q8_0, q4_0, q4_1 };

bool is_blocks(Source source);
int64_t block_bytes(Source source);
// The kind that holds such blocks as they are.
WeightKind kind_of(Source blocks);

// A row of blocks as floats.
void read_blocks(Source source, const char* row, int64_t cols, float* y);

// x [16, l.inputs] as a panel of any kind but q4_1, which comes from blocks alone. Throws
// std::invalid_argument where finite weights need a scale that f16 does not hold.
void write_panel(WeightKind kind, const float* x, int64_t group, const Layout& l, uint8_t* panel);

// One block into place as group g of output i. A padded row is written from a null block.
void write_block(Source source, const char* block, int64_t i, int64_t g, const Layout& l, uint8_t* panel);

}  // namespace linnet
