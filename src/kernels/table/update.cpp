#include "kernels/table/update.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/math/lanes.hpp"
#include "kernels/math/vector_math.hpp"

namespace xtape {

namespace {
/// Replaces the weights by f(i, lanes, weights, gradient), one register at a time.
template <class T, class F>
void for_each_weight(T* weights, const T* gradient, std::int64_t count, const F& f) {
  for_lanes<T>(count, [&](std::int64_t i, const auto& lanes) {
    lanes.store(weights + i, f(i, lanes, lanes.load(weights + i), lanes.load(gradient + i)));
  });
}
}  // namespace

template <class T>
void sgd_update(T* weights, const T* gradient, T* velocity, std::int64_t count, const SgdUpdate& step) {
  using Batch = xsimd::batch<T>;
  const Batch rate(static_cast<T>(step.rate));
  const Batch scale(static_cast<T>(step.scale));
  const Batch momentum(static_cast<T>(step.momentum));
  const Batch decay(static_cast<T>(step.decay));
  for_each_weight(weights, gradient, count, [&](std::int64_t i, const auto& lanes, const Batch& w, const Batch& raw) {
    const Batch g = raw * scale + decay * w;
    if (velocity == nullptr) return w - rate * g;
    const Batch v = momentum * lanes.load(velocity + i) + g;
    lanes.store(velocity + i, v);
    return w - rate * (step.nesterov ? g + momentum * v : v);
  });
}

template <class T>
void adam_update(T* weights, const T* gradient, T* first, T* second, std::int64_t count, const AdamUpdate& step) {
  using Batch = xsimd::batch<T>;
  const Batch scale(static_cast<T>(step.scale));
  const Batch decay(static_cast<T>(step.decay));
  const Batch shrink(static_cast<T>(step.shrink));
  const Batch beta1(static_cast<T>(step.beta1));
  const Batch rest1(static_cast<T>(1 - step.beta1));
  const Batch beta2(static_cast<T>(step.beta2));
  const Batch rest2(static_cast<T>(1 - step.beta2));
  const Batch epsilon(static_cast<T>(step.epsilon));
  const Batch length(static_cast<T>(step.rate / step.correction1));
  const Batch root(static_cast<T>(1 / std::sqrt(step.correction2)));
  for_each_weight(weights, gradient, count, [&](std::int64_t i, const auto& lanes, const Batch& w, const Batch& raw) {
    const Batch g = raw * scale + decay * w;
    const Batch m = beta1 * lanes.load(first + i) + rest1 * g;
    const Batch v = beta2 * lanes.load(second + i) + rest2 * (g * g);
    lanes.store(first + i, m);
    lanes.store(second + i, v);
    return shrink * w - quotient(length * m, vector_math::square_root(v) * root + epsilon);
  });
}

template <class T>
double square_sum(const T* values, std::int64_t count) {
  constexpr std::int64_t parallel = 32;  // independent sums, which hide the latency of the additions
  constexpr std::int64_t block = 4096;
  double total = 0;
  for (std::int64_t first = 0; first < count; first += block) {
    const std::int64_t finish = std::min(count, first + block);
    double parts[parallel] = {};
    std::int64_t i = first;
    for (; i + parallel <= finish; i += parallel)
      for (std::int64_t k = 0; k < parallel; ++k) {
        const double value = static_cast<double>(values[i + k]);
        parts[k] += value * value;
      }
    for (std::int64_t k = 0; i + k < finish; ++k) {
      const double value = static_cast<double>(values[i + k]);
      parts[k] += value * value;
    }
    for (std::int64_t half = parallel / 2; half > 0; half /= 2)
      for (std::int64_t k = 0; k < half; ++k) parts[k] += parts[k + half];
    total += parts[0];
  }
  return total;
}

template <class T>
void add_arrays(const T* a, const T* b, T* to, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) to[i] = a[i] + b[i];
}

template void sgd_update(float*, const float*, float*, std::int64_t, const SgdUpdate&);
template void sgd_update(double*, const double*, double*, std::int64_t, const SgdUpdate&);
template void adam_update(float*, const float*, float*, float*, std::int64_t, const AdamUpdate&);
template void adam_update(double*, const double*, double*, double*, std::int64_t, const AdamUpdate&);
template double square_sum(const float*, std::int64_t);
template double square_sum(const double*, std::int64_t);
template void add_arrays(const float*, const float*, float*, std::int64_t);
template void add_arrays(const double*, const double*, double*, std::int64_t);

}  // namespace xtape
