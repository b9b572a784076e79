/// A vector with inline storage for a few elements.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

namespace xtape {

/// A list like std::vector that allocates only for more than `few` elements. A copy has its own elements.
template <class T, std::size_t few>
class SmallVector {
  static_assert(std::is_trivially_copyable<T>::value, "a move leaves the elements of the source as they are");

 public:
  using value_type = T;

  SmallVector() = default;
  SmallVector(std::initializer_list<T> items) : SmallVector(items.begin(), items.end()) {}
  SmallVector(const std::vector<T>& items) : SmallVector(items.begin(), items.end()) {}  // NOLINT: converts by intent
  template <class Iterator, class = typename std::iterator_traits<Iterator>::iterator_category>
  SmallVector(Iterator first, Iterator last) {
    assign(first, last);
  }
  SmallVector(const SmallVector& other) : SmallVector(other.begin(), other.end()) {}
  SmallVector(SmallVector&& other) noexcept
      : near_(other.near_),
        far_(std::move(other.far_)),
        size_(std::exchange(other.size_, 0)),
        capacity_(std::exchange(other.capacity_, static_cast<std::uint32_t>(few))) {}
  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) assign(other.begin(), other.end());
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    near_ = other.near_;
    far_ = std::move(other.far_);
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, static_cast<std::uint32_t>(few));
    return *this;
  }
  ~SmallVector() = default;
  operator std::vector<T>() const { return {begin(), end()}; }  // NOLINT: converts by intent

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return far_ ? far_.get() : near_.data(); }
  const T* data() const { return far_ ? far_.get() : near_.data(); }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }
  T& front() { return *begin(); }
  const T& front() const { return *begin(); }
  T& back() { return end()[-1]; }
  const T& back() const { return end()[-1]; }

  /// Reserves memory for `count` elements, at most 2^32 - 1. Throws std::length_error if `count` is larger.
  void reserve(std::size_t count) {
    if (count <= capacity_) return;
    if (count > std::numeric_limits<std::uint32_t>::max()) throw std::length_error("SmallVector: too many elements");
    auto larger = std::make_unique<T[]>(count);
    std::copy(begin(), end(), larger.get());
    far_ = std::move(larger);
    capacity_ = static_cast<std::uint32_t>(count);
  }
  void push_back(T item) {
    if (size_ == capacity_) reserve(std::size_t{2} * capacity_);
    data()[size_++] = item;
  }
  template <class Iterator, class = typename std::iterator_traits<Iterator>::iterator_category>
  void assign(Iterator first, Iterator last) {
    size_ = 0;
    reserve(static_cast<std::size_t>(std::distance(first, last)));
    std::copy(first, last, begin());
    size_ = static_cast<std::uint32_t>(std::distance(first, last));
  }
  void clear() { size_ = 0; }

  friend bool operator==(const SmallVector& a, const SmallVector& b) {
    return a.size_ == b.size_ && std::equal(a.begin(), a.end(), b.begin());
  }
  friend bool operator!=(const SmallVector& a, const SmallVector& b) { return !(a == b); }

 private:
  std::array<T, few> near_ = {};
  std::unique_ptr<T[]> far_;  // null while all elements are in `near_`
  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = static_cast<std::uint32_t>(few);
};

}  // namespace xtape
