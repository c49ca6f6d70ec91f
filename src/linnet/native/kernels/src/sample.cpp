// Choosing a token.
#include <algorithm>
#include <cmath>
#include <vector>

#include "table.h"

namespace linnet {
namespace {

struct Candidate {
    double weight;
    int32_t id;
};

bool before(const Candidate& a, const Candidate& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.id < b.id;
}

// How many of the most likely reach `top_p` of `total`.
size_t nucleus(const std::vector<Candidate>& sorted, double total, double top_p) {
    double sum = 0.0;
    for (size_t i = 0; i < sorted.size(); ++i) {
        sum += sorted[i].weight;
        if (sum >= top_p * total) return i + 1;
    }
    return sorted.size();
}

}  // namespace

int32_t sample(const float* logits, int64_t n, float temperature, int32_t top_k, float top_p,
               float min_p, double uniform) {
    const auto greedy = static_cast<int32_t>(table().argmax_f(logits, n));
    const double peak = logits[greedy];
    // Nothing to draw from: no temperature, NaN, or infinite logits.
    if (!(temperature > 0.0f) || !std::isfinite(peak)) return greedy;
    std::vector<Candidate> all(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) {
        const double w = std::exp((static_cast<double>(logits[i]) - peak) / static_cast<double>(temperature));
        all[static_cast<size_t>(i)] = {w, static_cast<int32_t>(i)};
    }
    if (top_k > 0 && static_cast<size_t>(top_k) < all.size()) {
        std::nth_element(all.begin(), all.begin() + top_k, all.end(), before);
        all.resize(static_cast<size_t>(top_k));
    }
    std::sort(all.begin(), all.end(), before);
    double total = 0.0;
    for (const Candidate& c : all) total += c.weight;
    if (top_p < 1.0f) all.resize(nucleus(all, total, static_cast<double>(top_p)));
    size_t kept = all.size();
    while (kept > 1 && all[kept - 1].weight < static_cast<double>(min_p) * all[0].weight) --kept;
    all.resize(kept);
    total = 0.0;
    for (const Candidate& c : all) total += c.weight;
    double left = uniform * total;
    for (const Candidate& c : all) {
        left -= c.weight;
        if (left < 0.0) return c.id;
    }
    return all.back().id;
}

}  // namespace linnet
