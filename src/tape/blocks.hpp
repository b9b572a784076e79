/// A list that grows and shrinks at its end and never moves its elements.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace xtape {

/// Use it instead of std::deque, because GCC's std::deque allocates each element separately if elements have more than
/// 256 bytes.
template <class T, std::size_t together = 8>
class Blocks {
 public:
  std::size_t size() const { return size_; }
  T& operator[](std::size_t i) { return blocks_[i / together][i % together]; }
  const T& operator[](std::size_t i) const { return blocks_[i / together][i % together]; }
  T& back() { return (*this)[size_ - 1]; }

  template <class Element>
  void push_back(Element&& element) {
    if (size_ / together == blocks_.size()) blocks_.emplace_back().reserve(together);
    blocks_[size_ / together].push_back(std::forward<Element>(element));
    ++size_;
  }
  void pop_back() { blocks_[--size_ / together].pop_back(); }

 private:
  std::vector<std::vector<T>> blocks_;  // blocks of `together` elements each, whose memory is reserved
  std::size_t size_ = 0;
};

}  // namespace xtape
