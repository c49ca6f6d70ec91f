// Products with packed weights: which way, and how split.
#include <stdexcept>

#include "blocks.h"
#include "memory.h"
#include "order.h"

namespace linnet {
namespace {

// What a task of a thin product reads at least, so that starting it costs little beside it.
constexpr int64_t kTaskBytes = 48 << 10;
// From so many rows on quantised weights are widened a panel at a time instead of a row at a time.
constexpr int64_t kWidenRounded = 24;

// Tasks a thread: many, so that threads of unlike speed end together.
constexpr int64_t kTasks = 32;

Order order;

void run_thin(Thin kernel, const Panels& w, const Input& x, const Out& out) {
    const int64_t panels = panel_count(w.rows);
    pool().ranges(panels, kTaskBytes / (w.layout.bytes + 1) + 1, [&](int64_t begin, int64_t end) {
        kernel(w, x, begin, end, out);
    }, kTasks);
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
    }, kTasks);
}

bool quantised(WeightKind kind) { return kind >= WeightKind::int8; }

void thin(Thin kernel, const Panels& w, const Input& x, const Out& out, bool gated) {
    const Soon next = order.note(w, panel_count(w.rows) * w.layout.bytes);
    pool().soon(next.at, next.bytes);
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

}  // namespace linnet
