// Attention over keys as far as they are filled.
//
// Few queries: each (sequence, key/value head, chunk of keys) is a task that leaves a peak, a total and
// a mix; the chunks are put together afterwards. Chunks depend on the keys alone, so results don't
// depend on the number of threads. Many queries: blocks of queries against packed blocks of keys
// (FlashAttention's order of work).
#include <cmath>
#include <limits>

#include "memory.h"
#include "table.h"

namespace linnet {
namespace {

constexpr int64_t kChunk = 256;      // keys a task, few queries
constexpr int64_t kFewQueries = 4;   // queries up to which keys aren't packed
constexpr int64_t kBlockRows = 192;  // rows (query heads times queries) a task, many queries
constexpr int64_t kBlockKeys = 128;
constexpr float kNone = -std::numeric_limits<float>::infinity();

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

void widen_row(const Table&, const float* x, int64_t n, float* y) {
    std::memcpy(y, x, static_cast<size_t>(n) * 4);
}
void widen_row(const Table& t, const bf16* x, int64_t n, float* y) { t.widen(x, n, y); }
void narrow_row(const Table&, const float* x, int64_t n, float* y) {
    std::memcpy(y, x, static_cast<size_t>(n) * 4);
}
void narrow_row(const Table& t, const float* x, int64_t n, bf16* y) { t.narrow(x, n, y); }

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

// A row's sums so far.
struct Partial {
    float peak, total;
};

// --- few queries --------------------------------------------------------------------------------

// What tasks need of any kind of attention: rows of one key/value head, and how keys are reached.
// `Source` gives rows(), limit(task, row), q(task, row), out(task, row), keys at [from, to).
template <class Source>
void few(const Source& s, int64_t tasks, int64_t rows, int64_t width, int64_t longest) {
    using T = typename Source::Number;
    if (tasks <= 0 || rows <= 0) return;
    const Table& t = table();
    const int64_t chunks = longest > kChunk ? (longest + kChunk - 1) / kChunk : 1;
    Scratch scratch;
    auto* partial = scratch.take<Partial>(tasks * chunks * rows);
    auto* mixes = scratch.take<float>(tasks * chunks * rows * width);
    const auto chunk_of = [&](int64_t at) {
        Scratch own;
        const int64_t task = at / chunks, from = at % chunks * kChunk;
        Partial* p = partial + at * rows;
        float* mix = mixes + at * rows * width;
        auto* q = own.take<float>(rows * width);
        auto* scores = own.take<float>(rows * kChunk);
        int64_t most = 0;
        for (int64_t r = 0; r < rows; ++r) {
            const int64_t limit = s.limit(task, r) - from;
            most = limit > most ? limit : most;
            p[r] = {kNone, 0.0f};
        }
        if (most <= 0) return;
        most = most < kChunk ? most : kChunk;
        std::memset(mix, 0, static_cast<size_t>(rows * width) * 4);
        for (int64_t r = 0; r < rows; ++r) widen_row(t, s.q(task, r), width, q + r * width);
        s.runs(task, from, from + most, [&](const T* k, const T*, int64_t row, int64_t j, int64_t n) {
            Ops<T>::scores(t)(q, rows, k, row, n, width, scores + j, kChunk);
        });
        for (int64_t r = 0; r < rows; ++r) {
            const int64_t limit = s.limit(task, r) - from;
            const int64_t n = limit < most ? limit : most;
            if (n > 0) t.soften(scores + r * kChunk, n, s.scale(), &p[r].peak, &p[r].total);
            for (int64_t j = n > 0 ? n : 0; j < most; ++j) scores[r * kChunk + j] = 0.0f;
        }
        s.runs(task, from, from + most, [&](const T*, const T* v, int64_t row, int64_t j, int64_t n) {
            for (int64_t r = 0; r < rows; ++r) {
                const int64_t left = s.limit(task, r) - from - j;
                if (left > 0) Ops<T>::mix(t)(scores + r * kChunk + j, 0, 1, v, row, left < n ? left : n, width, mix + r * width);
            }
        });
    };
    // About 20 us of work a task at least.
    const int64_t cost = rows * width * (longest < kChunk ? longest : kChunk) + 1;
    pool().ranges(tasks * chunks, (1 << 17) / cost + 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) chunk_of(i);
    });
    const auto join = [&](int64_t task) {
        Scratch own;
        auto* sum = own.take<float>(width);
        for (int64_t r = 0; r < rows; ++r) {
            if (s.limit(task, r) <= 0) {
                s.mean(task, sum);
                narrow_row(t, sum, width, s.out(task, r));
                continue;
            }
            float peak = kNone, total = 0.0f;
            bool nan = false;
            for (int64_t c = 0; c < chunks; ++c) {
                const float other = partial[(task * chunks + c) * rows + r].peak;
                nan |= other != other;
                peak = other > peak ? other : peak;
            }
            if (nan) peak = std::numeric_limits<float>::quiet_NaN();
            std::memset(sum, 0, static_cast<size_t>(width) * 4);
            for (int64_t c = 0; c < chunks; ++c) {
                const int64_t at = (task * chunks + c) * rows + r;
                if (partial[at].total == 0.0f) continue;
                const float by = partial[at].peak == peak ? 1.0f : std::exp(partial[at].peak - peak);
                total += partial[at].total * by;
                const float* mix = mixes + at * width;
                for (int64_t d = 0; d < width; ++d) sum[d] += mix[d] * by;
            }
            t.scale_row(sum, width, 1.0f / total);
            narrow_row(t, sum, width, s.out(task, r));
        }
    };
    pool().ranges(tasks, (1 << 15) / (chunks * rows * width + 1) + 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) join(i);
    });
}

