/// The sum of two arrays.
#pragma once

#include <cstdint>

namespace xtape {

/// to = a + b. `to` may be `a` or `b`.
template <class T>
void add_arrays(const T* a, const T* b, T* to, std::int64_t count);

}  // namespace xtape
