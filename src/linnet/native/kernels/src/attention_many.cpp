// Attention of many queries: blocks of rows against packed blocks of keys (FlashAttention's order of
// work), under a limit for each query or any mask, over keys in one piece or in pages.
#include "attention.h"

namespace linnet {
namespace {

constexpr int64_t kBlockRows = 192;  // rows (query heads times queries) a task
constexpr int64_t kBlockKeys = 128;

// Products in f32 (Cell float) or in bf16 with f32 sums (Cell bf16).
struct InF32 {
    using Cell = float;
    template <class T>
    static void keys(const Table& t, const T* k, int64_t row, int64_t n, int64_t width, float* y) {
        Ops<T>::pack_keys(t)(k, row, n, width, y);
    }
    template <class T>
    static void values(const Table& t, const T* v, int64_t row, int64_t n, int64_t lines, int64_t width, float* y) {
        Ops<T>::pack_values(t)(v, row, n, lines, width, y);
    }
    static void multiply(const Table& t, const float* panels, int64_t step, int64_t np, const float* x, int64_t xs,
                         int64_t rows, int64_t k, float* y, int64_t ys, bool accumulate) {
        t.gemm_f32(panels, step, np, x, xs, rows, k, y, ys, accumulate);
    }
    static int64_t inputs(int64_t n) { return n; }
    template <class T>
    static void query(const Table& t, const T* x, int64_t r, int64_t n, int64_t width, float* q) {
        widen_row(t, x, n, q + r * width);
    }
    // The row's weights are its scores, softened where they are.
    static float soften(const Table& t, float* s, int64_t n, int64_t lines, float scale, Partial& p, float*, int64_t) {
        const float by = n > 0 ? t.soften(s, n, scale, &p.peak, &p.total) : 1.0f;
        for (int64_t j = n; j < lines; ++j) s[j] = 0.0f;
        return by;
    }
    static constexpr bool kShared = true;  // weights lie where the scores were
};
struct InBf16 {
    using Cell = bf16;
    static void keys(const Table& t, const bf16* k, int64_t row, int64_t n, int64_t width, bf16* y) {
        t.pack_keys_h(k, row, n, width, y);
    }
    static void values(const Table& t, const bf16* v, int64_t row, int64_t n, int64_t lines, int64_t width, bf16* y) {
        t.pack_values_h(v, row, n, lines, width, y);
    }
    static void multiply(const Table& t, const bf16* panels, int64_t step, int64_t np, const bf16* x, int64_t xs,
                         int64_t rows, int64_t k, float* y, int64_t ys, bool accumulate) {
        t.gemm_bf16(panels, step, np, x, xs, rows, k, y, ys, accumulate, Soon{});
    }
    static int64_t inputs(int64_t n) { return round_up(n, kBlock); }
    static void query(const Table& t, const bf16* x, int64_t r, int64_t n, int64_t width, bf16* q) {
        for (int64_t d = 0; d < n; d += kBlock) {
            const int64_t left = n - d < kBlock ? n - d : kBlock;
            std::memcpy(q + tile_cell(t.tiles, r, d, width), x + d, static_cast<size_t>(left) * 2);
        }
    }
    static float soften(const Table& t, const float* s, int64_t n, int64_t lines, float scale, Partial& p, bf16* y,
                        int64_t r) {
        return t.soften_h(s, n, lines, scale, &p.peak, &p.total, y + tile_cell(t.tiles, r, 0, kBlockKeys),
                          t.tiles ? 16 * kBlock : kBlock);
    }
    static constexpr bool kShared = false;
};

template <class Mode, class T>
class Block {
    using C = typename Mode::Cell;

public:
    Block(const Queries<T>& queries, Scratch& s) : a(queries), own(s) {
        rows = a.count * a.heads;
        padded_width = Mode::inputs(a.width);
        columns = round_up(a.width, kPanel);
        const int64_t held = round_up(rows, 16);
        q = s.take<C>(held * padded_width);
        scores = s.take<float>(held * kBlockKeys);
        p = Mode::kShared ? reinterpret_cast<C*>(scores) : s.take<C>(held * kBlockKeys);
        sums = s.take<float>(held * columns);
        partial = s.take<Partial>(rows);
        keys = s.take<C>(kBlockKeys * padded_width);
        values = s.take<C>(kBlockKeys * columns);
        std::memset(static_cast<void*>(q), 0, static_cast<size_t>(held * padded_width) * sizeof(C));
        std::memset(sums, 0, static_cast<size_t>(held * columns) * 4);
        for (int64_t r = 0; r < rows; ++r) {
            Mode::query(t, a.q + r / a.count * a.q_head + r % a.count * a.q_row, r, a.width, padded_width, q);
            partial[r] = {kNone, 0.0f};
        }
    }