template <class T>
int64_t limit_of(const Attention<T>& a, int64_t b, int64_t i) {
    const int64_t base = a.base != nullptr ? a.base[b * a.base_batch + i * a.base_query] : 0;
    const int64_t limit = base + (a.causal ? i : 0) + a.offset + 1;
    return limit < 0 ? 0 : limit > a.keys ? a.keys : limit;
}

// Task: sequence and key/value head. Row: query head of the group, query.
template <class T>
struct Dense {
    using Number = T;
    const Attention<T>& a;

    int64_t group() const { return a.heads / a.kv_heads; }
    float scale() const { return a.scale; }
    int64_t limit(int64_t task, int64_t row) const { return limit_of(a, task / a.kv_heads, row % a.queries); }
    int64_t head(int64_t task, int64_t row) const { return task % a.kv_heads * group() + row / a.queries; }
    const T* q(int64_t task, int64_t row) const {
        return a.q + task / a.kv_heads * a.q_batch + head(task, row) * a.q_head + row % a.queries * a.q_row;
    }
    T* out(int64_t task, int64_t row) const {
        return a.out + task / a.kv_heads * a.out_batch + head(task, row) * a.out_head + row % a.queries * a.out_row;
    }
    int64_t start(int64_t task) const { return task / a.kv_heads * a.kv_batch + task % a.kv_heads * a.kv_head; }
    void mean(int64_t task, float* y) const { mean_row(table(), a.v + start(task), a.kv_row, a.keys, a.width, y); }
    template <class F>
    void runs(int64_t task, int64_t from, int64_t to, F&& f) const {
        const int64_t at = start(task) + from * a.kv_row;
        f(a.k + at, a.v + at, a.kv_row, int64_t{0}, to - from);
    }
};

// Task: token and key/value head. Row: query head of the group.
template <class T>
struct Paged {
    using Number = T;
    const PagedAttention<T>& a;

