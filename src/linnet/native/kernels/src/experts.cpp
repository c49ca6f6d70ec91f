// Products with chosen experts: rows grouped by expert, each chosen expert's weights read once.
#include <memory>

#include "memory.h"
#include "table.h"

namespace linnet {
namespace {

constexpr int64_t kTaskBytes = 48 << 10;  // of weights a task reads at least
constexpr int64_t kTasks = 8;             // a thread, so that the last ones end together
constexpr int64_t kRows = 256;            // whose results a task holds before they are written

int64_t padded(int64_t outputs) { return panel_count(outputs) * kPanel; }

// Experts' matrices as `pack_experts` lays them out.
struct Packed {
    const PackedMatrix& w;
    int64_t outputs;

    int64_t panel_bytes() const { return layout_of(w.kind(), w.cols(), w.group()).bytes; }
    PackedMatrix part(int64_t expert, int64_t from, int64_t to) const {
        const int64_t first = expert * padded(outputs);
        return w.part(first + from, first + to);
    }
    void product(const float* x, int64_t n, int64_t expert, int64_t from, int64_t to, float* y) const {
        linear(part(expert, from, to), x, n, y);
    }
    void product(const bf16* x, int64_t n, int64_t expert, int64_t from, int64_t to, float* y) const {
        linear_bf16_f32(part(expert, from, to), x, n, y);
    }
};

// As they are; bf16 is widened first.
template <class T>
struct Plain {
    const T* w;
    int64_t outputs, cols;

