/// Numbers before they have a dtype.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "xtape/array.hpp"

namespace xtape {

/// A number as it stands in a program, exactly: an integer or a double. Converts from every C++ number; an unsigned one
/// beyond int64 throws DtypeError.
class Literal {
 public:
  template <class T, class = std::enable_if_t<std::is_arithmetic<T>::value>>
  Literal(T value)  // NOLINT: converts by intent
      : is_whole_(std::is_integral<T>::value) {
    if constexpr (std::is_integral<T>::value) {
      if constexpr (std::is_unsigned<T>::value && sizeof(T) == sizeof(std::uint64_t))
        if (value > greatest) too_large(value);
      integer_ = static_cast<std::int64_t>(value);
    } else {
      real_ = static_cast<double>(value);
    }
  }

  bool is_whole() const { return is_whole_; }                     ///< An integer or bool.
  std::int64_t integer() const { return integer_; }                   ///< Of an integer.
  double real() const { return is_whole_ ? static_cast<double>(integer_) : real_; }  ///< Rounded to a double.

  /// Whether `dtype` has an element of exactly this value. A float dtype takes every number, rounded.
  bool fits(Dtype dtype) const;
  /// The number as an element, where it fits.
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
};

/// The shortest text that reads back as the same number.
std::string to_string(const Literal& literal);

/// Throws DtypeError, with what would be right, unless `literal` fits `dtype`. `what` it is stands before: "the value".
void require_fits(const Literal& literal, Dtype dtype, const std::string& what);

}  // namespace xtape
