// Memory: regions on huge pages for weights, and a per-thread scratch stack.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace linnet {

// `bytes` (64-aligned, zeroed) inside a region shared with neighbours made at about the same time;
// `hold` keeps it alive. Throws std::bad_alloc.
uint8_t* weight_memory(int64_t bytes, std::shared_ptr<void>* hold);

// Temporary memory of the calling thread, released in reverse order. Throws std::bad_alloc.
class Scratch {
public:
    Scratch();
    ~Scratch();
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    // `count` objects of T at a multiple of 64 bytes, not initialised.
    template <class T>
    T* take(int64_t count) {
        return static_cast<T*>(bytes(static_cast<size_t>(count) * sizeof(T)));
    }

private:
    void* bytes(size_t n);
    size_t block_, used_;
};

}  // namespace linnet