    void run() {
        int64_t most = a.limits == nullptr ? a.keys : 0;
        for (int64_t i = 0; a.limits != nullptr && i < a.count; ++i) most = a.limits[i] > most ? a.limits[i] : most;
        t.begin_tiles();
        for (int64_t from = 0; from < most; from += kBlockKeys) {
            const int64_t n = most - from < kBlockKeys ? most - from : kBlockKeys;
            if (a.mask == nullptr || any_seen(from, n)) step(from, n);
        }
        t.end_tiles();
        for (int64_t r = 0; r < rows; ++r) write(r);
    }

private:
    const uint8_t* mask_of(int64_t r, int64_t from) const { return a.mask + r % a.count * a.mask_query + from; }

    bool any_seen(int64_t from, int64_t n) const {
        for (int64_t i = 0; i < a.count; ++i) {
            if (seen_in(mask_of(i, from), n) > 0) return true;
        }
        return false;
    }

    static int64_t seen_in(const uint8_t* mask, int64_t n) {
        int64_t seen = 0;
        for (int64_t j = 0; j < n; ++j) seen += mask[j] != 0;
        return seen;
    }

    void step(int64_t from, int64_t n) {
        const int64_t lines = Mode::inputs(n), panels = panel_count(n);
        pack(from, n, lines);
        Mode::multiply(t, keys, padded_width * kPanel, panels, q, padded_width, rows, padded_width, scores,
                       kBlockKeys, false);
        for (int64_t r = 0; r < rows; ++r) {
            float* s = scores + r * kBlockKeys;
            float by;
            if (a.mask != nullptr) {
                // Scores are scaled before some are hidden: -infinity has no multiple of 0.
                const int64_t seen = hide(r, from, n, s);
                by = Mode::soften(t, s, seen, lines, 1.0f, partial[r], p, r);
            } else {
                by = Mode::soften(t, s, limited(a.limits[r % a.count] - from, n), lines, a.scale, partial[r], p, r);
            }
            if (by != 1.0f) t.scale_row(sums + r * columns, columns, by);
        }
        Mode::multiply(t, values, lines * kPanel, columns / kPanel, p, kBlockKeys, rows, lines, sums, columns, true);
    }

    static int64_t limited(int64_t seen, int64_t n) { return seen < 0 ? 0 : seen < n ? seen : n; }

    // Gives hidden keys a score whose share is 0; how many keys are to be looked at.
    int64_t hide(int64_t r, int64_t from, int64_t n, float* s) const {
        const uint8_t* mask = mask_of(r, from);
        if (seen_in(mask, n) == 0) return 0;
        for (int64_t j = 0; j < n; ++j) s[j] = mask[j] != 0 ? s[j] * a.scale : kNone;
        return n;
    }

    void pack(int64_t from, int64_t n, int64_t lines) {
        const T *k = a.k + from * a.kv_row, *v = a.v + from * a.kv_row;
        int64_t row = a.kv_row;
        if (a.pages != nullptr) {
            // Pages side by side first, so that packing sees one run of keys.
            gathered_k = gathered_k != nullptr ? gathered_k : own.take<T>(2 * kBlockKeys * a.width);
            T* to = gathered_k;
            const auto size = static_cast<size_t>(a.width) * sizeof(T);
            each_run(a.pages, a.page_size, from, from + n, [&](int64_t place, int64_t j, int64_t count) {
                std::memcpy(to + j * a.width, a.k + place * a.kv_row, size * static_cast<size_t>(count));
                std::memcpy(to + (kBlockKeys + j) * a.width, a.v + place * a.kv_row, size * static_cast<size_t>(count));
            });
            k = to, v = to + kBlockKeys * a.width, row = a.width;
        }
        Mode::keys(t, k, row, n, a.width, keys);
        Mode::values(t, v, row, n, lines, a.width, values);
    }