    int64_t group() const { return a.heads / a.kv_heads; }
    float scale() const { return a.scale; }
    int64_t limit(int64_t task, int64_t) const {
        const int64_t n = int64_t{a.positions[task / a.kv_heads]} + 1, most = a.pages * a.page_size;
        return n < 0 ? 0 : n > most ? most : n;
    }
    int64_t head(int64_t task, int64_t row) const { return task % a.kv_heads * group() + row; }
    const T* q(int64_t task, int64_t row) const { return a.q + task / a.kv_heads * a.q_token + head(task, row) * a.q_head; }
    T* out(int64_t task, int64_t row) const { return a.out + task / a.kv_heads * a.out_token + head(task, row) * a.out_head; }
    int64_t start(int64_t task) const { return task % a.kv_heads * a.places * a.width; }
    // A token that sees nothing looks at place 0 alone.
    void mean(int64_t task, float* y) const { widen_row(table(), a.v + start(task), a.width, y); }
    template <class F>
    void runs(int64_t task, int64_t from, int64_t to, F&& f) const {
        const int64_t token = task / a.kv_heads;
        const int32_t* table_row = a.table + (a.rows != nullptr ? a.rows[token] : token) * a.pages;
        for (int64_t s = from; s < to;) {
            const int64_t page = s / a.page_size, within = s % a.page_size;
            int64_t n = a.page_size - within;
            // Pages that lie one behind the other are read as one.
            for (int64_t next = page + 1; s + n < to && table_row[next] == table_row[next - 1] + 1; ++next) n += a.page_size;
            n = n < to - s ? n : to - s;
            const int64_t place = start(task) + (table_row[page] * a.page_size + within) * a.width;
            f(a.k + place, a.v + place, a.width, s - from, n);
            s += n;
        }
    }
};

// --- many queries -------------------------------------------------------------------------------

// One task's buffers: rows of q, scores, sums; packed keys and values of a block.
template <class C>
struct Buffers {
    C *q, *p, *keys, *values;
    float *scores, *sums;
    Partial* partial;
};

// Products in f32 (C float) or in bf16 with f32 sums (C bf16).
struct InF32 {
    using Cell = float;
    template <class T>
    static void pack(const Table& t, const T* k, const T* v, int64_t row, int64_t n, int64_t width, int64_t,
                     int64_t lines, float* keys, float* values) {
        Ops<T>::pack_keys(t)(k, row, n, width, keys);
        Ops<T>::pack_values(t)(v, row, n, lines, width, values);
    }
    static void multiply(const Table& t, const float* panels, int64_t step, int64_t np, const float* x, int64_t xs,
                         int64_t rows, int64_t k, float* y, int64_t ys, bool accumulate) {
        t.gemm_f32(panels, step, np, x, xs, rows, k, y, ys, accumulate);
    }
    static int64_t inputs(int64_t n) { return n; }
    static void weights(const Table&, const float*, int64_t, int64_t, float*) {}
    template <class T>
    static void query(const Table& t, const T* x, int64_t r, int64_t n, int64_t width, float* q) {
        widen_row(t, x, n, q + r * width);
    }
    static constexpr bool kShared = true;  // p are the scores themselves
};
struct InBf16 {
    using Cell = bf16;
    static void pack(const Table& t, const bf16* k, const bf16* v, int64_t row, int64_t n, int64_t width, int64_t,
                     int64_t lines, bf16* keys, bf16* values) {
        t.pack_keys_h(k, row, n, width, keys);
        t.pack_values_h(v, row, n, lines, width, values);
    }
    static void multiply(const Table& t, const bf16* panels, int64_t step, int64_t np, const bf16* x, int64_t xs,
                         int64_t rows, int64_t k, float* y, int64_t ys, bool accumulate) {
        t.gemm_bf16(panels, step, np, x, xs, rows, k, y, ys, accumulate);
    }
    static int64_t inputs(int64_t n) { return round_up(n, kBlock); }
    static void weights(const Table& t, const float* s, int64_t r, int64_t n, bf16* p) {
        for (int64_t j = 0; j < n; j += kBlock) t.narrow(s + j, kBlock, p + tile_cell(t.tiles, r, j, kBlockKeys));
    }
    static void query(const Table& t, const bf16* x, int64_t r, int64_t n, int64_t width, bf16* q) {
        for (int64_t d = 0; d < n; d += kBlock) {
            const int64_t left = n - d < kBlock ? n - d : kBlock;
            std::memcpy(q + tile_cell(t.tiles, r, d, width), x + d, static_cast<size_t>(left) * 2);
        }
    }
    static constexpr bool kShared = false;
};

