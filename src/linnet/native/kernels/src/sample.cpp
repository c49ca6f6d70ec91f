// Choosing a token.
#include <algorithm>
#include <cmath>
#include <utility>
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

// Candidates put in order only as far as somebody looks: most of the mass lies in front.
class Ranked {
public:
    explicit Ranked(std::vector<Candidate> all) : all_(std::move(all)), size_(all_.size()) {}

    size_t size() const { return size_; }
    void keep(size_t n) { size_ = n < size_ ? n : size_; }

    const Candidate& at(size_t i) {
        while (sorted_ <= i) {
            const size_t next = std::min(all_.size(), std::max<size_t>(64, sorted_ * 4));
            const auto from = all_.begin() + static_cast<std::ptrdiff_t>(sorted_);
            const auto to = all_.begin() + static_cast<std::ptrdiff_t>(next);
            if (next < all_.size()) std::nth_element(from, to, all_.end(), before);
            std::sort(from, to, before);
            sorted_ = next;
        }
        return all_[i];
    }

    double total() {
        double sum = 0.0;
        if (size_ == all_.size()) {
            for (const Candidate& c : all_) sum += c.weight;
        } else {
            for (size_t i = 0; i < size_; ++i) sum += at(i).weight;
        }
        return sum;
    }

private:
    std::vector<Candidate> all_;
    size_t size_, sorted_ = 0;
};

// Keeps the fewest of the most likely that reach `share` of the whole.
void keep_share(Ranked& r, double share) {
    const double wanted = share * r.total();
    double sum = 0.0;
    for (size_t i = 0; i < r.size(); ++i) {
        sum += r.at(i).weight;
        if (sum >= wanted) return r.keep(i + 1);
    }
}

void keep_above(Ranked& r, double weight) {
    for (size_t i = 1; i < r.size(); ++i) {
        if (r.at(i).weight < weight) return r.keep(i);
    }
}

// All, or the `top_k` largest, with their logits as weights.
std::vector<Candidate> candidates(const float* logits, int64_t n, int32_t top_k) {
    const auto wanted = static_cast<size_t>(top_k > 0 && top_k < n ? top_k : n);
    std::vector<Candidate> heap;
    heap.reserve(wanted);
    for (int64_t i = 0; i < n; ++i) {
        const Candidate c{static_cast<double>(logits[i]), static_cast<int32_t>(i)};
        if (heap.size() < wanted) {
            heap.push_back(c);
            if (heap.size() == wanted && top_k > 0) std::make_heap(heap.begin(), heap.end(), before);
        } else if (c.weight > heap.front().weight) {
            // The front is the least of those kept; an equal one that comes later is not better.
            std::pop_heap(heap.begin(), heap.end(), before);
            heap.back() = c;
            std::push_heap(heap.begin(), heap.end(), before);
        }
    }
    return heap;
}

}  // namespace

int32_t sample(const float* logits, int64_t n, float temperature, int32_t top_k, float top_p,
               float min_p, double uniform) {
    const auto greedy = static_cast<int32_t>(table().argmax_f(logits, n));
    const double peak = logits[greedy];
    // Nothing to draw from: no temperature, NaN, or infinite logits.
    if (!(temperature > 0.0f) || !std::isfinite(peak)) return greedy;
    std::vector<Candidate> all = candidates(logits, n, top_k);
    for (Candidate& c : all) c.weight = std::exp((c.weight - peak) / static_cast<double>(temperature));
    Ranked ranked(std::move(all));
    if (top_p < 1.0f) keep_share(ranked, static_cast<double>(top_p));
    if (min_p > 0.0f) keep_above(ranked, static_cast<double>(min_p) * ranked.at(0).weight);
    double left = uniform * ranked.total();
    // Sums in another order may leave a little over, which falls to the last that can be drawn at all.
    int32_t last = greedy;
    for (size_t i = 0; i < ranked.size() && ranked.at(i).weight > 0.0; ++i) {
        last = ranked.at(i).id;
        left -= ranked.at(i).weight;
        if (left < 0.0) break;
    }
    return last;
}

}  // namespace linnet
