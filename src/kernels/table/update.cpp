#include "kernels/table/update.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

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

namespace {
/// The 256 numbers in [-1, 1] or [0, 1] that a code stands for, in order.
struct DynamicMap {
  std::array<float, 256> values = {};
  std::array<double, 256> middles = {};  // between neighbours; the last is infinite
  /// Per upper half of the bits of a float: the code of the least number with these bits.
  std::vector<std::uint8_t> start = std::vector<std::uint8_t>(1 << 16);

  /// Decade number i, of 7, has 2^i positive values, or twice as many if there are no negative ones.
  explicit DynamicMap(bool has_sign) {
    std::vector<double> all = {0, 1};
    double decade = 1e-6;
    for (int i = 0; i < 7; ++i, decade *= 10) {
      const int parts = (has_sign ? 1 : 2) << i;
      for (int k = 0; k < parts; ++k) {
        const double value = decade * (0.1 + 0.9 * (k + 0.5) / parts);
        all.push_back(value);
        if (has_sign) all.push_back(-value);
      }
    }
    std::sort(all.begin(), all.end());
    for (std::size_t i = 0; i < 256; ++i) values[i] = static_cast<float>(all[i]);
    for (std::size_t i = 0; i < 255; ++i) middles[i] = (static_cast<double>(values[i]) + values[i + 1]) / 2;
    middles[255] = std::numeric_limits<double>::infinity();
    for (std::uint32_t upper = 0; upper < start.size(); ++upper) {
      const std::uint32_t bits = upper << 16 | (upper >> 15 != 0 ? 0xFFFF : 0);  // the least of these numbers
      float least = 0;
      std::memcpy(&least, &bits, sizeof least);
      const auto above = std::lower_bound(middles.begin(), middles.end(), static_cast<double>(least));
      start[upper] = std::isnan(least) ? std::uint8_t{0} : static_cast<std::uint8_t>(above - middles.begin());
    }
  }
  /// Returns the code of the value nearest to x, from -1 to 1. Numbers with the same upper half are so near to each
  /// other that at most one middle is between them.
  std::uint8_t code_of(double x) const {
    const auto narrow = static_cast<float>(x);
    std::uint32_t bits = 0;
    std::memcpy(&bits, &narrow, sizeof bits);
    const std::uint8_t code = start[bits >> 16];
    // `narrow` may be rounded up to the next half.
    if (code > 0 && x <= middles[code - 1]) return static_cast<std::uint8_t>(code - 1);
    return static_cast<std::uint8_t>(code + (x > middles[code] ? 1 : 0));
  }
};
const DynamicMap& dynamic_map(bool has_sign) {
  static const DynamicMap maps[] = {DynamicMap(false), DynamicMap(true)};
  return maps[has_sign ? 1 : 0];
}

/// Rounds a block of moments to codes.
template <class T>
void encode(const DynamicMap& map, const T* values, std::int64_t count, std::uint8_t* codes, float& scale) {
  T most = 0;
#pragma omp simd reduction(max : most)
  for (std::int64_t i = 0; i < count; ++i) most = std::max(most, std::abs(values[i]));
  scale = static_cast<float>(most);
  const double inverse = scale > 0 ? 1 / static_cast<double>(scale) : 0;
  for (std::int64_t i = 0; i < count; ++i) codes[i] = map.code_of(static_cast<double>(values[i]) * inverse);
}
template <class T>
void decode(const DynamicMap& map, const std::uint8_t* codes, float scale, std::int64_t count, T* values) {
  for (std::int64_t i = 0; i < count; ++i) values[i] = static_cast<T>(map.values[codes[i]]) * static_cast<T>(scale);
}
}  // namespace

template <class T>
void adam_update_bytes(T* weights, const T* gradient, const ByteMoments& moments, std::int64_t count,
                       const AdamUpdate& step) {
  const DynamicMap& with_sign = dynamic_map(true);
  const DynamicMap& without = dynamic_map(false);
  T first[moment_block], second[moment_block];
  for (std::int64_t begin = 0; begin < count; begin += moment_block) {
    const std::int64_t size = std::min(moment_block, count - begin), block = begin / moment_block;
    decode(with_sign, moments.first + begin, moments.first_scales[block], size, first);
    decode(without, moments.second + begin, moments.second_scales[block], size, second);
    adam_update(weights + begin, gradient + begin, first, second, size, step);
    encode(with_sign, first, size, moments.first + begin, moments.first_scales[block]);
    encode(without, second, size, moments.second + begin, moments.second_scales[block]);
  }
}