    int64_t panel_bytes() const { return kPanel * cols * static_cast<int64_t>(sizeof(T)); }
    void product(const T* x, int64_t n, int64_t expert, int64_t from, int64_t to, float* y) const {
        const T* rows = w + (expert * outputs + from) * cols;
        if constexpr (sizeof(T) == 4) {
            matmul(x, rows, y, 1, n, to - from, cols, true, 0, 0);
        } else {
            Scratch scratch;
            float* a = scratch.take<float>(n * cols);
            float* b = scratch.take<float>((to - from) * cols);
            table().widen(x, n * cols, a);
            table().widen(rows, (to - from) * cols, b);
            matmul(a, b, y, 1, n, to - from, cols, true, 0, 0);
        }
    }
};

// The places of `chosen` that name one expert: order[first] on.
struct Group {
    int64_t expert, first, count;
};

struct Groups {
    const int64_t* order;
    const Group* list;
    int64_t count;
};

int64_t first_outside(const int64_t* chosen, int64_t count, int64_t experts) {
    for (int64_t i = 0; i < count; ++i) {
        if (chosen[i] < 0 || chosen[i] >= experts) return i;
    }
    return -1;
}

Groups grouped(const int64_t* chosen, int64_t count, int64_t experts, Scratch& scratch) {
    int64_t* start = scratch.take<int64_t>(experts + 1);
    std::memset(start, 0, static_cast<size_t>(experts + 1) * sizeof(int64_t));
    for (int64_t i = 0; i < count; ++i) ++start[chosen[i] + 1];
    Group* list = scratch.take<Group>(experts < count ? experts : count);
    int64_t active = 0;
    for (int64_t e = 0; e < experts; ++e) {
        const int64_t n = start[e + 1];
        if (n > 0) list[active++] = {e, start[e], n};
        start[e + 1] += start[e];
    }
    int64_t* order = scratch.take<int64_t>(count);
    for (int64_t i = 0; i < count; ++i) order[start[chosen[i]]++] = i;
    return {order, list, active};
}

template <class T>
const T* row_of(const Chosen<T>& a, int64_t place) {
    return a.x + (a.shared ? place / a.k : place) * a.cols;
}

// put(place, y) for each place of the group, y being outputs [from, to) of its product.
template <class T, class Weights, class Put>
void run_group(const Chosen<T>& a, const Weights& w, const int64_t* order, const Group& g,
               int64_t from, int64_t to, Put&& put) {
    Scratch scratch;
    const int64_t most = g.count < kRows ? g.count : kRows, width = to - from;
    T* gathered = scratch.take<T>(most * a.cols);
    float* y = scratch.take<float>(most * width);
    for (int64_t r = 0; r < g.count; r += most) {
        const int64_t n = g.count - r < most ? g.count - r : most;
        const int64_t* places = order + g.first + r;
        const T* x = row_of(a, places[0]);
        if (n > 1) {
            for (int64_t i = 0; i < n; ++i) {
                std::memcpy(gathered + i * a.cols, row_of(a, places[i]), static_cast<size_t>(a.cols) * sizeof(T));
            }
            x = gathered;
        }
        w.product(x, n, g.expert, from, to, y);
        for (int64_t i = 0; i < n; ++i) put(places[i], y + i * width);
    }
}

void put_row(const float* x, int64_t n, float* y) {
    std::memcpy(y, x, static_cast<size_t>(n) * sizeof(float));
}
void put_row(const float* x, int64_t n, bf16* y) { table().narrow(x, n, y); }

// Outputs a task has: `parts` tasks share them, each reading at least kTaskBytes.
int64_t outputs_a_task(int64_t outputs, int64_t parts, int64_t panel_bytes) {
    const int64_t panels = panel_count(outputs);
    const int64_t least = kTaskBytes / (panel_bytes + 1) + 1;
    const int64_t share = (panels + parts - 1) / (parts < 1 ? 1 : parts);
    return (share > least ? share : least) * kPanel;
}

template <class T, class Weights>
int64_t products(const Weights& w, const Chosen<T>& a, T* y) {
    const int64_t places = a.rows * a.k;
    const int64_t bad = first_outside(a.chosen, places, a.experts);
    if (bad >= 0 || places <= 0 || a.outputs <= 0) return bad;
    Scratch scratch;
    const Groups groups = grouped(a.chosen, places, a.experts, scratch);
    const int64_t each = outputs_a_task(a.outputs, pool().threads() * kTasks / groups.count + 1, w.panel_bytes());
    const int64_t parts = (a.outputs + each - 1) / each;
    pool().run(groups.count * parts, [&](int64_t task) {
        const int64_t from = task % parts * each;
        const int64_t to = a.outputs - from < each ? a.outputs : from + each;
        run_group(a, w, groups.order, groups.list[task / parts], from, to, [&](int64_t place, const float* x) {
            put_row(x, to - from, y + place * a.outputs + from);
        });
    });
    return -1;
}

// Each task sums its outputs over all experts, so that sums need no memory of their own.
template <class T, class Weights>
int64_t combined(const Weights& w, const Chosen<T>& a, const T* weights, T* y) {
    const int64_t places = a.rows * a.k;
    const int64_t bad = first_outside(a.chosen, places, a.experts);
    if (bad >= 0 || a.rows <= 0 || a.outputs <= 0) return bad;
    Scratch scratch;
    const Groups groups = grouped(a.chosen, places, a.experts, scratch);
    float* by = scratch.take<float>(places);
    if constexpr (sizeof(T) == 4) {
        put_row(weights, places, by);
    } else {
        table().widen(weights, places, by);
    }
    const int64_t each = outputs_a_task(a.outputs, pool().threads() * kTasks, w.panel_bytes() * groups.count);
    pool().run((a.outputs + each - 1) / each, [&](int64_t task) {
        Scratch own;
        const int64_t from = task * each, to = a.outputs - from < each ? a.outputs : from + each;
        const int64_t width = to - from;
        float* sums = own.take<float>(a.rows * width);
        for (int64_t i = 0; i < a.rows * width; ++i) sums[i] = 0.0f;
        for (int64_t g = 0; g < groups.count; ++g) {
            run_group(a, w, groups.order, groups.list[g], from, to, [&](int64_t place, const float* x) {
                float* row = sums + place / a.k * width;
                for (int64_t o = 0; o < width; ++o) row[o] += by[place] * x[o];
            });
        }
        for (int64_t r = 0; r < a.rows; ++r) put_row(sums + r * width, width, y + r * a.outputs + from);
    });
    return -1;
}

float value_of(float x) { return x; }
float value_of(bf16 x) { return to_float(x); }

template <class T>
void largest(const T* x, int64_t rows, int64_t n, int64_t k, int64_t* y) {
    if (k <= 0) return;
    pool().ranges(rows, (1 << 14) / (n + 1) + 1, [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
            const T* row = x + r * n;
            int64_t* best = y + r * k;
            int64_t have = 0;
            // Goes before what is there only where it is larger: the lower place is first among equals.
            const auto before = [&](float v, int64_t place) {
                const float u = value_of(row[place]);
                return v > u || (v != v && u == u);
            };
            for (int64_t i = 0; i < n; ++i) {
                const float v = value_of(row[i]);
                if (have == k && !before(v, best[k - 1])) continue;
                int64_t at = have < k ? have++ : k - 1;
                for (; at > 0 && before(v, best[at - 1]); --at) best[at] = best[at - 1];
                best[at] = i;
            }
        }
    });
}

}  // namespace

