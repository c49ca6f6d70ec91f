#include "memory.h"

#include <sys/mman.h>

#include <cstdlib>
#include <mutex>
#include <new>
#include <vector>

#include "linnet/kernels.h"

namespace linnet {
namespace {

constexpr size_t kHuge = size_t{2} << 20;
constexpr size_t kRegion = size_t{64} << 20;

size_t up(size_t n, size_t to) { return (n + to - 1) / to * to; }

// A mapping that begins on a huge page: the slack in front and behind is given back.
void* map_huge(size_t bytes) {
    const size_t whole = up(bytes, kHuge);
    if (whole < bytes) return nullptr;
    void* raw = mmap(nullptr, whole + kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                     -1, 0);
    if (raw == MAP_FAILED) return nullptr;
    const auto start = reinterpret_cast<uintptr_t>(raw);
    const uintptr_t aligned = up(start, kHuge);
    char* base = static_cast<char*>(raw) + (aligned - start);
    if (aligned != start) munmap(raw, aligned - start);
    const size_t behind = kHuge - (aligned - start);
    if (behind != 0) munmap(base + whole, behind);
#if defined(MADV_HUGEPAGE)
    madvise(base, whole, MADV_HUGEPAGE);
#endif
    return base;
}

struct Region {
    char* base;
    size_t size;
    size_t used = 0;

    explicit Region(size_t bytes) : base(static_cast<char*>(map_huge(bytes))), size(up(bytes, kHuge)) {
        if (base == nullptr) throw std::bad_alloc();
    }
    ~Region() { munmap(base, size); }
    Region(const Region&) = delete;
    Region& operator=(const Region&) = delete;
};

std::mutex region_lock;
std::weak_ptr<Region> open_region;

}  // namespace

void* alloc_huge(size_t bytes) { return bytes == 0 ? nullptr : map_huge(bytes); }

void free_huge(void* data, size_t bytes) {
    if (data != nullptr) munmap(data, up(bytes, kHuge));
}

uint8_t* weight_memory(int64_t bytes, std::shared_ptr<void>* hold) {
    const size_t wanted = up(static_cast<size_t>(bytes), 64);
    const std::lock_guard<std::mutex> guard(region_lock);
    std::shared_ptr<Region> region = open_region.lock();
    if (region == nullptr || region->size - region->used < wanted) {
        // A large matrix gets a region of its own, so that the open one isn't left half used.
        const bool own = wanted > kRegion / 2;
        region = std::make_shared<Region>(own ? wanted : kRegion);
        if (!own) open_region = region;
    }
    char* at = region->base + region->used;
    region->used += wanted;
    *hold = region;
    return reinterpret_cast<uint8_t*>(at);
}

namespace {

// Blocks grow as needed and stay for the thread's next call.
struct Stack {
    struct Block {
        char* data;
        size_t size;
    };
    std::vector<Block> blocks;
    size_t block = 0, used = 0;

    ~Stack() {
        for (const Block& b : blocks) std::free(b.data);
    }

    void* take(size_t n) {
        n = up(n == 0 ? 1 : n, 64);
        while (block < blocks.size() && blocks[block].size - used < n) {
            ++block;
            used = 0;
        }
        if (block == blocks.size()) add(n);
        void* at = blocks[block].data + used;
        used += n;
        return at;
    }

    void add(size_t n) {
        const size_t last = blocks.empty() ? size_t{128} << 10 : blocks.back().size * 2;
        const size_t size = up(n > last ? n : last, 4096);
        blocks.reserve(blocks.size() + 1);
        auto* data = static_cast<char*>(std::aligned_alloc(4096, size));
        if (data == nullptr) throw std::bad_alloc();
        blocks.push_back({data, size});
        used = 0;
    }
};

Stack& stack() {
    static thread_local Stack s;
    return s;
}

}  // namespace

Scratch::Scratch() : block_(stack().block), used_(stack().used) {}

Scratch::~Scratch() {
    stack().block = block_;
    stack().used = used_;
}

void* Scratch::bytes(size_t n) { return stack().take(n); }

}  // namespace linnet
