// Which weights came after which: a model's products run in the same order at every step, so the next
// ones can be asked for while threads wait for the work in between (Pool::soon).
#pragma once

#include <array>
#include <atomic>

#include "layout.h"
#include "table.h"

namespace linnet {

// A table of addresses that are never followed, so that a matrix may go at any time; two that clash lose
// a hint. Threads may note at once.
class Order {
public:
    // The weights that came after `w` the last time, or nothing. `w` comes after this thread's last.
    Soon note(const Panels& w, int64_t bytes) {
        static thread_local const uint8_t* last = nullptr;
        Entry& before = of(last);
        before.key.store(last, std::memory_order_relaxed);
        before.next.store(w.data, std::memory_order_relaxed);
        before.bytes.store(bytes, std::memory_order_relaxed);
        last = w.data;
        const Entry& own = of(last);
        if (own.key.load(std::memory_order_relaxed) != last) return {};
        return {own.next.load(std::memory_order_relaxed), own.bytes.load(std::memory_order_relaxed)};
    }

private:
    struct Entry {
        std::atomic<const uint8_t*> key{nullptr}, next{nullptr};
        std::atomic<int64_t> bytes{0};
    };
    static constexpr int kBits = 12;

    Entry& of(const uint8_t* data) {
        return entries_[reinterpret_cast<uintptr_t>(data) / kLine * 0x9E3779B97F4A7C15u >> (64 - kBits)];
    }

    std::array<Entry, 1 << kBits> entries_;
};

}  // namespace linnet
