// Products of two arrays: the second is laid out as panels, then multiplied like weights.
#include "blocks.h"

namespace linnet {
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
