/// Literals: numbers that do not have a dtype yet.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <type_traits>

#include "xtape/array.hpp"

namespace xtape {

/// The exact value of a number in a program: an int64 (from integers and bool) or a double. Converts from every C++
/// number. Throws DtypeError if an unsigned number is above the range of int64.
class Literal {
 public:
  template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value>>
  Literal(T value)  // NOLINT: converts by intent
      : is_whole_(std::is_integral<T>::value), is_boolean_(std::is_same<T, bool>::value) {
    if constexpr (std::is_integral<T>::value) {
      if constexpr (std::is_unsigned<T>::value && sizeof(T) == sizeof(std::uint64_t))
        if (value > greatest) too_large(value);
      integer_ = static_cast<std::int64_t>(value);
    } else {
      real_ = static_cast<double>(value);
    }
  }

  bool is_whole() const { return is_whole_; }        ///< Whether it was made from an integer or bool. False for 2.0.
  bool is_boolean() const { return is_boolean_; }    ///< Whether it was made from bool.
  std::int64_t integer() const { return integer_; }  ///< The value if is_whole(), otherwise 0.
  double real() const { return is_whole_ ? static_cast<double>(integer_) : real_; }  ///< The value as a double.

  /// Whether `dtype` can hold the number. An integer dtype or bool must hold it exactly (bool holds 0 and 1). A float
  /// dtype may round it, so every number fits, with one exception: finite numbers that would round to infinity do not
  /// fit float16.
  bool fits(Dtype dtype) const;
  /// The number as an element of type T. It must fit dtype_of<T>().
  template <class T>
  T as() const {
    if constexpr (std::is_same<T, bool>::value)
      return real() != 0;
    else
      return is_whole_ ? static_cast<T>(integer_) : static_cast<T>(real_);
  }

 private:
  static constexpr auto greatest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  [[noreturn]] static void too_large(std::uint64_t value);

  std::int64_t integer_ = 0;
  double real_ = 0;
  bool is_whole_;
  bool is_boolean_;
};

/// Prints an integer in full, and a double with the fewest of 6, 9 or 17 digits that read back as the same number.
std::string to_string(const Literal& literal);

/// Throws DtypeError if `literal` does not fit `dtype`. The message says what `dtype` can hold. `what` is the name of
/// the literal in the message: "the value".
void require_fits(const Literal& literal, Dtype dtype, std::string_view what);

/// Returns an array of these elements in row-major order. Throws ShapeError if the number of elements differs from that
/// of the shape. Errors of require_fits propagate.
Array array_of(std::initializer_list<Literal> elements, Dtype dtype, const Shape& shape);

}  // namespace xtape
