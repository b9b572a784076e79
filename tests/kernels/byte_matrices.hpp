/// Matrices in blocks, numbers in 8 bits, and their products, in plain loops.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/blocks/block_formats.hpp"
#include "kernels/products/product.hpp"
#include "matrices.hpp"
#include "needs_instructions.hpp"

namespace xtape {

inline constexpr Dtype byte_formats[] = {Dtype::q8_0, Dtype::q4_0, Dtype::q4_k, Dtype::q5_k, Dtype::q6_k};

/// Number i of a block is scale * integer - minimum.
struct Decoded {
  float scale, minimum;
  int integer;
};
inline Decoded decoded(const block::Q8_0& b, int i) {
  return {b.scale, 0, b.q[i]};
}
inline Decoded decoded(const block::Q4_0& b, int i) {
  return {b.scale, 0, (i < 16 ? b.q[i] & 15 : b.q[i - 16] >> 4) - 8};
}
template <class B>
Decoded decoded(const B& b, int i) {  // Q4_K, Q5_K
  const block::PartScales parts = block::part_scales(b.scales);
  const int part = i / 32, byte = b.q[i / 64 * 32 + i % 32];
  int integer = part % 2 == 0 ? byte & 15 : byte >> 4;
  if constexpr (std::is_same_v<B, block::Q5_K>) integer += (b.high[i % 32] >> part & 1) * 16;
  return {static_cast<float>(b.scale) * parts.scales[part], static_cast<float>(b.minimum) * parts.minima[part],
          integer};
}
inline Decoded decoded(const block::Q6_K& b, int i) {
  const int half = i / 128, quarter = i % 128 / 32, byte = b.q[64 * half + quarter % 2 * 32 + i % 32];
  const int low = quarter < 2 ? byte & 15 : byte >> 4, high = b.high[32 * half + i % 32] >> 2 * quarter & 3;
  return {static_cast<float>(b.scale) * b.scales[i / 16], 0, low + 16 * high - 32};
}

/// A matrix [columns, terms] in blocks with random bits and small scales.
struct BlockMatrix {
  Dtype dtype;
  std::int64_t terms;
  Array blocks;

  BlockMatrix(Dtype format, std::int64_t columns, std::int64_t of_terms, std::mt19937& random)
      : dtype(format), terms(of_terms), blocks(format, {columns, of_terms}) {
    auto* bytes = static_cast<std::uint8_t*>(blocks.data());
    for (std::size_t i = 0; i < blocks.bytes(); ++i) bytes[i] = static_cast<std::uint8_t>(random());
    const auto scale = [&] { return float16(static_cast<float>(1 + random() % 1000) / 50000); };
    for (std::int64_t b = 0; b < columns * terms / block_of(dtype); ++b) {
      if (dtype == Dtype::q8_0) static_cast<block::Q8_0*>(blocks.data())[b].scale = scale();
      if (dtype == Dtype::q4_0) static_cast<block::Q4_0*>(blocks.data())[b].scale = scale();
      if (dtype == Dtype::q6_k) static_cast<block::Q6_K*>(blocks.data())[b].scale = scale();
      if (dtype == Dtype::q4_k)
        static_cast<block::Q4_K*>(blocks.data())[b].scale = scale(),
        static_cast<block::Q4_K*>(blocks.data())[b].minimum = scale();
      if (dtype == Dtype::q5_k)
        static_cast<block::Q5_K*>(blocks.data())[b].scale = scale(),
        static_cast<block::Q5_K*>(blocks.data())[b].minimum = scale();
    }
  }
  Decoded at(std::int64_t column, std::int64_t term) const {
    const std::int64_t place = column * terms + term, b = place / block_of(dtype);
    const auto i = static_cast<int>(place % block_of(dtype));
    const void* data = blocks.data();
    switch (dtype) {
      case Dtype::q4_0:
        return decoded(static_cast<const block::Q4_0*>(data)[b], i);
      case Dtype::q4_k:
        return decoded(static_cast<const block::Q4_K*>(data)[b], i);
      case Dtype::q5_k:
        return decoded(static_cast<const block::Q5_K*>(data)[b], i);
      case Dtype::q6_k:
        return decoded(static_cast<const block::Q6_K*>(data)[b], i);
      default:
        return decoded(static_cast<const block::Q8_0*>(data)[b], i);
    }
  }
  /// The number as a float.
  float value(std::int64_t column, std::int64_t term) const {
    const Decoded number = at(column, term);
    return std::fma(static_cast<float>(number.integer), number.scale, -number.minimum);
  }
};

/// Numbers in 8 bits, such as a row.
struct ByteRounded {
  std::vector<float> scales;  ///< of 32 numbers
  std::vector<int> integers;

  explicit ByteRounded(const std::vector<float>& x) {
    for (std::size_t first = 0; first < x.size(); first += 32) {
      float largest = 0;
      bool finite = true;
      for (std::size_t i = first; i < first + 32; ++i) {
        finite = finite && std::isfinite(x[i]);
        largest = std::max(largest, std::abs(x[i]));
      }
      const bool none = !finite || largest < 0x1p-118F;
      scales.push_back(!finite ? std::numeric_limits<float>::quiet_NaN() : none ? 0 : largest / 127);
      for (std::size_t i = first; i < first + 32; ++i)
        integers.push_back(none ? 0 : static_cast<int>(std::nearbyint(x[i] * (127 / largest))));
    }
  }
  std::int64_t products(const BlockMatrix& w, std::int64_t column, std::int64_t first, int count) const {
    std::int64_t sum = 0;
    for (std::int64_t i = first; i < first + count; ++i)
      sum += integers[static_cast<std::size_t>(i)] * w.at(column, i).integer;
    return sum;
  }
  float sum_of(std::int64_t group) const {
    int sum = 0;
    for (std::int64_t i = 32 * group; i < 32 * group + 32; ++i) sum += integers[static_cast<std::size_t>(i)];
    return scales[static_cast<std::size_t>(group)] * static_cast<float>(sum);
  }
};

inline std::vector<float> drawn(std::int64_t count, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> numbers(static_cast<std::size_t>(count));
  for (float& each : numbers) each = normal(random);
  return numbers;
}

inline bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) || (std::isnan(a) && std::isnan(b));
}

}  // namespace xtape
