#include "fill.hpp"

#include <algorithm>

#include "scalar.hpp"
#include "threads.hpp"

namespace xtape {

namespace {
constexpr std::int64_t fill_grain = 1 << 14;  // elements; for fewer, waking a thread costs more than it saves
}

void fill_with(void* out, Dtype dtype, std::int64_t count, const Literal& value, int threads) {
  with_scalar(dtype, [&](auto scalar) {
    using T = decltype(scalar);
    const T element = value.as<T>();
    T* elements = static_cast<T*>(out);
    parallel_for(threads, count, fill_grain, [elements, element](std::int64_t begin, std::int64_t finish) {
      std::fill(elements + begin, elements + finish, element);
    });
  });
}

void fill_indices(void* out, Dtype dtype, const Shape& shape, std::size_t axis, int threads) {
  std::int64_t inner = 1;
  for (std::size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  const std::int64_t size = shape[axis];
  with_number(dtype, [&](auto scalar) {
    using T = decltype(scalar);
    T* elements = static_cast<T*>(out);
    parallel_for(threads, count_of(shape), fill_grain,
                 [elements, inner, size](std::int64_t begin, std::int64_t finish) {
                   for (std::int64_t i = begin; i < finish; ++i) elements[i] = static_cast<T>(i / inner % size);
                 });
  });
}

void fill_diagonal(void* out, Dtype dtype, std::int64_t rows, std::int64_t columns, double value) {
  with_scalar(dtype, [&](auto scalar) {
    using T = decltype(scalar);
    for (std::int64_t i = 0; i < std::min(rows, columns); ++i)
      static_cast<T*>(out)[i * (columns + 1)] = static_cast<T>(value);
  });
}

}  // namespace xtape
