/// The pointer of a public class to its data.
#pragma once

#include <memory>
#include <utility>

#include "xtape/error.hpp"

namespace xtape {

/// A unique_ptr that throws HandleError where a null one would be dereferenced: using an object that was moved from is
/// an error, not a crash.
template <class T>
class Owner {
 public:
  Owner() = default;
  Owner(std::unique_ptr<T> data) : data_(std::move(data)) {}  // NOLINT: converts by intent
  explicit Owner(T* data) : data_(data) {}

  explicit operator bool() const noexcept { return data_ != nullptr; }
  T* get() const noexcept { return data_.get(); }
  T& operator*() const {
    if (!data_) throw HandleError("the object was moved from: it can only be assigned or destroyed");
    return *data_;
  }
  T* operator->() const { return &**this; }

 private:
  std::unique_ptr<T> data_;
};

}  // namespace xtape
