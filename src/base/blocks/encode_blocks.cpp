// Rounding to blocks. Everything is float32 in a fixed order, without fused operations.
#include "base/blocks/encode_blocks.hpp"

#include <algorithm>
#include <cmath>

namespace xtape::block {

namespace {

/// Returns the integer part, limited to 0 … most. The comparison comes first, because the scale of subnormal numbers
/// can be infinite.
unsigned cut(float number, unsigned most) {
  if (!(number > 0)) return 0;
  return number < static_cast<float>(most) ? static_cast<unsigned>(number) : most;
}

float inverse(float scale) {
  return scale == 0 ? 0 : 1 / scale;
}

/// Returns the number of the largest magnitude, the first one of several.
float of_largest_magnitude(const float* from, int count) {
  float largest = 0;
  for (int i = 0; i < count; ++i)
    if (std::abs(from[i]) > std::abs(largest)) largest = from[i];
  return largest;
}

/// Sets the low 4 bits of 32 numbers, and returns their bits 4.
std::uint32_t pack_halves(std::uint8_t (&q)[16], const unsigned (&numbers)[32]) {
  std::uint32_t high = 0;
  for (int i = 0; i < 16; ++i) q[i] = static_cast<std::uint8_t>((numbers[i] & 15U) | (numbers[i + 16] & 15U) << 4);
  for (int i = 0; i < 32; ++i) high |= (numbers[i] >> 4) << i;
  return high;
}

void set_high(std::uint8_t (&bytes)[4], std::uint32_t high) {
  for (int i = 0; i < 4; ++i) bytes[i] = static_cast<std::uint8_t>(high >> 8 * i);
}

/// Rounds to scale * (q - half), where q has the values 0 … 2 half - 1. The number of the largest magnitude becomes
/// q = 0 exactly, so that the whole range is in use. Returns the bits 4 of the numbers.
template <class Block>
std::uint32_t round_about_zero(Block& block, const float* from, int half) {
  const float scale = of_largest_magnitude(from, 32) / static_cast<float>(-half), factor = inverse(scale);
  unsigned numbers[32];
  for (int i = 0; i < 32; ++i)
    numbers[i] = cut(from[i] * factor + (static_cast<float>(half) + 0.5F), static_cast<unsigned>(2 * half - 1));
  block.scale = float16(scale);
  return pack_halves(block.q, numbers);
}

/// Rounds to scale * q + minimum, where q has the values 0 … most. Returns the bits 4 of the numbers.
template <class Block>
std::uint32_t round_from_minimum(Block& block, const float* from, unsigned most) {
  const auto [least, largest] = std::minmax_element(from, from + 32);
  const float minimum = *least, scale = (*largest - minimum) / static_cast<float>(most), factor = inverse(scale);
  unsigned numbers[32];
  for (int i = 0; i < 32; ++i) numbers[i] = cut((from[i] - minimum) * factor + 0.5F, most);
  block.scale = float16(scale);
  block.minimum = float16(minimum);
  return pack_halves(block.q, numbers);
}

/// Rounds to the nearest integer, halves to even, and limits to first … last.
int nearest(float number, int first, int last) {
  if (!(number > static_cast<float>(first))) return first;
  if (number >= static_cast<float>(last)) return last;
  return static_cast<int>(number + 12582912.0F - 12582912.0F);  // 1.5 · 2^23: the sum has no fraction
}

typedef float Four __attribute__((vector_size(16)));  // NOLINT: `using` would drop the attribute

/// A number of each of the 8 parts of a block. Parts are computed together, each as it would be alone. Two registers,
/// because each sum waits for the addition before it.
struct Parts {
  Four low, high;

