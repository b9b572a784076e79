#include "kernels/table/choices.hpp"

#include <limits>

#include "kernels/math/lanes.hpp"
#include "kernels/math/vector_math.hpp"

namespace xtape {

template <class T>
T greatest(const T* logits, std::int64_t count) {
  return max_of_lanes(logits, count);
}

template <class T>
bool has_odd(const T* logits, std::int64_t count) {
  constexpr T largest = std::numeric_limits<T>::max();
  int odd = 0;
  for (std::int64_t i = 0; i < count; ++i) odd |= static_cast<int>(!(logits[i] <= largest));
  return odd != 0;
}

template <class T>
std::int64_t first_above(const T* logits, std::int64_t from, std::int64_t count, T bound) {
  using Batch = xsimd::batch<T>;
  constexpr std::int64_t width = Batch::size;
  const Batch bounds(bound);
  while (from + width <= count && !xsimd::any(Batch::load_unaligned(logits + from) > bounds)) from += width;
  while (from < count && !(logits[from] > bound)) ++from;
  return from;
}

template <class T>
double log_sum_exp(const T* logits, std::int64_t count) {
  constexpr T lowest = -std::numeric_limits<T>::infinity();
  const T top = max_of_lanes(logits, count);
  const xsimd::batch<T> shift(top);
  const double sum = sum_of_lanes<T>(count, [&](std::int64_t i, const auto& lanes) {
    return vector_math::exp(lanes.load(logits + i, lowest) - shift);
  });
  return static_cast<double>(top) + vector_math::log(sum);
}

template <class T>
void weights_of(const T* logits, std::int64_t count, T top, T temperature, T* weights) {
  const xsimd::batch<T> tops(top), temperatures(temperature);
  for_lanes<T>(count, [&](std::int64_t i, const auto& lanes) {
    lanes.store(weights + i, vector_math::exp(quotient(lanes.load(logits + i) - tops, temperatures)));
  });
}

template <class T>
double sum_of_weights(const T* logits, std::int64_t count, T top, T temperature) {
  const xsimd::batch<T> tops(top), temperatures(temperature);
  constexpr T lowest = -std::numeric_limits<T>::infinity();
  return sum_of_lanes<T>(count, [&](std::int64_t i, const auto& lanes) {
    return vector_math::exp(quotient(lanes.load(logits + i, lowest) - tops, temperatures));
  });
}

#define XTAPE_CHOICES(T)                                                      \
  template T greatest(const T*, std::int64_t);                                \
  template bool has_odd(const T*, std::int64_t);                              \
  template std::int64_t first_above(const T*, std::int64_t, std::int64_t, T); \
  template double log_sum_exp(const T*, std::int64_t);                        \
  template void weights_of(const T*, std::int64_t, T, T, T*);                 \
  template double sum_of_weights(const T*, std::int64_t, T, T);
XTAPE_CHOICES(float)
XTAPE_CHOICES(double)
#undef XTAPE_CHOICES

}  // namespace xtape