// Rows of one task: `count` queries from `first` of each query head of the group, head by head.
template <class Mode, class T>
struct Block {
    using C = typename Mode::Cell;
    const Attention<T>& a;
    const Table& t;
    const Dense<T> dense;
    int64_t task, first, count;
    int64_t rows, padded_width, columns;
    Buffers<C> b;

    Block(const Attention<T>& args, int64_t task_, int64_t first_, int64_t count_, Scratch& s)
        : a(args), t(table()), dense{args}, task(task_), first(first_), count(count_) {
        rows = count * dense.group();
        padded_width = Mode::inputs(a.width);
        columns = round_up(a.width, kPanel);
        const int64_t held = round_up(rows, 16);
        b.q = s.take<C>(held * padded_width);
        b.scores = s.take<float>(held * kBlockKeys);
        b.p = Mode::kShared ? reinterpret_cast<C*>(b.scores) : s.take<C>(held * kBlockKeys);
        b.sums = s.take<float>(held * columns);
        b.partial = s.take<Partial>(rows);
        b.keys = s.take<C>(kBlockKeys * padded_width);
        b.values = s.take<C>(kBlockKeys * columns);
        std::memset(static_cast<void*>(b.q), 0, static_cast<size_t>(held * padded_width) * sizeof(C));
        if (!Mode::kShared) std::memset(static_cast<void*>(b.p), 0, static_cast<size_t>(held * kBlockKeys) * sizeof(C));
        std::memset(b.sums, 0, static_cast<size_t>(held * columns) * 4);
        for (int64_t r = 0; r < rows; ++r) {
            Mode::query(t, dense.q(task, row_of(r)), r, a.width, padded_width, b.q);
            b.partial[r] = {kNone, 0.0f};
        }
    }

    int64_t query(int64_t r) const { return first + r % count; }
    int64_t row_of(int64_t r) const { return r / count * a.queries + query(r); }
    int64_t limit(int64_t r) const { return limit_of(a, task / a.kv_heads, query(r)); }

    void run() {
        int64_t most = 0;
        for (int64_t i = 0; i < count; ++i) most = limit(i) > most ? limit(i) : most;
        for (int64_t from = 0; from < most; from += kBlockKeys) {
            keys(from, most - from < kBlockKeys ? most - from : kBlockKeys);
        }
        write();
    }

    void keys(int64_t from, int64_t n) {
        const int64_t at = dense.start(task) + from * a.kv_row;
        const int64_t lines = Mode::inputs(n), panels = panel_count(n);
        Mode::pack(t, a.k + at, a.v + at, a.kv_row, n, a.width, padded_width, lines, b.keys, b.values);
        Mode::multiply(t, b.keys, padded_width * kPanel, panels, b.q, padded_width, rows, padded_width,
                       b.scores, kBlockKeys, false);
        for (int64_t r = 0; r < rows; ++r) soften(r, limit(r) - from, n, lines);
        Mode::multiply(t, b.values, lines * kPanel, columns / kPanel, b.p, kBlockKeys, rows, lines, b.sums,
                       columns, true);
    }

    void soften(int64_t r, int64_t seen, int64_t n, int64_t lines) {
        float* s = b.scores + r * kBlockKeys;
        seen = seen < 0 ? 0 : seen < n ? seen : n;
        if (seen > 0) {
            const float by = t.soften(s, seen, a.scale, &b.partial[r].peak, &b.partial[r].total);
            if (by != 1.0f) t.scale_row(b.sums + r * columns, columns, by);
        }
        for (int64_t j = seen; j < lines; ++j) s[j] = 0.0f;
        Mode::weights(t, s, r, lines, b.p);
    }

    void write() {
        for (int64_t r = 0; r < rows; ++r) {
            float* sum = b.sums + r * columns;
            if (limit(r) == 0) {
                dense.mean(task, sum);
            } else {
                t.scale_row(sum, a.width, 1.0f / b.partial[r].total);
            }
            narrow_row(t, sum, a.width, dense.out(task, row_of(r)));
        }
    }
};

