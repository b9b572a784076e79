/// Things that are costly to make and wanted again: the most recently used are kept.
#pragma once

#include <algorithm>
#include <cstddef>
#include <list>
#include <utility>

namespace xtape {

template <class T>
class Recent {
 public:
  /// Keeps as many as `capacity`, at least one.
  explicit Recent(std::size_t capacity) : capacity_(std::max<std::size_t>(1, capacity)) {}

  /// The one that `fits`, now the most recently used; null where there is none.
  template <class Fits>
  T* find(const Fits& fits) {
    const auto found = std::find_if(kept_.begin(), kept_.end(), fits);
    if (found == kept_.end()) return nullptr;
    kept_.splice(kept_.begin(), kept_, found);
    return &kept_.front();
  }

  /// Adds one as the most recently used; the least recently used falls out where there is no room.
  T& add(T made) {
    kept_.push_front(std::move(made));
    if (kept_.size() > capacity_) kept_.pop_back();
    return kept_.front();
  }

  void clear() { kept_.clear(); }
  /// The most recently used first.
  const std::list<T>& all() const { return kept_; }
  std::list<T>& all() { return kept_; }

 private:
  std::size_t capacity_;
  std::list<T> kept_;
};

}  // namespace xtape
