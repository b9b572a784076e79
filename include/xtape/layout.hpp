/// Dtypes, shapes and layouts: what an array is made of, without its memory.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <ostream>
#include <string>
#include <type_traits>
#include <vector>

#include "xtape/half.hpp"

namespace xtape {

/// The element type of an array, known at run time.
///
/// bfloat16, float16 and int8 are storage formats. Ops on bfloat16 and float16 compute in float32 and round their
/// results. Arithmetic on int8 arrays is that of int32.
///
/// q8_0 to q6_k are the block formats of GGUF files: 32 or 256 numbers that are neighbours in memory share one or more
/// scales. Only products, views, `take` and `dequantize` read such an array. A number has no address of its own, so
/// ArrayView::as refuses a block format, and data() gives the bytes of the blocks.
#if defined(__GNUC__)  // the enumerators share names with the element classes
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif
enum class Dtype : std::uint8_t {
  float32,
  float64,
  bfloat16,
  float16,
  int32,
  int64,
  int8,
  boolean,
  q8_0,
  q4_0,
  q4_k,
  q5_k,
  q6_k
};
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/// Bytes per element: 8, 4, 2 or 1. Throws DtypeError for a block format.
std::size_t size_of(Dtype dtype);
const char* name_of(Dtype dtype);  ///< "float32", "float64", "bfloat16" …; "bool" for boolean; "Q4_K" for q4_k.
/// The inverse of name_of. Throws DtypeError with a list of the valid names.
Dtype dtype_named(const std::string& name);
/// Whether elements are stored in blocks with scales.
constexpr bool is_block(Dtype dtype) {
  return dtype > Dtype::boolean;
}
std::int64_t block_of(Dtype dtype);  ///< The number of elements of a block: 32 or 256, and 1 for the other dtypes.
/// The bytes of `count` elements from the beginning of a block, in whole blocks.
std::int64_t bytes_of(Dtype dtype, std::int64_t count);
/// Whether elements are 16-bit floats: bfloat16 or float16.
constexpr bool is_half(Dtype dtype) {
  return dtype == Dtype::bfloat16 || dtype == Dtype::float16;
}
constexpr bool is_floating(Dtype dtype) {
  return dtype == Dtype::float32 || dtype == Dtype::float64 || is_half(dtype);
}
/// Whether elements can be indices. int8 is not, because it is only a storage format.
inline bool is_integer(Dtype dtype) {
  return dtype == Dtype::int32 || dtype == Dtype::int64;
}

/// Whether arrays can have elements of type T.
template <class T>
inline constexpr bool is_element = std::is_same<T, bool>::value || std::is_same<T, float>::value ||
                                   std::is_same<T, double>::value || std::is_same<T, bfloat16>::value ||
                                   std::is_same<T, float16>::value || std::is_same<T, std::int8_t>::value ||
                                   (std::is_integral<T>::value && std::is_signed<T>::value && sizeof(T) >= 4);

/// The dtype of a C++ scalar: dtype_of<float>() is float32.
template <class T>
constexpr Dtype dtype_of() {
  static_assert(is_element<T>,
                "xtape arrays hold float, double, bfloat16, float16, 8-, 32- and 64-bit signed integers, or bool");
  return std::is_same<T, bool>::value       ? Dtype::boolean
         : std::is_same<T, float>::value    ? Dtype::float32
         : std::is_same<T, double>::value   ? Dtype::float64
         : std::is_same<T, bfloat16>::value ? Dtype::bfloat16
         : std::is_same<T, float16>::value  ? Dtype::float16
         : sizeof(T) == 1                   ? Dtype::int8
         : sizeof(T) == 4                   ? Dtype::int32
                                            : Dtype::int64;
}

/// Up to max_rank integers, without an allocation: sizes, strides or axes. operator[] requires i < size(). back()
/// requires at least one entry. Debug builds assert both.
class Shape {
 public:
  static constexpr std::size_t max_rank = 10;

