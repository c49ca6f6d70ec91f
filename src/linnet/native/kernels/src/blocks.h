// Products of many rows, in blocks that stay in a core's own cache.
#pragma once

#include "activations.h"
#include "memory.h"
#include "table.h"

namespace linnet {

// silu of one half of a row of sums times the other half, into y's row.
inline void put_gated(const Table& t, const float* gate, const float* up, int64_t n, int64_t row, int64_t column,
               const Out& out) {
    const int64_t left = out.n - column, count = left < n ? left : n, at = row * out.stride + column;
    if (out.y_bf16) return t.silu_mul_fh(gate, up, count, static_cast<bf16*>(out.y) + at);
    t.silu_mul_f(gate, up, count, static_cast<float*>(out.y) + at);
}

constexpr int64_t kPair = 2;               // panels a product takes at once
constexpr int64_t kTaskCache = 256 << 10;  // of weights that a task goes through again and again

// The two ways to multiply blocks: in f32, and in bf16 with f32 sums.
struct InF32 {
    using Cell = float;
    static constexpr int64_t kRows = 192;  // rows whose sums are held before they are written
    static int64_t inputs(const Panels& w) { return w.layout.inputs; }
    static void expand(const Table& t, const Panels& w, int64_t panel, float* y) { t.expand_f32(w, panel, y); }
    static void multiply(const Table& t, const float* panels, int64_t step, int64_t np, const float* x, int64_t xs,
                         int64_t rows, int64_t k, float* y, const Soon&) {
        t.gemm_f32(panels, step, np, x, xs, rows, k, y, np * kPanel, false);
    }
};
struct InBf16 {
    using Cell = bf16;
    static constexpr int64_t kRows = 32;
    static int64_t inputs(const Panels& w) { return round_up(w.layout.inputs, kBlock); }
    static void expand(const Table& t, const Panels& w, int64_t panel, bf16* y) { t.expand_bf16(w, panel, y); }
    static void multiply(const Table& t, const bf16* panels, int64_t step, int64_t np, const bf16* x, int64_t xs,
                         int64_t rows, int64_t k, float* y, const Soon& soon) {
        t.gemm_bf16(panels, step, np, x, xs, rows, k, y, np * kPanel, false, soon);
    }
};

// Tiles in use, for as long as it lives.
struct Tiles {
    const Table& t;
    explicit Tiles(const Table& table) : t(table) { t.begin_tiles(); }
    ~Tiles() { t.end_tiles(); }
    Tiles(const Tiles&) = delete;
    Tiles& operator=(const Tiles&) = delete;
};

// A task takes panels that stay in a core's own cache, widened unless `direct`, and goes through all
// rows of x, a few at a time. `gated`: panels of both halves of the outputs at once, as for
// `linear_silu_mul`.
template <class Mode>
struct Blocks {
    using Cell = typename Mode::Cell;
    const Panels& w;
    const Cell* x;
    int64_t x_stride, rows;
    const Out& out;
    bool direct, gated;
    const Table& t = table();
    int64_t halves = gated ? 2 : 1;
    int64_t panels = panel_count(w.rows) / halves;
    int64_t k = Mode::inputs(w);
    int64_t cells = round_up(w.layout.inputs, kBlock) * kPanel;  // of a widened panel

    void run() const {
        const int64_t pairs = (panels + kPair - 1) / kPair;
        const int64_t size = halves * k * kPanel * static_cast<int64_t>(sizeof(Cell));
        int64_t tasks = (panels * size + kTaskCache - 1) / kTaskCache;
        tasks = round_up(tasks > 0 ? tasks : 1, int64_t{2} * pool().threads());
        if (tasks > pairs) tasks = pairs;
        pool().run(tasks, [&](int64_t i) { one(pairs * i / tasks * kPair, pairs * (i + 1) / tasks * kPair); });
    }

    void one(int64_t begin, int64_t end) const {
        Scratch scratch;
        if (end > panels) end = panels;
        const Cell* sources[2];
        for (int64_t h = 0; h < halves; ++h) sources[h] = source(begin + h * panels, end - begin, scratch);
        const int64_t step = direct ? w.layout.bytes / static_cast<int64_t>(sizeof(Cell)) : cells;
        Sums s;
        s.y = scratch.take<float>(halves * kHalf);
        const Tiles tiles(t);
        for (int64_t r = 0; r < rows; r += Mode::kRows) {
            const int64_t n = rows - r < Mode::kRows ? rows - r : Mode::kRows;
            for (int64_t p = begin; p < end; p += kPair) {
                s.first_row = r, s.rows = n, s.column = p * kPanel;
                const int64_t np = end - p < kPair ? end - p : kPair;
                s.width = np * kPanel;
                for (int64_t h = 0; h < halves; ++h) {
                    Mode::multiply(t, sources[h] + (p - begin) * step, step, np, x + r * x_stride, x_stride, n, k,
                                   s.y + h * kHalf, soon(p + h * panels, end - begin, np, r, n));
                }
                put(s);
            }
        }
    }

    // Rows of sums, both halves one behind the other, and where they go.
    struct Sums {
        float* y = nullptr;
        int64_t first_row = 0, rows = 0, column = 0, width = 0;
    };
    static constexpr int64_t kHalf = Mode::kRows * kPair * kPanel;

    const Cell* source(int64_t first, int64_t count, Scratch& scratch) const {
        if (direct) return reinterpret_cast<const Cell*>(w.panel(first));
        Cell* wide = scratch.take<Cell>(count * cells);
        for (int64_t p = 0; p < count; ++p) Mode::expand(t, w, first + p, wide + p * cells);
        return wide;
    }

    // While rows [r, r + n) meet panel p: their share of the panel that the next task has in its place.
    Soon soon(int64_t p, int64_t count, int64_t np, int64_t r, int64_t n) const {
        if (p + count + np > panel_count(w.rows)) return {};
        const int64_t bytes = np * w.layout.bytes;
        const int64_t from = bytes * r / rows, to = bytes * (r + n) / rows;
        return {w.panel(p + count) + from, to - from};
    }

    void put(const Sums& s) const {
        if (!gated) return t.finish(s.y, s.width, s.rows, s.column, s.width, out, s.first_row);
        for (int64_t i = 0; i < s.rows; ++i) {
            const float* row = s.y + i * s.width;
            put_gated(t, row, row + kHalf, s.width, s.first_row + i, s.column, out);
        }
    }
};

}  // namespace linnet
