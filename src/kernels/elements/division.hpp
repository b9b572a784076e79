/// Floor division and its remainder, as in Python.
#pragma once

#include <cmath>
#include <type_traits>

namespace xtape {

/// The quotient of integers, rounded down. Division by 0 gives 0, as in NumPy. Division by -1 is a wrapping negation,
/// because the processor traps on the smallest integer divided by -1.
template <class T>
T floor_quotient(T a, T b) {
  using Unsigned = std::make_unsigned_t<T>;
  if (b == 0) return 0;
  if (b == T{-1}) return static_cast<T>(Unsigned{0} - static_cast<Unsigned>(a));
  const T quotient = static_cast<T>(a / b);
  return a % b != 0 && (a < 0) != (b < 0) ? static_cast<T>(quotient - 1) : quotient;
}

/// Divides floats like CPython. a - remainder is a multiple of b, apart from rounding. (a - remainder) / b is therefore
/// close to an integer, and is rounded to this integer.
struct FloorQuotient {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (b == 0) return a / b;
      const T r = std::fmod(a, b);
      T quotient = (a - r) / b;
      if (r != 0 && (r < 0) != (b < 0)) quotient -= 1;
      if (quotient == 0) return std::copysign(T{0}, a / b);
      const T down = std::floor(quotient);
      return quotient - down > T{0.5} ? down + 1 : down;
    } else {
      return floor_quotient(a, b);
    }
  }
};

struct Remainder {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>) {
      const T r = std::fmod(a, b);
      if (r == 0) return std::copysign(r, b);
      return (r < 0) != (b < 0) ? r + b : r;
    } else {
      // Modulo 0 gives 0, as in NumPy. Modulo -1 is always 0, and the smallest integer modulo -1 would trap.
      if (b == 0 || b == T{-1}) return 0;
      const T r = static_cast<T>(a % b);
      return r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
    }
  }
};

}  // namespace xtape
