// What the parts of attention share.
#pragma once

#include <cmath>
#include <limits>

#include "memory.h"
#include "table.h"

namespace linnet {

constexpr float kNone = -std::numeric_limits<float>::infinity();

// A row's sums so far.
struct Partial {
    float peak, total;
};

template <class T>
struct Ops;
template <>
struct Ops<float> {
    static auto scores(const Table& t) { return t.scores_f; }
    static auto mix(const Table& t) { return t.mix_f; }
    static auto pack_keys(const Table& t) { return t.pack_keys_f; }
    static auto pack_values(const Table& t) { return t.pack_values_f; }
};
template <>
struct Ops<bf16> {
    static auto scores(const Table& t) { return t.scores_h; }
    static auto mix(const Table& t) { return t.mix_h; }
    static auto pack_keys(const Table& t) { return t.pack_keys_hf; }
    static auto pack_values(const Table& t) { return t.pack_values_hf; }
};

inline void widen_row(const Table&, const float* x, int64_t n, float* y) {
    std::memcpy(y, x, static_cast<size_t>(n) * 4);
}
inline void widen_row(const Table& t, const bf16* x, int64_t n, float* y) { t.widen(x, n, y); }
inline void narrow_row(const Table&, const float* x, int64_t n, float* y) {
    std::memcpy(y, x, static_cast<size_t>(n) * 4);
}
inline void narrow_row(const Table& t, const float* x, int64_t n, bf16* y) { t.narrow(x, n, y); }

// The mean of `keys` values.
template <class T>
void mean_row(const Table& t, const T* v, int64_t v_row, int64_t keys, int64_t width, float* y) {
    constexpr int64_t kStep = 64;
    float ones[kStep];
    for (float& o : ones) o = 1.0f;
    std::memset(y, 0, static_cast<size_t>(width) * 4);
    for (int64_t j = 0; j < keys; j += kStep) {
        Ops<T>::mix(t)(ones, 0, 1, v + j * v_row, v_row, keys - j < kStep ? keys - j : kStep, width, y);
    }
    t.scale_row(y, width, 1.0f / static_cast<float>(keys));
}

// Whether no work is left: there is no result, or there are no keys and the result is zeros.
template <class T>
bool nothing(const Attention<T>& a) {
    if (a.batch <= 0 || a.heads <= 0 || a.queries <= 0 || a.width <= 0) return true;
    if (a.kv_heads > 0 && a.keys > 0) return false;
    for (int64_t i = 0; i < a.batch * a.heads * a.queries; ++i) {
        const int64_t row = i % a.queries, head = i / a.queries % a.heads, b = i / a.queries / a.heads;
        T* out = a.out + b * a.out_batch + head * a.out_head + row * a.out_row;
        std::memset(static_cast<void*>(out), 0, static_cast<size_t>(a.width) * sizeof(T));
    }
    return true;
}
template <class T>
bool nothing(const PagedAttention<T>& a) {
    if (a.tokens <= 0 || a.heads <= 0 || a.width <= 0) return true;
    if (a.kv_heads > 0 && a.places > 0 && a.pages > 0 && a.page_size > 0) return false;
    for (int64_t i = 0; i < a.tokens * a.heads; ++i) {
        T* out = a.out + i / a.heads * a.out_token + i % a.heads * a.out_head;
        std::memset(static_cast<void*>(out), 0, static_cast<size_t>(a.width) * sizeof(T));
    }
    return true;
}

// How many keys a query sees.
template <class T>
int64_t limit_of(const Attention<T>& a, int64_t b, int64_t i) {
    const int64_t base = a.base != nullptr ? a.base[b * a.base_batch + i * a.base_query] : 0;
    const int64_t limit = base + (a.causal ? i : 0) + a.offset + 1;
    return limit < 0 ? 0 : limit > a.keys ? a.keys : limit;
}
template <class T>
int64_t limit_of(const PagedAttention<T>& a, int64_t token) {
    const int64_t n = int64_t{a.positions[token]} + 1, most = a.pages * a.page_size;
    return n < 0 ? 0 : n > most ? most : n;
}
template <class T>
int64_t row_of(const PagedAttention<T>& a, int64_t token) {
    return a.rows != nullptr ? a.rows[token] : token;
}

// Calls f(place, j, n) for runs of n keys of [from, to), the first of them key from + j, that lie one
// behind the other from row `place` of the pool on.
template <class F>
void each_run(const int32_t* pages, int64_t page_size, int64_t from, int64_t to, F&& f) {
    for (int64_t s = from; s < to;) {
        const int64_t page = s / page_size, within = s % page_size;
        int64_t n = page_size - within;
        // Pages that lie one behind the other are read as one.
        for (int64_t next = page + 1; s + n < to && pages[next] == pages[next - 1] + 1; ++next) n += page_size;
        n = n < to - s ? n : to - s;
        f(pages[page] * page_size + within, s - from, n);
        s += n;
    }
}

// Queries of the heads that share a key/value head, and which keys each sees: those below its limit, or
// those its mask names. Query i of head h lies at h * q_head + i * q_row, its result likewise.
template <class T>
struct Queries {
    const T *q = nullptr, *k = nullptr, *v = nullptr;
    T* out = nullptr;
    int64_t q_head = 0, q_row = 0, out_head = 0, out_row = 0, kv_row = 0;
    int64_t heads = 1, count = 0, keys = 0, width = 0;
    float scale = 1.0f;
    const int32_t* pages = nullptr;  // null: keys lie one behind the other
    int64_t page_size = 1;
    const int64_t* limits = nullptr;  // [count], or null
    const uint8_t* mask = nullptr;    // row i at i * mask_query
    int64_t mask_query = 0;
    const float* sinks = nullptr;  // [heads], or null
};

template <class T>
void attend_many(const Attention<T>&);
template <class T>
void attend_masked(const Attention<T>&, const uint8_t* mask, int64_t mask_batch, int64_t mask_query,
                   const float* sinks);
template <class T>
void attend_few(const Attention<T>&);
template <class T>
void attend_tokens(const PagedAttention<T>&);  // each by itself
template <class T>
void attend_pages(const PagedAttention<T>&);

}  // namespace linnet
