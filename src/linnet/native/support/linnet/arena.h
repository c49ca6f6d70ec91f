// Memory for the temporaries of one call.
#pragma once

#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "linnet/errors.h"

namespace linnet::gen {

// --- memory --------------------------------------------------------------------------------------

template <class T>
LINNET_INLINE void copy(T* to, const T* from, int64_t count) {
  if (count > 0 && to != from) std::memmove(to, from, static_cast<size_t>(count) * sizeof(T));
}

// Temporaries of one call, one after another; a scope gives back what was taken in it.
class Arena {
 public:
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena() {
    for (Block& block : blocks_) std::free(block.data);
  }

  template <class T>
  T* take(int64_t count) {
    int64_t bytes = 0;
    if (count < 0 || __builtin_mul_overflow(count, static_cast<int64_t>(sizeof(T)), &bytes) ||
        bytes > (int64_t{1} << 46))
      throw std::bad_alloc();
    return static_cast<T*>(raw((bytes + 63) & ~int64_t{63}));
  }

  struct Mark {
    size_t block;
    int64_t used;
  };
  Mark mark() const { return Mark{at_, blocks_.empty() ? 0 : blocks_[at_].used}; }
  void release(Mark mark) {
    for (size_t k = mark.block + 1; k < blocks_.size(); ++k) blocks_[k].used = 0;
    at_ = mark.block;
    if (!blocks_.empty()) blocks_[at_].used = mark.used;
  }

 private:
  struct Block {
    void* data;
    int64_t size;
    int64_t used;
  };

  void* raw(int64_t bytes) {
    if (bytes == 0) bytes = 64;
    while (at_ < blocks_.size()) {
      Block& block = blocks_[at_];
      if (block.size - block.used >= bytes) {
        void* found = static_cast<char*>(block.data) + block.used;
        block.used += bytes;
        return found;
      }
      if (at_ + 1 == blocks_.size()) break;
      ++at_;
    }
    const int64_t least_size = blocks_.empty() ? int64_t{1} << 20 : blocks_.back().size * 2;
    const int64_t size = bytes > least_size ? bytes : least_size;
    void* data = std::aligned_alloc(64, static_cast<size_t>(size));
    if (data == nullptr) throw std::bad_alloc();
    try {
      blocks_.push_back(Block{data, size, bytes});
    } catch (...) {
      std::free(data);
      throw;
    }
    at_ = blocks_.size() - 1;
    return data;
  }

  std::vector<Block> blocks_;
  size_t at_ = 0;
};

class Scope {
 public:
  explicit Scope(Arena& arena) : arena_(arena), mark_(arena.mark()) {}
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope() { arena_.release(mark_); }

 private:
  Arena& arena_;
  Arena::Mark mark_;
};

}  // namespace linnet::gen