    bool sees_nothing(int64_t r) const {
        if (a.mask == nullptr) return a.limits[r % a.count] <= 0;
        return seen_in(mask_of(r, 0), a.keys) == 0;
    }

    void write(int64_t r) {
        float* sum = sums + r * columns;
        const Partial& part = partial[r];
        const float* sink = a.sinks == nullptr ? nullptr : a.sinks + r / a.count;
        const bool no_share = part.total == 0.0f && part.peak == kNone;
        if (no_share && sink == nullptr && sees_nothing(r)) {
            mean_row(t, a.v, a.kv_row, a.pages != nullptr ? 1 : a.keys, a.width, sum);
        } else if (!no_share || sink == nullptr) {  // keys that are all at -infinity: 0 / 0
            float total = part.total;
            if (sink != nullptr) {
                const float peak = *sink > part.peak ? *sink : part.peak;
                const float by = std::exp(part.peak - peak);
                t.scale_row(sum, a.width, by);
                total = total * by + std::exp(*sink - peak);
            }
            t.scale_row(sum, a.width, 1.0f / total);
        }
        narrow_row(t, sum, a.width, a.out + r / a.count * a.out_head + r % a.count * a.out_row);
    }

    const Queries<T>& a;
    const Table& t = table();
    Scratch& own;
    int64_t rows, padded_width, columns;
    C *q, *p, *keys, *values;
    float *scores, *sums;
    Partial* partial;
    T* gathered_k = nullptr;
};

void attend(const Queries<float>& a) {
    Scratch scratch;
    Block<InF32, float>(a, scratch).run();
}

void attend(const Queries<bf16>& a) {
    Scratch scratch;
    if (table().gemm_bf16 != nullptr) {
        Block<InBf16, bf16>(a, scratch).run();
    } else {
        Block<InF32, bf16>(a, scratch).run();
    }
}

// How many queries a block takes: all rows of the heads, fewer in short prompts, so that there are
// tasks for all threads.
int64_t block_queries(int64_t heads, int64_t tasks, int64_t queries) {
    const int64_t threads = pool().threads();
    int64_t count = round_up(kBlockRows / heads > 0 ? kBlockRows / heads : 1, 16);
    while (count > 16 && threads > 1 && tasks * ((queries + count - 1) / count) < 2 * threads) count -= 16;
    return count;
}

// Queries [first, first + count) of key/value head `head` of sequence b.
template <class T>
Queries<T> queries_of(const Attention<T>& a, int64_t b, int64_t head, int64_t first, int64_t count) {
    Queries<T> one;
    const int64_t group = a.heads / a.kv_heads;
    one.q = a.q + b * a.q_batch + head * group * a.q_head + first * a.q_row;
    one.out = a.out + b * a.out_batch + head * group * a.out_head + first * a.out_row;
    one.k = a.k + b * a.kv_batch + head * a.kv_head;
    one.v = a.v + b * a.kv_batch + head * a.kv_head;
    one.q_head = a.q_head, one.q_row = a.q_row, one.out_head = a.out_head, one.out_row = a.out_row;
    one.kv_row = a.kv_row, one.heads = group, one.count = count, one.keys = a.keys, one.width = a.width;
    one.scale = a.scale;
    return one;
}

// Calls f(b, head, first, count) for each block, as tasks.
template <class T, class F>
void each_block(const Attention<T>& a, F&& f) {
    const int64_t heads = a.batch * a.kv_heads;
    const int64_t count = block_queries(a.heads / a.kv_heads, heads, a.queries);
    const int64_t blocks = (a.queries + count - 1) / count;
    pool().run(heads * blocks, [&](int64_t i) {
        // Later blocks see more keys: early and late ones in turn even out the threads' parts.
        const int64_t task = i % heads, turn = i / heads;
        const int64_t first = (turn % 2 == 0 ? turn / 2 : blocks - 1 - turn / 2) * count;
        f(task / a.kv_heads, task % a.kv_heads, first, a.queries - first < count ? a.queries - first : count);
    });
}

}  // namespace

template <class T>
void attend_many(const Attention<T>& a) {
    each_block(a, [&](int64_t b, int64_t head, int64_t first, int64_t count) {
        Scratch scratch;
        Queries<T> one = queries_of(a, b, head, first, count);
        auto* limits = scratch.take<int64_t>(count);
        for (int64_t i = 0; i < count; ++i) limits[i] = limit_of(a, b, first + i);
        one.limits = limits;
        attend(one);
    });
}

template <class T>
void attend_masked(const Attention<T>& a, const uint8_t* mask, int64_t mask_batch, int64_t mask_query,
                   const float* sinks) {
    each_block(a, [&](int64_t b, int64_t head, int64_t first, int64_t count) {
        Queries<T> one = queries_of(a, b, head, first, count);
        one.mask = mask + b * mask_batch + first * mask_query;
        one.mask_query = mask_query;
        one.sinks = sinks == nullptr ? nullptr : sinks + head * one.heads;
        attend(one);
    });
}

// Tokens of one row that come one behind the other share their packed keys.
template <class T>
void attend_chunks(const PagedAttention<T>& a) {
    constexpr int64_t kMost = 64;  // tokens a task
    Scratch scratch;
    auto* firsts = scratch.take<int64_t>(a.tokens + 1);
    int64_t chunks = 0;
    for (int64_t i = 0; i < a.tokens; ++i) {
        const bool more = i > 0 && row_of(a, i) == row_of(a, i - 1) && i - firsts[chunks - 1] < kMost;
        if (!more) firsts[chunks++] = i;
    }
    firsts[chunks] = a.tokens;
    pool().run(chunks * a.kv_heads, [&](int64_t task) {
        const int64_t first = firsts[task / a.kv_heads], head = task % a.kv_heads;
        Scratch own;
        Queries<T> one;
        one.heads = a.heads / a.kv_heads, one.count = firsts[task / a.kv_heads + 1] - first;
        one.q = a.q + first * a.q_token + head * one.heads * a.q_head;
        one.out = a.out + first * a.out_token + head * one.heads * a.out_head;
        one.q_head = a.q_head, one.q_row = a.q_token, one.out_head = a.out_head, one.out_row = a.out_token;
        one.k = a.k + head * a.places * a.width, one.v = a.v + head * a.places * a.width;
        one.kv_row = one.width = a.width, one.keys = a.pages * a.page_size, one.scale = a.scale;
        one.pages = a.table + row_of(a, first) * a.pages, one.page_size = a.page_size;
        auto* limits = own.take<int64_t>(one.count);
        for (int64_t i = 0; i < one.count; ++i) limits[i] = limit_of(a, first + i);
        one.limits = limits;
        attend(one);
    });
}

template <class T>
void attend_pages(const PagedAttention<T>& a) {
    if (nothing(a)) return;
    int64_t shared = 0;
    for (int64_t i = 1; i < a.tokens; ++i) shared += row_of(a, i) == row_of(a, i - 1);
    if (shared >= a.tokens / 2 && a.tokens > 4) {
        attend_chunks(a);
    } else {
        attend_tokens(a);
    }
}

template void attend_many(const Attention<float>&);
template void attend_many(const Attention<bf16>&);
template void attend_masked(const Attention<float>&, const uint8_t*, int64_t, int64_t, const float*);
template void attend_masked(const Attention<bf16>&, const uint8_t*, int64_t, int64_t, const float*);
template void attend_pages(const PagedAttention<float>&);
template void attend_pages(const PagedAttention<bf16>&);

}  // namespace linnet
