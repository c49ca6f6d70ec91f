// Products with packed weights: which way, how split, and x as each way wants it.
#include <stdexcept>

#include "memory.h"
#include "table.h"

namespace linnet {
namespace {

struct Rows {
    const void* x;
    int64_t stride;
    int64_t rows;
    int64_t cols;
    bool is_bf16;

    const float* f(int64_t row) const { return static_cast<const float*>(x) + row * stride; }
    const bf16* h(int64_t row) const { return static_cast<const bf16*>(x) + row * stride; }
};

// What a task of a thin product reads at least, so that starting it costs little beside it.
constexpr int64_t kTaskBytes = 48 << 10;
// From so many rows on quantised weights are widened a panel at a time instead of a row at a time.
constexpr int64_t kWidenRounded = 24;

// x as f32 with rows of `width` (zeros behind the inputs).
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

// x as bf16 with rows of `width`, a multiple of 32; in tiles where asked, rows then up to a multiple
// of 16.
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

void run_thin(Thin kernel, const Panels& w, const Input& x, const Out& out) {
    const int64_t panels = panel_count(w.rows);
    pool().ranges(panels, kTaskBytes / (w.layout.bytes + 1) + 1, [&](int64_t begin, int64_t end) {
        kernel(w, x, begin, end, out);
    });
}

// silu of one half of a row of sums times the other half, into y's row.
void put_gated(const Table& t, const float* gate, const float* up, int64_t n, int64_t row, int64_t column,
               const Out& out) {
    const int64_t left = out.n - column, count = left < n ? left : n, at = row * out.stride + column;
    if (out.y_bf16) return t.silu_mul_fh(gate, up, count, static_cast<bf16*>(out.y) + at);
    t.silu_mul_f(gate, up, count, static_cast<float*>(out.y) + at);
}

// Both halves of each panel's outputs, then their product, while they are in the cache.
void run_thin_gated(Thin kernel, const Panels& w, const Input& x, const Out& out) {
    const Table& t = table();
    const int64_t panels = panel_count(w.rows) / 2;
    Scratch scratch;
    Out sums;
    sums.y = scratch.take<float>(x.rows * w.rows);
    sums.stride = sums.n = w.rows;
    pool().ranges(panels, kTaskBytes / (2 * w.layout.bytes + 1) + 1, [&](int64_t begin, int64_t end) {
        kernel(w, x, begin, end, sums);
        kernel(w, x, panels + begin, panels + end, sums);
        const int64_t from = begin * kPanel, n = (end - begin) * kPanel;
        for (int64_t r = 0; r < x.rows; ++r) {
            const float* row = static_cast<const float*>(sums.y) + r * w.rows + from;
            put_gated(t, row, row + w.rows / 2, n, r, from, out);
        }
    });
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

bool quantised(WeightKind kind) { return kind >= WeightKind::int8; }

void thin(Thin kernel, const Panels& w, const Input& x, const Out& out, bool gated) {
    if (gated) return run_thin_gated(kernel, w, x, out);
    run_thin(kernel, w, x, out);
}

void product(const PackedMatrix& w, const Rows& x, const Out& out, bool gated = false) {
    if (x.rows <= 0 || w.rows() <= 0) return;
    const Table& t = table();
    const Panels v = panels_of(w);
    const int kind = static_cast<int>(v.kind);
    const int64_t inputs = v.layout.inputs;
    Scratch scratch;
    const bool rounded = quantised(v.kind) && w.activations() == Activations::rounded;
    const bool dots = v.kind == WeightKind::bf16 && x.is_bf16 && t.gemm_bf16 != nullptr;
    const bool many = x.rows > (dots || quantised(v.kind) ? t.thin_rows / 2 : t.thin_rows);
    Input in;
    in.rows = x.rows;
    if (dots && !many) {
        in.h = as_bf16(x, inputs, false, &in.stride, scratch);
        thin(t.rounded[kind], v, in, out, gated);
    } else if (dots || (rounded && x.rows > kWidenRounded && t.gemm_bf16 != nullptr)) {
        int64_t stride;
        const bf16* h = as_bf16(x, round_up(inputs, kBlock), t.tiles, &stride, scratch);
        Blocks<InBf16>{v, h, stride, x.rows, out, dots, gated}.run();
    } else if (rounded && x.rows <= kWidenRounded) {
        thin(t.rounded[kind], v, as_int8(x, inputs, scratch), out, gated);
    } else if (many) {
        int64_t stride;
        const float* f = as_f32(x, inputs, &stride, scratch);
        Blocks<InF32>{v, f, stride, x.rows, out, v.kind == WeightKind::f32, gated}.run();
    } else {
        in.f = as_f32(x, inputs, &in.stride, scratch);
        thin(t.exact[kind], v, in, out, gated);
    }
}

Out out_of(const PackedMatrix& w, void* y, int64_t stride, const void* bias, bool y_bf16,
           bool bias_bf16) {
    Out out;
    out.y = y;
    out.stride = stride == 0 ? w.rows() : stride;
    out.bias = bias;
    out.n = w.rows();
    out.y_bf16 = y_bf16;
    out.bias_bf16 = bias_bf16;
    return out;
}

Rows rows_of(const PackedMatrix& w, const void* x, int64_t stride, int64_t rows, bool is_bf16) {
    return {x, stride == 0 ? w.cols() : stride, rows, w.cols(), is_bf16};
}

}  // namespace

void linear(const PackedMatrix& w, const float* x, int64_t rows, float* y, const float* bias) {
    linear_strided(w, x, 0, rows, y, 0, bias);
}

void linear_bf16(const PackedMatrix& w, const bf16* x, int64_t rows, bf16* y, const bf16* bias) {
    linear_strided_bf16(w, x, 0, rows, y, 0, bias);
}

void linear_bf16_f32(const PackedMatrix& w, const bf16* x, int64_t rows, float* y,
                     const float* bias) {
    product(w, rows_of(w, x, 0, rows, true), out_of(w, y, 0, bias, false, false));
}

void linear_strided(const PackedMatrix& w, const float* x, int64_t x_stride, int64_t rows, float* y,
                    int64_t y_stride, const float* bias) {
    product(w, rows_of(w, x, x_stride, rows, false), out_of(w, y, y_stride, bias, false, false));
}

void linear_strided_bf16(const PackedMatrix& w, const bf16* x, int64_t x_stride, int64_t rows,
                         bf16* y, int64_t y_stride, const bf16* bias) {
    product(w, rows_of(w, x, x_stride, rows, true), out_of(w, y, y_stride, bias, true, true));
}

namespace {

// y [rows, n] for w of 2 n rows.
Out half_of(const PackedMatrix& w, void* y, bool y_bf16) {
    if (w.rows() % (2 * kPanel) != 0) throw std::invalid_argument("halves are whole panels of 16 outputs");
    Out out = out_of(w, y, w.rows() / 2, nullptr, y_bf16, false);
    out.n = w.rows() / 2;
    return out;
}

}  // namespace

void linear_silu_mul(const PackedMatrix& w, const float* x, int64_t rows, float* y) {
    product(w, rows_of(w, x, 0, rows, false), half_of(w, y, false), true);
}

void linear_silu_mul(const PackedMatrix& w, const bf16* x, int64_t rows, bf16* y) {
    product(w, rows_of(w, x, 0, rows, true), half_of(w, y, true), true);
}

namespace {

struct Product {
    const void *a, *b;
    void* c;
    int64_t m, n, k;
    bool transposed, is_bf16;
};

// b as f32 panels, then blocks of rows.
void multiply(const Product& p) {
    const Table& t = table();
    const int64_t panels = panel_count(p.n);
    Scratch scratch;
    float* packed = scratch.take<float>(panels * p.k * kPanel + 1);
    const auto* bf = static_cast<const float*>(p.b);
    const auto* bh = static_cast<const bf16*>(p.b);
    pool().ranges(panels, (1 << 14) / (p.k * kPanel + 1) + 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            float* y = packed + i * p.k * kPanel;
            const int64_t left = p.n - i * kPanel, n = left < kPanel ? left : kPanel;
            if (p.transposed && p.is_bf16) {
                t.pack_keys_hf(bh + i * kPanel * p.k, p.k, n, p.k, y);
            } else if (p.transposed) {
                t.pack_keys_f(bf + i * kPanel * p.k, p.k, n, p.k, y);
            } else if (p.is_bf16) {
                t.pack_values_hf(bh + i * kPanel, p.n, p.k, p.k, n, y);
            } else {
                t.pack_values_f(bf + i * kPanel, p.n, p.k, p.k, n, y);
            }
        }
    });
    Panels w;
    w.data = reinterpret_cast<const uint8_t*>(packed);
    w.layout = layout_of(WeightKind::f32, p.k, 0);
    w.rows = p.n;
    const Rows x{p.a, p.k, p.m, p.k, p.is_bf16};
    int64_t stride;
    const float* f = as_f32(x, p.k, &stride, scratch);
    Out out;
    out.y = p.c;
    out.stride = out.n = p.n;
    out.y_bf16 = p.is_bf16;
    Blocks<InF32>{w, f, stride, p.m, out, true, false}.run();
}

template <class T>
void multiply_all(const T* a, const T* b, T* c, int64_t batch, int64_t m, int64_t n, int64_t k,
                  bool transposed, int64_t a_batch, int64_t b_batch) {
    if (m <= 0 || n <= 0) return;
    const auto one = [&](int64_t i) {
        multiply({a + i * a_batch, b + i * b_batch, c + i * m * n, m, n, k, transposed, sizeof(T) == 2});
    };
    // Many small products: one a task. Few: each split.
    if (batch >= pool().threads()) {
        pool().run(batch, one);
    } else {
        for (int64_t i = 0; i < batch; ++i) one(i);
    }
}

}  // namespace

void matmul(const float* a, const float* b, float* c, int64_t batch, int64_t m, int64_t n,
            int64_t k, bool b_transposed, int64_t a_batch, int64_t b_batch) {
    multiply_all(a, b, c, batch, m, n, k, b_transposed, a_batch, b_batch);
}

void matmul(const bf16* a, const bf16* b, bf16* c, int64_t batch, int64_t m, int64_t n, int64_t k,
            bool b_transposed, int64_t a_batch, int64_t b_batch) {
    multiply_all(a, b, c, batch, m, n, k, b_transposed, a_batch, b_batch);
}

}  // namespace linnet
