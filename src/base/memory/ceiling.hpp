/// Divisions that round up.
#pragma once

#include <type_traits>

namespace xtape {

/// The number of pieces of size `each` that cover `count`.
template <class T>
constexpr T ceiling(T count, std::type_identity_t<T> each) {
  return (count + each - 1) / each;
}

/// `count` rounded up to a multiple of `unit`.
template <class T>
constexpr T round_up(T count, std::type_identity_t<T> unit) {
  return ceiling(count, unit) * unit;
}

}  // namespace xtape
