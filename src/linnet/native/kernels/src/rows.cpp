// Row by row, element by element, look-ups: the split over threads.
#include "table.h"

namespace linnet {
namespace {

// Elements a task holds at least: about 5 us of work.
constexpr int64_t kGrain = 1 << 14;

int64_t rows_a_task(int64_t n) { return kGrain / (n + 1) + 1; }

template <class F>
void by_rows(int64_t rows, int64_t n, F&& f) {
    if (n <= 0) return;
    pool().ranges(rows, rows_a_task(n), f);
}

}  // namespace

void rms_norm(const float* x, const float* w, float eps, int64_t rows, int64_t n, float* y) {
    by_rows(rows, n, [&](int64_t b, int64_t e) { table().rms_norm_f(x + b * n, w, eps, e - b, n, y + b * n); });
}
void rms_norm(const bf16* x, const bf16* w, float eps, int64_t rows, int64_t n, bf16* y) {
    by_rows(rows, n, [&](int64_t b, int64_t e) { table().rms_norm_h(x + b * n, w, eps, e - b, n, y + b * n); });
}
void layer_norm(const float* x, const float* w, const float* bias, float eps, int64_t rows, int64_t n,
                float* y) {
    by_rows(rows, n, [&](int64_t b, int64_t e) { table().layer_norm_f(x + b * n, w, bias, eps, e - b, n, y + b * n); });
}
void layer_norm(const bf16* x, const bf16* w, const bf16* bias, float eps, int64_t rows, int64_t n,
                bf16* y) {
    by_rows(rows, n, [&](int64_t b, int64_t e) { table().layer_norm_h(x + b * n, w, bias, eps, e - b, n, y + b * n); });
}
void softmax(const float* x, int64_t rows, int64_t n, float* y) {
    by_rows(rows, n, [&](int64_t b, int64_t e) { table().softmax_f(x + b * n, e - b, n, y + b * n); });
}
void softmax(const bf16* x, int64_t rows, int64_t n, bf16* y) {
    by_rows(rows, n, [&](int64_t b, int64_t e) { table().softmax_h(x + b * n, e - b, n, y + b * n); });
}
void argmax(const float* x, int64_t rows, int64_t n, int32_t* y) {
    by_rows(rows, n, [&](int64_t b, int64_t e) {
        for (int64_t r = b; r < e; ++r) y[r] = static_cast<int32_t>(table().argmax_f(x + r * n, n));
    });
}
void argmax(const bf16* x, int64_t rows, int64_t n, int32_t* y) {
    by_rows(rows, n, [&](int64_t b, int64_t e) {
        for (int64_t r = b; r < e; ++r) y[r] = static_cast<int32_t>(table().argmax_h(x + r * n, n));
    });
}

namespace {

template <class T, class F>
void rope_all(F row, const T* x, const T* cos, const T* sin, T* y, int64_t batch, int64_t heads,
              int64_t seq, int64_t width, int64_t x_batch, int64_t x_head, int64_t x_row,
              int64_t t_batch, int64_t t_row, int64_t y_batch, int64_t y_head, int64_t y_row) {
    if (width <= 0) return;
    if (y_row == 0) y_batch = x_batch, y_head = x_head, y_row = x_row;
    pool().ranges(batch * heads * seq, rows_a_task(width), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const int64_t s = i % seq, h = i / seq % heads, b = i / seq / heads;
            const int64_t at = b * x_batch + h * x_head + s * x_row, t = b * t_batch + s * t_row;
            row(x + at, cos + t, sin + t, width, y + b * y_batch + h * y_head + s * y_row);
        }
    });
}

}  // namespace

void rope(const float* x, const float* cos, const float* sin, float* y, int64_t batch, int64_t heads,
          int64_t seq, int64_t width, int64_t x_batch, int64_t x_head, int64_t x_row, int64_t t_batch,
          int64_t t_row, int64_t y_batch, int64_t y_head, int64_t y_row) {
    rope_all(table().rope_f, x, cos, sin, y, batch, heads, seq, width, x_batch, x_head, x_row, t_batch, t_row, y_batch, y_head, y_row);
}
void rope(const bf16* x, const bf16* cos, const bf16* sin, bf16* y, int64_t batch, int64_t heads,
          int64_t seq, int64_t width, int64_t x_batch, int64_t x_head, int64_t x_row, int64_t t_batch,
          int64_t t_row, int64_t y_batch, int64_t y_head, int64_t y_row) {
    rope_all(table().rope_h, x, cos, sin, y, batch, heads, seq, width, x_batch, x_head, x_row, t_batch, t_row, y_batch, y_head, y_row);
}

void silu(const float* x, int64_t n, float* y) {
    pool().ranges(n, kGrain, [&](int64_t b, int64_t e) { table().silu_f(x + b, e - b, y + b); });
}
void silu(const bf16* x, int64_t n, bf16* y) {
    pool().ranges(n, kGrain, [&](int64_t b, int64_t e) { table().silu_h(x + b, e - b, y + b); });
}
void silu_mul(const float* gate, const float* up, int64_t n, float* y) {
    pool().ranges(n, kGrain, [&](int64_t b, int64_t e) { table().silu_mul_f(gate + b, up + b, e - b, y + b); });
}
void silu_mul(const bf16* gate, const bf16* up, int64_t n, bf16* y) {
    pool().ranges(n, kGrain, [&](int64_t b, int64_t e) { table().silu_mul_h(gate + b, up + b, e - b, y + b); });
}
void gelu_tanh(const float* x, int64_t n, float* y) {
    pool().ranges(n, kGrain, [&](int64_t b, int64_t e) { table().gelu_f(x + b, e - b, y + b); });
}
void gelu_tanh(const bf16* x, int64_t n, bf16* y) {
    pool().ranges(n, kGrain, [&](int64_t b, int64_t e) { table().gelu_h(x + b, e - b, y + b); });
}
void add(const float* a, const float* b, int64_t n, float* y) {
    pool().ranges(n, 2 * kGrain, [&](int64_t i, int64_t e) { table().add_f(a + i, b + i, e - i, y + i); });
}
void add(const bf16* a, const bf16* b, int64_t n, bf16* y) {
    pool().ranges(n, 2 * kGrain, [&](int64_t i, int64_t e) { table().add_h(a + i, b + i, e - i, y + i); });
}
void exp(const float* x, int64_t n, float* y) {
    pool().ranges(n, kGrain, [&](int64_t b, int64_t e) { table().exp_f(x + b, e - b, y + b); });
}

