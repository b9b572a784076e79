/// A list that grows and shrinks at its end and never moves its elements.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace xtape {

/// As std::deque, which in GCC's library allocates each element by itself if it has more than 256 bytes.
template <class T, std::size_t together = 8>
class Blocks {
 public:
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return blocks_[i / together][i % together]; }
  const T& operator[](std::size_t i) const { return blocks_[i / together][i % together]; }
  T& back() { return (*this)[size_ - 1]; }

  void push_back(T&& element) {
    if (size_ / together == blocks_.size()) blocks_.emplace_back().reserve(together);
    blocks_[size_ / together].push_back(std::move(element));
    ++size_;
  }
  void pop_back() { blocks_[--size_ / together].pop_back(); }

 private:
  std::vector<std::vector<T>> blocks_;  // of `together` elements each, which are reserved
  std::size_t size_ = 0;
};

}  // namespace xtape
