/// Divides a list of items among the ranks. Batches of items are assigned to the ranks in turn, so every batch is the
/// same as with one process.
#pragma once

#include <string>
#include <vector>

#include "ranks/rank_group.hpp"

namespace xtape::ranks {

class SharedWork {
 public:
  SharedWork(RankGroup& group, std::size_t items, std::size_t batch_size)
      : group_(group), items_(items), batch_size_(batch_size) {}
  /// Returns whether this rank handles item `index`.
  bool is_here(std::size_t index) const { return rank_of(index) == group_.rank(); }
  /// Returns the results of all items in order, given the results of this rank's items. All ranks must call gather()
  /// together.
  std::vector<std::string> gather(const std::vector<std::string>& here) const;

 private:
  int rank_of(std::size_t index) const {
    return static_cast<int>(index / batch_size_ % static_cast<std::size_t>(group_.size()));
  }
  RankGroup& group_;
  std::size_t items_, batch_size_;
};

/// Texts and numbers as bytes. They must be read in the order in which they were added.
class PackedBytes {
 public:
  PackedBytes() = default;
  explicit PackedBytes(std::string bytes) : bytes_(std::move(bytes)) {}
  const std::string& bytes() const { return bytes_; }
  bool at_end() const { return at_ == bytes_.size(); }
  template <class T>
  void add(const T& number) {
    bytes_.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  void add_text(const std::string& text) {
    add(text.size());
    bytes_ += text;
  }
  template <class T>
  T take() {
    T number;
    bytes_.copy(reinterpret_cast<char*>(&number), sizeof number, at_);
    at_ += sizeof number;
    return number;
  }
  std::string take_text() {
    const auto size = take<std::size_t>();
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }

 private:
  std::string bytes_;
  std::size_t at_ = 0;
};

}  // namespace xtape::ranks
