/// Lengths that the compiler knows, for loops over short rows.
#pragma once

#include <cstdint>
#include <type_traits>

namespace xtape {

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