// --- look-ups -----------------------------------------------------------------------------------

namespace {

int64_t first_outside(const int32_t* ids, int64_t count, int64_t vocab) {
    for (int64_t i = 0; i < count; ++i) {
        if (ids[i] < 0 || ids[i] >= vocab) return i;
    }
    return -1;
}

template <class T>
int64_t gather(const T* rows, int64_t vocab, int64_t width, const int32_t* ids, int64_t count, T* y) {
    const int64_t bad = first_outside(ids, count, vocab);
    if (bad >= 0 || width <= 0) return bad;
    pool().ranges(count, rows_a_task(width), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            std::memcpy(y + i * width, rows + ids[i] * width, static_cast<size_t>(width) * sizeof(T));
        }
    });
    return -1;
}

float lane_of(const float* line, int64_t lane) { return line[lane]; }

// One row of a packed matrix: a cell of each line.
template <class Put>
void packed_row(const Panels& w, int64_t cols, int64_t row, Put&& put) {
    const uint8_t* panel = w.panel(row / kPanel);
    const uint8_t* data = panel + w.layout.data;
    const int64_t lane = row % kPanel;
    const auto half = [&](int64_t at, int64_t g) {
        f16 h;
        std::memcpy(&h, panel + at + (g * kPanel + lane) * 2, 2);
        return to_float(h);
    };
    float scale = 0.0f, offset = 0.0f;
    if (w.kind == WeightKind::int8) scale = lane_of(reinterpret_cast<const float*>(panel), lane);
    for (int64_t k = 0; k < cols; ++k) {
        switch (w.kind) {
            case WeightKind::f32:
                put(k, lane_of(reinterpret_cast<const float*>(data) + k * kPanel, lane));
                break;
            case WeightKind::bf16:
                put(k, to_float(reinterpret_cast<const bf16*>(data)[k / 2 * 32 + 2 * lane + k % 2]));
                break;
            case WeightKind::q8:
                if (k % kBlock == 0) scale = half(0, k / kBlock);
                [[fallthrough]];
            case WeightKind::int8:
                put(k, scale * static_cast<float>(data[k / 4 * kLine + 4 * lane + k % 4] - 128));
                break;
            case WeightKind::q4:
            case WeightKind::q4_1: {
                if (k % w.group == 0) {
                    scale = half(0, k / w.group);
                    offset = w.kind == WeightKind::q4_1 ? half(w.layout.offsets, k / w.group) : -8.0f * scale;
                }
                const int byte = data[k / 8 * kLine + 4 * lane + k % 4];
                put(k, scale * static_cast<float>(k % 8 < 4 ? byte & 15 : byte >> 4) + offset);
                break;
            }
        }
    }
}

template <class Put>
int64_t gather_packed(const PackedMatrix& table, const int32_t* ids, int64_t count, Put&& put) {
    const int64_t bad = first_outside(ids, count, table.rows());
    if (bad >= 0) return bad;
    const Panels w = panels_of(table);
    pool().ranges(count, rows_a_task(table.cols() * 4), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            packed_row(w, table.cols(), ids[i], [&](int64_t k, float v) { put(i * table.cols() + k, v); });
        }
    });
    return -1;
}

}  // namespace

int64_t embedding(const float* table, int64_t vocab, int64_t width, const int32_t* ids,
                  int64_t count, float* y) {
    return gather(table, vocab, width, ids, count, y);
}
int64_t embedding(const bf16* table, int64_t vocab, int64_t width, const int32_t* ids,
                  int64_t count, bf16* y) {
    return gather(table, vocab, width, ids, count, y);
}
int64_t embedding(const PackedMatrix& table, const int32_t* ids, int64_t count, float* y) {
    return gather_packed(table, ids, count, [&](int64_t at, float v) { y[at] = v; });
}
int64_t embedding(const PackedMatrix& table, const int32_t* ids, int64_t count, bf16* y) {
    return gather_packed(table, ids, count, [&](int64_t at, float v) { y[at] = to_bf16(v); });
}

uint64_t read_memory(const void* data, int64_t bytes) {
    constexpr int64_t kPiece = 256 << 10;
    const auto* p = static_cast<const char*>(data);
    const int64_t pieces = (bytes + kPiece - 1) / kPiece;
    const auto sums = std::make_unique<uint64_t[]>(static_cast<size_t>(pieces));
    pool().run(pieces, [&](int64_t i) {
        const int64_t from = i * kPiece, n = bytes - from < kPiece ? bytes - from : kPiece;
        sums[static_cast<size_t>(i)] = table().read(p + from, n);
    });
    uint64_t total = 0;
    for (int64_t i = 0; i < pieces; ++i) total += sums[static_cast<size_t>(i)];
    return total;
}

}  // namespace linnet
