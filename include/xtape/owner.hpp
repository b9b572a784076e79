/// The pointer of a public class to its data.
#pragma once

#include <memory>
#include <utility>

#include "xtape/error.hpp"

namespace xtape {

/// A unique_ptr that throws HandleError instead of dereferencing null. Using a moved-from object is then an error
/// instead of a crash. The pointer deletes its data through a stored function. A class whose Data is incomplete in the
/// header therefore need not declare move operations and a destructor.
template <class T>
class Owner {
 public:
  Owner() = default;
  Owner(std::unique_ptr<T> data) : Owner(data.release()) {}  // NOLINT: converts by intent
  explicit Owner(T* data) : data_(data, [](T* held) { delete held; }) {}

  explicit operator bool() const noexcept { return data_ != nullptr; }
  T* get() const noexcept { return data_.get(); }
  T& operator*() const {
    if (!data_) throw HandleError("the object was moved from: it can only be assigned or destroyed");
    return *data_;
  }
  T* operator->() const { return &**this; }

 private:
  std::unique_ptr<T, void (*)(T*)> data_{nullptr, nullptr};
};

}  // namespace xtape