  Shape() = default;  ///< Rank 0.
  // The constructors throw ShapeError if there are more than max_rank entries.
  Shape(std::initializer_list<std::int64_t> sizes) : Shape(sizes.begin(), sizes.end()) {}
  template <class Iterator, class = typename std::iterator_traits<Iterator>::iterator_category>
  Shape(Iterator first, Iterator last) {
    for (; first != last; ++first) push_back(static_cast<std::int64_t>(*first));
  }
  /// Returns `rank` entries of `value`. Throws ShapeError if `rank` is above max_rank.
  static Shape filled(std::size_t rank, std::int64_t value);

  std::size_t size() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  std::int64_t& operator[](std::size_t i) {
    assert(i < rank_);
    return sizes_[i];
  }
  std::int64_t operator[](std::size_t i) const {
    assert(i < rank_);
    return sizes_[i];
  }
  std::int64_t back() const { return (*this)[rank_ - 1]; }
  std::int64_t& back() { return (*this)[rank_ - 1]; }
  std::int64_t* begin() { return sizes_; }
  std::int64_t* end() { return sizes_ + rank_; }
  const std::int64_t* begin() const { return sizes_; }
  const std::int64_t* end() const { return sizes_ + rank_; }
  void push_back(std::int64_t size);  ///< Throws ShapeError if there are already max_rank entries.
  /// Throws ShapeError if there are already max_rank entries or position > size().
  void insert(std::size_t position, std::int64_t size);
  void erase(std::size_t position);  ///< Throws ShapeError if position >= size().

  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_) return false;
    for (std::size_t i = 0; i < a.rank_; ++i)
      if (a.sizes_[i] != b.sizes_[i]) return false;
    return true;
  }
  friend bool operator!=(const Shape& a, const Shape& b) { return !(a == b); }

 private:
  std::int64_t sizes_[max_rank] = {};
  std::size_t rank_ = 0;
};

using Strides = Shape;  ///< The distance between neighbours along each axis, in elements. Can be 0 or negative.

/// Returns the number of bytes of an array of this type. Throws ShapeError if a size is negative, or if the product of
/// the element size and all nonzero sizes exceeds 2^63 - 1 (NumPy's rule). All arrays and all values on tapes satisfy
/// this rule, so products of their sizes fit in 64 bits.
std::int64_t checked_bytes(Dtype dtype, const Shape& shape);

/// Compute total += more and total *= by. Both functions return false and leave `total` unchanged if the result does
/// not fit in 64 bits.
[[nodiscard]] inline bool checked_add(std::int64_t& total, std::int64_t more) {
  std::int64_t result;
  if (__builtin_add_overflow(total, more, &result)) return false;
  total = result;
  return true;
}
[[nodiscard]] inline bool checked_multiply(std::int64_t& total, std::int64_t by) {
  std::int64_t result;
  if (__builtin_mul_overflow(total, by, &result)) return false;
  total = result;
  return true;
}

/// The number of elements; 1 for rank 0. The shape must satisfy checked_bytes.
std::int64_t count_of(const Shape& shape);
std::string to_string(const Shape& shape);  ///< "(2, 3)", "(2,)", "()".
std::ostream& operator<<(std::ostream& out, const Shape& shape);
Strides dense_strides(const Shape& shape);  ///< The strides of a row-major array without gaps.

/// NumPy broadcasting: returns the shape that all `shapes` broadcast to. Throws ShapeError with the shapes if there is
/// no such shape.
Shape broadcast_shapes(const std::vector<Shape>& shapes);

/// Converts `axis` in [-rank, rank) to the axis in [0, rank). Throws ShapeError if `axis` is not in [-rank, rank).
std::size_t normal_axis(std::int64_t axis, std::size_t rank);

/// Maps the elements of an array to positions in a buffer: offset + sum(index * stride), in elements.
struct Layout {
  Shape shape;
  Strides strides;
  std::int64_t offset = 0;

  static Layout dense(const Shape& shape);  ///< Row-major from offset 0.
  bool contiguous() const;  ///< Whether the layout is row-major without gaps. Axes of size 1 may have any stride.
  /// The layout of the same elements, broadcast to `shape`. Axes of size 1 and new leading axes get stride 0. Throws
  /// ShapeError if this layout does not broadcast to `shape`.
  Layout broadcast_to(const Shape& shape) const;
};
bool operator==(const Layout& a, const Layout& b);

}  // namespace xtape
