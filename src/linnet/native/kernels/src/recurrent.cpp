// The gated delta rule: sequences, heads and columns over threads.
#include "memory.h"
#include "table.h"

namespace linnet {
namespace {

constexpr int64_t kColumns = 64;

// Tokens [first, first + count) of the line, from `start` (null: zeros) to `after` (null: dropped).
struct Run {
    int64_t first, count;
    const float* start;
    float* after;
};

template <class T>
void head_columns(const DeltaRule<T>& d, const Run& run, int64_t head, int64_t column, float* work) {
    const int64_t key_head = head / (d.heads / d.key_heads);
    const int64_t qk = (run.first * d.key_heads + key_head) * d.keys;
    const int64_t v = (run.first * d.heads + head) * d.width + column;
    const int64_t memory = head * d.keys * d.width + column;
    DeltaColumns c;
    c.q = d.q + qk, c.k = d.k + qk, c.v = d.v + v;
    c.decay = d.decay + run.first * d.heads + head, c.beta = d.beta + run.first * d.heads + head;
    c.start = run.start == nullptr ? nullptr : run.start + memory;
    c.after = run.after == nullptr ? nullptr : run.after + memory;
    c.out = d.out + v;
    c.qk_token = d.key_heads * d.keys, c.v_token = d.heads * d.width, c.gate_token = d.heads;
    c.tokens = run.count, c.keys = d.keys, c.row = d.width, c.scale = d.scale, c.work = work;
    c.columns = d.width - column < kColumns ? d.width - column : kColumns;
    if constexpr (sizeof(T) == 2) {
        table().delta_h(c);
    } else {
        table().delta_f(c);
    }
}

template <class T>
void all_runs(const DeltaRule<T>& d, const Run* runs, int64_t count) {
    if (d.heads <= 0 || d.width <= 0 || count <= 0) return;
    const int64_t parts = (d.width + kColumns - 1) / kColumns;
    int64_t tokens = 0;
    for (int64_t i = 0; i < count; ++i) tokens += runs[i].count;
    const int64_t work = (tokens / count + 1) * d.keys * (d.width < kColumns ? d.width : kColumns);
    pool().ranges(count * d.heads * parts, (1 << 14) / (work + 1) + 1, [&](int64_t begin, int64_t end) {
        Scratch scratch;
        float* room = scratch.take<float>(d.keys * (kColumns + 2) + 1);
        for (int64_t i = begin; i < end; ++i) {
            head_columns(d, runs[i / parts / d.heads], i / parts % d.heads, i % parts * kColumns, room);
        }
    });
}

template <class T>
void rule(const DeltaRule<T>& d) {
    Scratch scratch;
    Run* runs = scratch.take<Run>(d.batch);
    const int64_t memory = d.heads * d.keys * d.width;
    for (int64_t b = 0; b < d.batch; ++b) {
        runs[b] = {b * d.tokens, d.tokens, d.start + b * memory, d.after + b * memory};
    }
    all_runs(d, runs, d.batch);
}

template <class T>
void rule_packed(const DeltaRule<T>& d, const int32_t* rows, const int32_t* segments) {
    const int64_t memory = d.heads * d.keys * d.width;
    if (d.after != d.start && d.batch * memory > 0) {
        std::memcpy(d.after, d.start, static_cast<size_t>(d.batch * memory) * sizeof(float));
    }
    Scratch scratch;
    Run* runs = scratch.take<Run>(d.tokens);
    int64_t* writer = scratch.take<int64_t>(d.batch);  // the run whose memory a row gets
    for (int64_t r = 0; r < d.batch; ++r) writer[r] = -1;
    const auto known = [&](int64_t t) { return rows[t] >= 0 && rows[t] < d.batch; };
    int64_t count = 0;
    for (int64_t t = 0; t < d.tokens; ++t) {
        if (t == 0 || segments[t] != segments[t - 1]) {
            runs[count++] = {t, 0, known(t) ? d.start + rows[t] * memory : nullptr, nullptr};
        }
        ++runs[count - 1].count;
        const bool ends = t + 1 == d.tokens || segments[t + 1] != segments[t];
        if (ends && known(t)) writer[rows[t]] = count - 1;
    }
    for (int64_t r = 0; r < d.batch; ++r) {
        if (writer[r] >= 0) runs[writer[r]].after = d.after + r * memory;
    }
    all_runs(d, runs, count);
}

}  // namespace

void delta_rule(const DeltaRule<float>& d) { rule(d); }
void delta_rule(const DeltaRule<bf16>& d) { rule(d); }
void delta_rule_packed(const DeltaRule<float>& d, const int32_t* rows, const int32_t* segments) {
    rule_packed(d, rows, segments);
}
void delta_rule_packed(const DeltaRule<bf16>& d, const int32_t* rows, const int32_t* segments) {
    rule_packed(d, rows, segments);
}

}  // namespace linnet
