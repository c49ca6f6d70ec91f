// Where the time of calls goes, by path of calls. Only code generated with a profile uses it.
#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

namespace linnet::gen {

// A tree of places: a place's own time is what was spent in it and in none that it opened.
class Profile {
 public:
  struct Node {
    int64_t parent, place, calls, nanoseconds;
  };

  // A call begins, whatever an earlier one that failed left open.
  void begin() {
    if (nodes_.empty()) nodes_.push_back(Node{-1, -1, 0, 0});
    open_ = 0;
    ++nodes_[0].calls;
    since_ = now();
  }
  void end() { count(); }

  void enter(int64_t place) {
    count();
    open_ = child(place);
    ++nodes_[open_].calls;
  }
  void leave() {
    count();
    open_ = static_cast<size_t>(nodes_[open_].parent);
  }

  // Copies up to `capacity` nodes, parents first; how many there are.
  int64_t read(Node* to, int64_t capacity) const {
    const auto size = static_cast<int64_t>(nodes_.size());
    for (int64_t k = 0; k < size && k < capacity; ++k) to[k] = nodes_[static_cast<size_t>(k)];
    return size;
  }

 private:
  static int64_t now() {
    const auto time = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
  }

  void count() {
    const int64_t time = now();
    nodes_[open_].nanoseconds += time - since_;
    since_ = time;
  }

  size_t child(int64_t place) {
    const auto parent = static_cast<int64_t>(open_);
    for (size_t k = open_ + 1; k < nodes_.size(); ++k) {
      if (nodes_[k].parent == parent && nodes_[k].place == place) return k;
    }
    nodes_.push_back(Node{parent, place, 0, 0});
    return nodes_.size() - 1;
  }

  std::vector<Node> nodes_;
  size_t open_ = 0;
  int64_t since_ = 0;
};

}  // namespace linnet::gen