  explicit Parts(float number = 0) : low(Four{} + number), high(low) {}
  Parts(Four first, Four last) : low(first), high(last) {}
  /// Eight numbers that are `apart` numbers apart.
  Parts(const float* x, int apart)
      : low{x[0], x[apart], x[2 * apart], x[3 * apart]}, high{x[4 * apart], x[5 * apart], x[6 * apart], x[7 * apart]} {}
  float operator[](std::size_t part) const { return part < 4 ? low[part] : high[part - 4]; }
  friend Parts operator+(const Parts& a, const Parts& b) { return {a.low + b.low, a.high + b.high}; }
  friend Parts operator-(const Parts& a, const Parts& b) { return {a.low - b.low, a.high - b.high}; }
  friend Parts operator*(const Parts& a, const Parts& b) { return {a.low * b.low, a.high * b.high}; }
  friend Parts operator/(const Parts& a, const Parts& b) { return {a.low / b.low, a.high / b.high}; }
  friend void operator+=(Parts& a, const Parts& b) { a = a + b; }
};

/// a > b ? yes : no.
Parts if_greater(const Parts& a, const Parts& b, const Parts& yes, const Parts& no) {
  return {a.low > b.low ? yes.low : no.low, a.high > b.high ? yes.high : no.high};
}

/// Limits to 0 … most, and rounds to the nearest integer, halves to even. NaN becomes 0 or stays.
Parts nearest(const Parts& numbers, const Parts& most) {
  const Parts whole(12582912);  // 1.5 · 2^23: the sum has no fraction
  const auto limited = [](Four number, Four largest) {
#ifdef __SSE__
    return __builtin_ia32_minps(__builtin_ia32_maxps(number, Four{}), largest);
#else
    const Four positive = number > 0 ? number : Four{};
    return positive < largest ? positive : largest;
#endif
  };
  return Parts(limited(numbers.low, most.low), limited(numbers.high, most.high)) + whole - whole;
}

/// The scales and minima of parts: value = scale * q - below, 0 <= below.
struct Lines {
  Parts scale, below;
};

/// A search for the line with the least weighted squared error: trials of steps, each followed by a fit.
struct Search {
  int most;     ///< The largest q.
  float first;  ///< The first trial has `most + first` steps between the extremes.
  int trials;   ///< Each further trial has 0.1 steps more.
};

/// The 32 numbers of each part.
using Columns = std::array<Parts, 32>;
Columns columns_of(const float* x) {
  Columns columns;
  for (std::size_t i = 0; i < 32; ++i, ++x) columns[i] = Parts(x, 32);
  return columns;
}

/// Fits scales and minima to the numbers. Larger magnitudes weigh more.
Lines fitted_lines(const Columns& x, const Search& search) {
  const Parts none;
  Parts squares;
  for (const Parts& each : x) squares += each * each;
  squares = squares / Parts(32);
  float roots[8];
  for (std::size_t part = 0; part < 8; ++part) roots[part] = std::sqrt(squares[part]);
  const Parts mean(roots, 1);
  Columns weights, above, q;
  Parts sum_w, sum_x, least = x[0], largest = x[0];
  for (std::size_t i = 0; i < 32; ++i) {
    weights[i] = mean + if_greater(none, x[i], none - x[i], x[i]);
    sum_w += weights[i];
    sum_x += weights[i] * x[i];
    least = if_greater(least, x[i], x[i], least);
    largest = if_greater(x[i], largest, x[i], largest);
  }
  least = if_greater(least, none, none, least);
  const Parts range = largest - least, most(static_cast<float>(search.most));
  for (std::size_t i = 0; i < 32; ++i) above[i] = x[i] - least;
  const auto error_of = [&](const Parts& scale, const Parts& minimum) {
    Parts error;
    for (std::size_t i = 0; i < 32; ++i) {
      const Parts difference = scale * q[i] + minimum - x[i];
      error += weights[i] * (difference * difference);
    }
    return error;
  };
  const Parts factor = most / range;
  for (std::size_t i = 0; i < 32; ++i) q[i] = nearest(factor * above[i], most);
  Parts scale = Parts(1) / factor, minimum = least, best = error_of(scale, minimum);
  for (int trial = 0; trial <= search.trials; ++trial) {
    const Parts steps =
        Parts(search.first + 0.1F * static_cast<float>(trial) + static_cast<float>(search.most)) / range;
    Parts sum_q, sum_q2, sum_xq;
    for (std::size_t i = 0; i < 32; ++i) {
      q[i] = nearest(steps * above[i], most);
      const Parts weighted = weights[i] * q[i];
      sum_q += weighted;
      sum_q2 += weighted * q[i];
      sum_xq += weighted * x[i];
    }
    const Parts determinant = sum_w * sum_q2 - sum_q * sum_q;
    Parts new_scale = (sum_w * sum_xq - sum_x * sum_q) / determinant,
          new_minimum = (sum_q2 * sum_x - sum_q * sum_xq) / determinant;
    new_scale = if_greater(new_minimum, none, sum_xq / sum_q2, new_scale);
    new_minimum = if_greater(new_minimum, none, none, new_minimum);
    // The error counts only if there is a solution.
    const Parts error = if_greater(determinant, none, error_of(new_scale, new_minimum), best);
    scale = if_greater(best, error, new_scale, scale);
    minimum = if_greater(best, error, new_minimum, minimum);
    best = if_greater(best, error, error, best);
  }
  return {if_greater(range, none, scale, none), none - if_greater(range, none, minimum, least)};
}

void pack_scales(std::uint8_t (&packed)[12], const PartScales& parts) {
  for (int i = 0; i < 4; ++i) {
    packed[i] = static_cast<std::uint8_t>(parts.scales[i] | (parts.scales[i + 4] >> 4) << 6);
    packed[i + 4] = static_cast<std::uint8_t>(parts.minima[i] | (parts.minima[i + 4] >> 4) << 6);
    packed[i + 8] = static_cast<std::uint8_t>((parts.scales[i + 4] & 15U) | (parts.minima[i + 4] & 15U) << 4);
  }
}

/// Sets the scales of a Q4_K or Q5_K and returns the 256 numbers.
template <class Block>
std::array<int, 256> round_parts(Block& block, const float* from, const Search& search) {
  const Columns x = columns_of(from);
  const Lines lines = fitted_lines(x, search);
  float largest_scale = 0, largest_minimum = 0;
  for (std::size_t part = 0; part < 8; ++part) {
    largest_scale = std::max(largest_scale, lines.scale[part]);
    largest_minimum = std::max(largest_minimum, lines.below[part]);
  }
  const float scale_factor = largest_scale > 0 ? 63 / largest_scale : 0,
              minimum_factor = largest_minimum > 0 ? 63 / largest_minimum : 0;
  PartScales parts;
  for (std::size_t part = 0; part < 8; ++part) {
    parts.scales[part] = static_cast<std::uint8_t>(nearest(scale_factor * lines.scale[part], 0, 63));
    parts.minima[part] = static_cast<std::uint8_t>(nearest(minimum_factor * lines.below[part], 0, 63));
  }
  pack_scales(block.scales, parts);
  block.scale = float16(largest_scale / 63);
  block.minimum = float16(largest_minimum / 63);
  const float scale = block.scale, minimum = block.minimum;
  std::array<int, 256> numbers{};
  for (std::size_t part = 0; part < 8; ++part) {
    const float wide = scale * static_cast<float>(parts.scales[part]);
    if (wide == 0) continue;
    const float below = minimum * static_cast<float>(parts.minima[part]);
    for (std::size_t i = 32 * part; i < 32 * (part + 1); ++i)
      numbers[i] = nearest((from[i] + below) / wide, 0, search.most);
  }
  return numbers;
}

template <class Block>
void pack_low(Block& block, const std::array<int, 256>& numbers) {
  for (int i = 0; i < 128; ++i) {
    const int low = i / 32 * 64 + i % 32;
    block.q[i] = static_cast<std::uint8_t>((numbers[low] & 15) | (numbers[low + 32] & 15) << 4);
  }
}

/// Returns the scale of 16 numbers with values scale * q, -32 <= q <= 31, for which the error weighted by x² is least.
float fitted_scale(const float* x) {
  const float largest = of_largest_magnitude(x, 16);
  if (std::abs(largest) < 1e-15F) return 0;
  float scale = 0, best = 0;
  const auto attempt = [&](float steps, bool first) {
    const float factor = -steps / largest;
    float sum_xq = 0, sum_q2 = 0;
    for (int i = 0; i < 16; ++i) {
      const auto number = static_cast<float>(nearest(factor * x[i], -32, 31));
      const float weight = x[i] * x[i];
      sum_xq += weight * x[i] * number;
      sum_q2 += weight * number * number;
    }
    if (!(sum_q2 > 0) || !(first || sum_xq * sum_xq > best * sum_q2)) return;
    scale = sum_xq / sum_q2;
    best = scale * sum_xq;
  };
  attempt(32, true);
  for (int trial = -9; trial <= 9; ++trial)
    if (trial != 0) attempt(32 + 0.1F * static_cast<float>(trial), false);
  return scale;
}

}  // namespace

void round_to(Q4_0& block, const float* from) {
  round_about_zero(block, from, 8);
}
void round_to(Q4_1& block, const float* from) {
  round_from_minimum(block, from, 15);
}
void round_to(Q5_0& block, const float* from) {
  set_high(block.high, round_about_zero(block, from, 16));
}
void round_to(Q5_1& block, const float* from) {
  set_high(block.high, round_from_minimum(block, from, 31));
}

void round_to(Q8_0& block, const float* from) {
  const float scale = std::abs(of_largest_magnitude(from, 32)) / 127, factor = inverse(scale);
  for (int i = 0; i < 32; ++i) {
    const float number = from[i] * factor;  // ties go away from zero
    const auto size = static_cast<int>(cut(std::abs(number) + 0.5F, 127));
    block.q[i] = static_cast<std::int8_t>(number < 0 ? -size : size);
  }
  block.scale = float16(scale);
}

void round_to(Q4_K& block, const float* from) {
  pack_low(block, round_parts(block, from, {15, -1, 20}));
}

void round_to(Q5_K& block, const float* from) {
  const std::array<int, 256> numbers = round_parts(block, from, {31, -0.5F, 15});
  pack_low(block, numbers);
  for (int i = 0; i < 32; ++i) {
    unsigned high = 0;
    for (int part = 0; part < 8; ++part) high |= static_cast<unsigned>(numbers[32 * part + i] >> 4) << part;
    block.high[i] = static_cast<std::uint8_t>(high);
  }
}

void round_to(Q6_K& block, const float* from) {
  float scales[16];
  for (int part = 0; part < 16; ++part) scales[part] = fitted_scale(from + 16 * part);
  block = {};
  const float largest = of_largest_magnitude(scales, 16);
  if (std::abs(largest) < 1e-15F) return;
  const float factor = -128 / largest;
  block.scale = float16(1 / factor);
  const float scale = block.scale;
  unsigned numbers[256];
  for (int part = 0; part < 16; ++part) {
    block.scales[part] = static_cast<std::int8_t>(nearest(factor * scales[part], -128, 127));
    const float wide = scale * static_cast<float>(block.scales[part]);
    for (int i = 16 * part; i < 16 * (part + 1); ++i)
      numbers[i] = static_cast<unsigned>(wide == 0 ? 32 : nearest(from[i] / wide, -32, 31) + 32);
  }
  for (int n = 0; n < 2; ++n)
    for (int i = 0; i < 32; ++i) {
      const unsigned* four = numbers + 128 * n + i;  // at distances of 32
      block.q[64 * n + i] = static_cast<std::uint8_t>((four[0] & 15U) | (four[64] & 15U) << 4);
      block.q[64 * n + 32 + i] = static_cast<std::uint8_t>((four[32] & 15U) | (four[96] & 15U) << 4);
      block.high[32 * n + i] =
          static_cast<std::uint8_t>(four[0] >> 4 | four[32] >> 4 << 2 | four[64] >> 4 << 4 | four[96] >> 4 << 6);
    }
}

}  // namespace xtape::block
