/// A copy-on-write list.
#pragma once

#include <atomic>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "xtape/error.hpp"

namespace xtape {

/// A vector that is cheap to copy. Copies share the elements until `own` changes one copy. (Passes copy nodes far more
/// often than they change them.) Different threads may use lists that share elements.
template <class T>
class SharedList {
 public:
  SharedList() = default;
  SharedList(std::vector<T> items)  // NOLINT: converts by intent
      : items_(items.empty() ? nullptr : std::make_shared<std::vector<T>>(std::move(items))) {}
  SharedList(std::initializer_list<T> items) : SharedList(std::vector<T>(items)) {}
  operator const std::vector<T>&() const { return get(); }  // NOLINT: converts by intent

  /// The elements. Valid until the list is changed, assigned or destroyed.
  const std::vector<T>& get() const {
    static const std::vector<T> none;
    return items_ ? *items_ : none;
  }
  /// Returns the elements for changes. Copies them first if another list shares them. Do not write through the
  /// reference after the list has been copied.
  std::vector<T>& own() {
    if (!items_)
      items_ = std::make_shared<std::vector<T>>();
    else if (items_.use_count() > 1)
      items_ = std::make_shared<std::vector<T>>(*items_);
    else
      // orders writes after the last read by a copy in another thread
      std::atomic_thread_fence(std::memory_order_acquire);
    return *items_;
  }

  std::size_t size() const { return items_ ? items_->size() : 0; }
  bool empty() const { return size() == 0; }
  const T* begin() const { return items_ ? items_->data() : nullptr; }
  const T* end() const { return begin() + size(); }
  const T& operator[](std::size_t index) const { return begin()[index]; }
  /// Throws Error if there is no element `index`.
  const T& at(std::size_t index) const {
    if (index >= size())
      throw Error("there is no element " + std::to_string(index) + ": the list has " + std::to_string(size()));
    return begin()[index];
  }

  friend bool operator==(const SharedList& a, const SharedList& b) {
    return a.items_ == b.items_ || a.get() == b.get();
  }
  friend bool operator!=(const SharedList& a, const SharedList& b) { return !(a == b); }

 private:
  std::shared_ptr<std::vector<T>> items_;
};

}  // namespace xtape
