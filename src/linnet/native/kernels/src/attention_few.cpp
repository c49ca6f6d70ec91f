// Attention of few queries: each (sequence, key/value head, chunk of keys) is a task that leaves a peak,
// a total and a mix; the chunks are put together afterwards. Chunks depend on the keys alone, so results
// don't depend on the number of threads.
#include "attention.h"

namespace linnet {
namespace {

constexpr int64_t kChunk = 256;  // keys a task

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
        bool alike = true;  // all rows see the same keys
        for (int64_t r = 0; r < rows; ++r) {
            const int64_t limit = s.limit(task, r) - from;
            alike &= s.limit(task, r) == s.limit(task, 0);
            most = limit > most ? limit : most;
            p[r] = {kNone, 0.0f};
        }
        if (most <= 0) return;
        most = most < kChunk ? most : kChunk;
        std::memset(mix, 0, static_cast<size_t>(rows * width) * 4);
        for (int64_t r = 0; r < rows; ++r) widen_row(t, s.q(task, r), width, q + r * width);
        s.runs(task, from, from + most, [&](const T* k, const T* v, int64_t row, int64_t j, int64_t n) {
            Ops<T>::scores(t)(q, rows, k, v, row, n, width, scores + j, kChunk);
        });
        for (int64_t r = 0; r < rows; ++r) {
            const int64_t limit = s.limit(task, r) - from;
            const int64_t n = limit < most ? limit : most;
            if (n > 0) t.soften(scores + r * kChunk, n, s.scale(), &p[r].peak, &p[r].total);
            for (int64_t j = n > 0 ? n : 0; j < most; ++j) scores[r * kChunk + j] = 0.0f;
        }
        s.runs(task, from, from + most, [&](const T*, const T* v, int64_t row, int64_t j, int64_t n) {
            if (alike) return Ops<T>::mix(t)(scores + j, kChunk, rows, v, row, n, width, mix);
            for (int64_t r = 0; r < rows; ++r) {
                const int64_t left = s.limit(task, r) - from - j;
                if (left > 0) Ops<T>::mix(t)(scores + r * kChunk + j, 0, 1, v, row, left < n ? left : n, width, mix + r * width);
            }
        });
    };
    // About 5 us of work a task at least.
    const int64_t cost = rows * width * (longest < kChunk ? longest : kChunk) + 1;
    pool().ranges(tasks * chunks, (1 << 15) / cost + 1, [&](int64_t begin, int64_t end) {
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
    int64_t limit(int64_t task, int64_t) const { return limit_of(a, task / a.kv_heads); }
    int64_t head(int64_t task, int64_t row) const { return task % a.kv_heads * group() + row; }
    const T* q(int64_t task, int64_t row) const { return a.q + task / a.kv_heads * a.q_token + head(task, row) * a.q_head; }
    T* out(int64_t task, int64_t row) const { return a.out + task / a.kv_heads * a.out_token + head(task, row) * a.out_head; }
    int64_t start(int64_t task) const { return task % a.kv_heads * a.places * a.width; }
    // A token that sees nothing looks at place 0 alone.
    void mean(int64_t task, float* y) const { widen_row(table(), a.v + start(task), a.width, y); }
    template <class F>
    void runs(int64_t task, int64_t from, int64_t to, F&& f) const {
        const int32_t* pages = a.table + row_of(a, task / a.kv_heads) * a.pages;
        each_run(pages, a.page_size, from, to, [&](int64_t place, int64_t j, int64_t n) {
            const int64_t at = start(task) + place * a.width;
            f(a.k + at, a.v + at, a.width, j, n);
        });
    }
};

}  // namespace

template <class T>
void attend_few(const Attention<T>& a) {
    int64_t longest = 0;
    for (int64_t b = 0; b < a.batch; ++b) {
        for (int64_t i = 0; i < a.queries; ++i) longest = limit_of(a, b, i) > longest ? limit_of(a, b, i) : longest;
    }
    few(Dense<T>{a}, a.batch * a.kv_heads, a.heads / a.kv_heads * a.queries, a.width, longest);
}

template <class T>
void attend_tokens(const PagedAttention<T>& a) {
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

template void attend_few(const Attention<float>&);
template void attend_few(const Attention<bf16>&);
template void attend_tokens(const PagedAttention<float>&);
template void attend_tokens(const PagedAttention<bf16>&);

}  // namespace linnet