PackedMatrix pack_experts(WeightKind kind, const PackSource& all, int64_t experts, int64_t cols,
                          int64_t group) {
    const int64_t outputs = experts > 0 ? all.rows / experts : 0;
    const int64_t missing = padded(outputs) - outputs;
    if (missing == 0) return pack_joined(kind, &all, 1, cols, group);
    const int64_t row = all.blocks == 0 ? cols * (all.is_bf16 ? 2 : 4)
                                        : cols / kBlock * (all.blocks == 1 ? 34 : all.blocks == 2 ? 18 : 20);
    const auto zeros = std::make_unique<char[]>(static_cast<size_t>(missing * row + 1));
    const auto parts = std::make_unique<PackSource[]>(static_cast<size_t>(2 * experts));
    for (int64_t e = 0; e < experts; ++e) {
        PackSource& own = parts[static_cast<size_t>(2 * e)];
        own = all;
        own.data = static_cast<const char*>(all.data) + e * outputs * row;
        own.rows = outputs;
        PackSource& rest = parts[static_cast<size_t>(2 * e + 1)];
        rest = all;
        rest.data = zeros.get();
        rest.rows = missing;
    }
    return pack_joined(kind, parts.get(), 2 * experts, cols, group);
}

void unpack_experts(const PackedMatrix& w, int64_t experts, int64_t outputs, float* y) {
    for (int64_t e = 0; e < experts; ++e) {
        const int64_t first = e * padded(outputs);
        unpack_rows(w, first, first + outputs, y + e * outputs * w.cols());
    }
}

int64_t linear_experts(const PackedMatrix& w, const Chosen<float>& a, float* y) {
    return products(Packed{w, a.outputs}, a, y);
}
int64_t linear_experts(const PackedMatrix& w, const Chosen<bf16>& a, bf16* y) {
    return products(Packed{w, a.outputs}, a, y);
}
int64_t linear_experts(const float* w, const Chosen<float>& a, float* y) {
    return products(Plain<float>{w, a.outputs, a.cols}, a, y);
}
int64_t linear_experts(const bf16* w, const Chosen<bf16>& a, bf16* y) {
    return products(Plain<bf16>{w, a.outputs, a.cols}, a, y);
}
int64_t combine_experts(const PackedMatrix& w, const Chosen<float>& a, const float* weights, float* y) {
    return combined(Packed{w, a.outputs}, a, weights, y);
}
int64_t combine_experts(const PackedMatrix& w, const Chosen<bf16>& a, const bf16* weights, bf16* y) {
    return combined(Packed{w, a.outputs}, a, weights, y);
}
int64_t combine_experts(const float* w, const Chosen<float>& a, const float* weights, float* y) {
    return combined(Plain<float>{w, a.outputs, a.cols}, a, weights, y);
}
int64_t combine_experts(const bf16* w, const Chosen<bf16>& a, const bf16* weights, bf16* y) {
    return combined(Plain<bf16>{w, a.outputs, a.cols}, a, weights, y);
}

void top_k(const float* x, int64_t rows, int64_t n, int64_t k, int64_t* y) { largest(x, rows, n, k, y); }
void top_k(const bf16* x, int64_t rows, int64_t n, int64_t k, int64_t* y) { largest(x, rows, n, k, y); }

}  // namespace linnet
