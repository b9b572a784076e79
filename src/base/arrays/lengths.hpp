/// Lengths: divisions that round up, and lengths that the compiler knows.
#pragma once

#include <cstdint>
#include <type_traits>

namespace xtape {

// Divisions that round up.

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

// Lengths that the compiler knows, for loops over short rows.

/// Calls f(length). If `length` is at most 4, its type is a std::integral_constant, so that the compiler unrolls loops.
template <class F>
void with_length(std::int64_t length, const F& f) {
  if (length == 1) return f(std::integral_constant<std::int64_t, 1>{});
  if (length == 2) return f(std::integral_constant<std::int64_t, 2>{});
  if (length == 3) return f(std::integral_constant<std::int64_t, 3>{});
  if (length == 4) return f(std::integral_constant<std::int64_t, 4>{});
  f(length);
}

}  // namespace xtape