template <class Mode, class T>
void many(const Attention<T>& a) {
    const int64_t group = a.heads / a.kv_heads;
    int64_t count = round_up(kBlockRows / group > 0 ? kBlockRows / group : 1, 16);
    // Short prompts: enough tasks for all threads.
    const int64_t tasks = a.batch * a.kv_heads;
    while (count > 16 && tasks * ((a.queries + count - 1) / count) < 2 * pool().threads() && pool().threads() > 1) count -= 16;
    const int64_t blocks = (a.queries + count - 1) / count;
    pool().run(tasks * blocks, [&](int64_t i) {
        Scratch scratch;
        // Later blocks see more keys: early and late ones in turn even out the threads' parts.
        const int64_t task = i % tasks, turn = i / tasks;
        const int64_t block = turn % 2 == 0 ? turn / 2 : blocks - 1 - turn / 2;
        const int64_t first = block * count;
        Block<Mode, T>(a, task, first, a.queries - first < count ? a.queries - first : count, scratch).run();
    });
}

template <class T>
bool nothing(const Attention<T>& a) {
    return a.batch <= 0 || a.heads <= 0 || a.kv_heads <= 0 || a.queries <= 0 || a.width <= 0 || a.keys <= 0;
}

template <class T>
void prefix_few(const Attention<T>& a) {
    int64_t longest = 0;
    for (int64_t b = 0; b < a.batch; ++b) {
        for (int64_t i = 0; i < a.queries; ++i) longest = limit_of(a, b, i) > longest ? limit_of(a, b, i) : longest;
    }
    few(Dense<T>{a}, a.batch * a.kv_heads, a.heads / a.kv_heads * a.queries, a.width, longest);
}

// --- any mask -----------------------------------------------------------------------------------

// One query head's row at a time; blocks in which nothing is seen are passed over.
template <class T>
void masked_row(const Attention<T>& a, const uint8_t* mask, const float* sink, const T* q, const T* k,
                const T* v, T* out) {
    const Table& t = table();
    Scratch scratch;
    auto* wide = scratch.take<float>(a.width);
    auto* sum = scratch.take<float>(a.width);
    auto* scores = scratch.take<float>(kChunk);
    widen_row(t, q, a.width, wide);
    std::memset(sum, 0, static_cast<size_t>(a.width) * 4);
    Partial p{kNone, 0.0f};
    bool any = false;
    for (int64_t from = 0; from < a.keys; from += kChunk) {
        const int64_t n = a.keys - from < kChunk ? a.keys - from : kChunk;
        int64_t seen = 0;
        for (int64_t j = 0; j < n; ++j) seen += mask[from + j] != 0;
        if (seen == 0) continue;
        any = true;
        Ops<T>::scores(t)(wide, 1, k + from * a.kv_row, a.kv_row, n, a.width, scores, kChunk);
        // Hidden keys take part with a score so low that their share is 0.
        t.scale_row(scores, n, a.scale);
        for (int64_t j = 0; j < n; ++j) {
            if (mask[from + j] == 0) scores[j] = kNone;
        }
        const float by = t.soften(scores, n, 1.0f, &p.peak, &p.total);
        if (by != 1.0f) t.scale_row(sum, a.width, by);
        for (int64_t j = 0; j < n; ++j) {
            if (mask[from + j] == 0) scores[j] = 0.0f;
        }
        Ops<T>::mix(t)(scores, 0, 1, v + from * a.kv_row, a.kv_row, n, a.width, sum);
    }
    if (!any && sink == nullptr) {
        mean_row(t, v, a.kv_row, a.keys, a.width, sum);
    } else if (any) {
        float total = p.total;
        if (sink != nullptr) {
            const float peak = *sink > p.peak ? *sink : p.peak;
            const float by = std::exp(p.peak - peak);
            t.scale_row(sum, a.width, by);
            total = total * by + std::exp(*sink - peak);
        }
        t.scale_row(sum, a.width, 1.0f / total);
    }
    narrow_row(t, sum, a.width, out);
}

