// How packed weights lie in memory, the same for every instruction set.
//
// Outputs come in panels of 16. A panel is
//     [scales] [offsets] [data]          each part padded to 64 bytes
// and data is a sequence of 64-byte lines of 16 cells of 4 bytes, one cell an output:
//     f32       one line an input
//     bf16      one line for 2 inputs (k, k + 1)           what vdpbf16ps and AMX tiles read
//     int8, q8  one line for 4 inputs, each byte q + 128   what vpdpbusd reads
//     q4, q4_1  one line for 8 inputs: byte b holds input k + b below, k + 4 + b above
// Scales: int8 16 f32; q8, q4, q4_1 16 f16 a group, groups in order; offsets (q4_1) likewise.
// Inputs are padded with weights of zero; outputs to a full panel likewise.
#pragma once

#include "linnet/kernels.h"

namespace linnet {

constexpr int64_t kPanel = 16;
constexpr int64_t kLine = 64;
constexpr int64_t kBlock = 32;  // inputs that share one scale when x is rounded to int8

inline int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

struct Layout {
    int64_t inputs = 0;    // padded
    int64_t groups = 0;    // 0: no scale a group
    int64_t offsets = 0;   // where q4_1's offsets begin in a panel
    int64_t data = 0;      // where data begins
    int64_t bytes = 0;     // of one panel
};

inline Layout layout_of(WeightKind kind, int64_t cols, int64_t group) {
    Layout l;
    switch (kind) {
        case WeightKind::f32:
            l.inputs = cols;
            l.bytes = cols * kLine;
            return l;
        case WeightKind::bf16:
            l.inputs = round_up(cols, kBlock);
            l.bytes = l.inputs / 2 * kLine;
            return l;
        case WeightKind::int8:
            l.inputs = round_up(cols, kBlock);
            l.data = kLine;
            l.bytes = l.data + l.inputs / 4 * kLine;
            return l;
        case WeightKind::q8:
        case WeightKind::q4:
        case WeightKind::q4_1:
            break;
    }
    l.inputs = round_up(cols, group);
    l.groups = l.inputs / group;
    const int64_t scales = round_up(l.groups * 2 * kPanel, kLine);
    l.offsets = scales;
    l.data = kind == WeightKind::q4_1 ? 2 * scales : scales;
    l.bytes = l.data + l.inputs / (kind == WeightKind::q8 ? 4 : 8) * kLine;
    return l;
}

// A packed matrix as kernels see it.
struct Panels {
    const uint8_t* data = nullptr;
    WeightKind kind = WeightKind::f32;
    Layout layout;
    int64_t group = 0;
    int64_t rows = 0;

    const uint8_t* panel(int64_t p) const { return data + p * layout.bytes; }
};

inline Panels panels_of(const PackedMatrix& w) {
    return {w.data(), w.kind(), layout_of(w.kind(), w.cols(), w.group()), w.group(), w.rows()};
}

inline int64_t panel_count(int64_t rows) { return (rows + kPanel - 1) / kPanel; }

}  // namespace linnet