template <class T>
void lion_update(T* weights, const T* gradient, T* first, std::int64_t count, const AdamUpdate& step) {
  using Batch = xsimd::batch<T>;
  const Batch zero(T{0});
  const Batch rate(static_cast<T>(step.rate));
  const Batch scale(static_cast<T>(step.scale));
  const Batch shrink(static_cast<T>(step.shrink));
  const Batch beta1(static_cast<T>(step.beta1));
  const Batch rest1(static_cast<T>(1 - step.beta1));
  const Batch beta2(static_cast<T>(step.beta2));
  const Batch rest2(static_cast<T>(1 - step.beta2));
  for_each_weight(weights, gradient, count, [&](std::int64_t i, const auto& lanes, const Batch& w, const Batch& raw) {
    const Batch g = raw * scale;
    const Batch m = lanes.load(first + i);
    const Batch direction = beta1 * m + rest1 * g;
    lanes.store(first + i, beta2 * m + rest2 * g);
    const Batch length = xsimd::select(direction > zero, rate, xsimd::select(direction < zero, -rate, zero));
    return shrink * w - length;
  });
}

template <class T>
void rmsprop_update(T* weights, const T* gradient, T* second, T* mean, T* velocity, std::int64_t count,
                    const RmsPropUpdate& step) {
  using Batch = xsimd::batch<T>;
  const Batch rate(static_cast<T>(step.rate));
  const Batch scale(static_cast<T>(step.scale));
  const Batch decay(static_cast<T>(step.decay));
  const Batch alpha(static_cast<T>(step.alpha));
  const Batch rest(static_cast<T>(1 - step.alpha));
  const Batch momentum(static_cast<T>(step.momentum));
  const Batch epsilon(static_cast<T>(step.epsilon));
  for_each_weight(weights, gradient, count, [&](std::int64_t i, const auto& lanes, const Batch& w, const Batch& raw) {
    const Batch g = raw * scale + decay * w;
    const Batch v = alpha * lanes.load(second + i) + rest * (g * g);
    lanes.store(second + i, v);
    Batch variance = v;
    if (mean != nullptr) {
      const Batch m = alpha * lanes.load(mean + i) + rest * g;
      lanes.store(mean + i, m);
      variance = xsimd::max(v - m * m, Batch(T{0}));  // rounding can make it negative
    }
    Batch length = quotient(g, vector_math::square_root(variance) + epsilon);
    if (velocity != nullptr) {
      length = momentum * lanes.load(velocity + i) + length;
      lanes.store(velocity + i, length);
    }
    return w - rate * length;
  });
}

template <class T>
void factored_row(const T* gradient, const T* columns, T* to, std::int64_t count, const FactoredRow& row) {
  using Batch = xsimd::batch<T>;
  const Batch factor(static_cast<T>(row.row));
  const Batch scale(static_cast<T>(row.scale));
  const Batch least(static_cast<T>(row.least));
  for_lanes<T>(count, [&](std::int64_t i, const auto& lanes) {
    const Batch variance = xsimd::max(factor * lanes.load(columns + i), least);
    lanes.store(to + i, quotient(lanes.load(gradient + i) * scale, vector_math::square_root(variance)));
  });
}

template <class T>
void combine(double a, const T* x, double b, const T* y, T* to, std::int64_t count) {
  using Batch = xsimd::batch<T>;
  const Batch of_x(static_cast<T>(a)), of_y(static_cast<T>(b));
  for_lanes<T>(count, [&](std::int64_t i, const auto& lanes) {
    lanes.store(to + i, of_x * lanes.load(x + i) + of_y * lanes.load(y + i));
  });
}

template <class T>
void add_squares(const T* values, double* sums, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<double>(values[i]);
    sums[i] += value * value;
  }
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
template void adam_update_bytes(float*, const float*, const ByteMoments&, std::int64_t, const AdamUpdate&);
template void lion_update(float*, const float*, float*, std::int64_t, const AdamUpdate&);
template void rmsprop_update(float*, const float*, float*, float*, float*, std::int64_t, const RmsPropUpdate&);
template void factored_row(const float*, const float*, float*, std::int64_t, const FactoredRow&);
template void combine(double, const float*, double, const float*, float*, std::int64_t);
template void add_squares(const float*, double*, std::int64_t);
template void adam_update_bytes(double*, const double*, const ByteMoments&, std::int64_t, const AdamUpdate&);
template void lion_update(double*, const double*, double*, std::int64_t, const AdamUpdate&);
template void rmsprop_update(double*, const double*, double*, double*, double*, std::int64_t, const RmsPropUpdate&);
template void factored_row(const double*, const double*, double*, std::int64_t, const FactoredRow&);
template void combine(double, const double*, double, const double*, double*, std::int64_t);
template void add_squares(const double*, double*, std::int64_t);
template double square_sum(const float*, std::int64_t);
template double square_sum(const double*, std::int64_t);
template void add_arrays(const float*, const float*, float*, std::int64_t);
template void add_arrays(const double*, const double*, double*, std::int64_t);

}  // namespace xtape