template <class T>
void masked(const Attention<T>& a, const uint8_t* mask, int64_t mask_batch, int64_t mask_query,
            const float* sinks) {
    if (nothing(a)) return;
    const int64_t group = a.heads / a.kv_heads, rows = a.batch * a.heads * a.queries;
    pool().ranges(rows, (1 << 16) / (a.keys * a.width + 1) + 1, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
            const int64_t i = r % a.queries, h = r / a.queries % a.heads, b = r / a.queries / a.heads;
            const int64_t at = b * a.kv_batch + h / group * a.kv_head;
            masked_row(a, mask + b * mask_batch + i * mask_query, sinks == nullptr ? nullptr : sinks + h,
                       a.q + b * a.q_batch + h * a.q_head + i * a.q_row, a.k + at, a.v + at,
                       a.out + b * a.out_batch + h * a.out_head + i * a.out_row);
        }
    });
}

template <class T>
void paged(const PagedAttention<T>& a) {
    if (a.tokens <= 0 || a.heads <= 0 || a.kv_heads <= 0 || a.width <= 0 || a.places <= 0) return;
    int64_t longest = 0;
    const Paged<T> source{a};
    for (int64_t i = 0; i < a.tokens; ++i) {
        const int64_t n = source.limit(i * a.kv_heads, 0);
        longest = n > longest ? n : longest;
    }
    // In rounds, so that the sums of chunks take little memory.
    const int64_t chunks = (longest + kChunk - 1) / kChunk + 1;
    const int64_t a_token = a.heads * chunks * (a.width + 2);
    const int64_t round = (int64_t{1} << 21) / a_token + 1;
    for (int64_t from = 0; from < a.tokens; from += round) {
        PagedAttention<T> part = a;
        part.tokens = a.tokens - from < round ? a.tokens - from : round;
        part.q += from * a.q_token;
        part.out += from * a.out_token;
        part.positions += from;
        if (a.rows != nullptr) {
            part.rows += from;
        } else {
            part.table += from * a.pages;
        }
        few(Paged<T>{part}, part.tokens * a.kv_heads, a.heads / a.kv_heads, a.width, longest);
    }
}

}  // namespace

void attention_prefix(const Attention<float>& a) {
    if (nothing(a)) return;
    if (a.queries <= kFewQueries) {
        prefix_few(a);
    } else {
        many<InF32>(a);
    }
}

void attention_prefix(const Attention<bf16>& a) {
    if (nothing(a)) return;
    if (a.queries <= kFewQueries) {
        prefix_few(a);
    } else if (table().gemm_bf16 != nullptr) {
        many<InBf16>(a);
    } else {
        many<InF32>(a);
    }
}

void attention_masked(const Attention<float>& a, const uint8_t* mask, int64_t mask_batch,
                      int64_t mask_query, const float* sinks) {
    masked(a, mask, mask_batch, mask_query, sinks);
}

void attention_masked(const Attention<bf16>& a, const uint8_t* mask, int64_t mask_batch,
                      int64_t mask_query, const float* sinks) {
    masked(a, mask, mask_batch, mask_query, sinks);
}

void paged_attention(const PagedAttention<float>& a) { paged(a); }
void paged_attention(const PagedAttention<bf16>& a) { paged(a); }

int64_t check_pages(const int32_t* table, int64_t table_rows, int64_t pages, int64_t page_size,
                    int64_t places, const int32_t* rows, const int32_t* positions, int64_t tokens) {
    for (int64_t i = 0; i < tokens; ++i) {
        const int64_t row = rows != nullptr ? rows[i] : i;
        if (row < 0 || row >= table_rows) return i;
        int64_t seen = int64_t{positions[i]} + 1;
        seen = seen > pages * page_size ? pages * page_size : seen;
        const int64_t used = seen <= 0 ? 0 : (seen + page_size - 1) / page_size;
        for (int64_t p = 0; p < used; ++p) {
            const int64_t page = table[row * pages + p];
            const int64_t last = p + 1 < used ? page_size : seen - p * page_size;
            if (page < 0 || page > places / page_size || page * page_size + last > places) return i;
        }
    }
    return -1;
}

}  // namespace linnet
