/// The integers of blocks (base/blocks/block_formats.hpp), in registers of bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/blocks/block_formats.hpp"
#include "kernels/math/lanes.hpp"
#include "xtape/layout.hpp"

#ifdef __GNUC__
// Vectors wider than a register never cross the border of an object file. To the end of the file, where templates are
// instantiated.
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

namespace xtape {

/// Calls f(Block{}) with the struct of a block format.
template <class F>
auto with_block(Dtype dtype, const F& f) {
  switch (dtype) {
    case Dtype::q4_0:
      return f(block::Q4_0{});
    case Dtype::q4_k:
      return f(block::Q4_K{});
    case Dtype::q5_k:
      return f(block::Q5_K{});
    case Dtype::q6_k:
      return f(block::Q6_K{});
    default:
      return f(block::Q8_0{});
  }
}

/// The dtype of arrays of these blocks; bool, if B is no struct of a block format.
template <class B>
inline constexpr Dtype block_dtype = Dtype::boolean;
template <>
inline constexpr Dtype block_dtype<block::Q8_0> = Dtype::q8_0;
template <>
inline constexpr Dtype block_dtype<block::Q4_0> = Dtype::q4_0;
template <>
inline constexpr Dtype block_dtype<block::Q4_K> = Dtype::q4_k;
template <>
inline constexpr Dtype block_dtype<block::Q5_K> = Dtype::q5_k;
template <>
inline constexpr Dtype block_dtype<block::Q6_K> = Dtype::q6_k;
template <class B>
inline constexpr bool is_block_struct = is_block(block_dtype<B>);

/// The numbers of a block.
template <class B>
inline constexpr std::int64_t block_numbers = 256;
template <>
inline constexpr std::int64_t block_numbers<block::Q8_0> = 32;
template <>
inline constexpr std::int64_t block_numbers<block::Q4_0> = 32;

/// The elements of a W: 1, or the numbers of a block.
template <class W>
inline constexpr std::int64_t elements_of = is_block_struct<W> ? block_numbers<W> : 1;

/// The address of an element, or of the block that begins with it.
template <class W>
const W* at_element(const W* first, std::int64_t element) {
  return first + element / elements_of<W>;
}

constexpr std::int64_t group_numbers = 32;
/// The pairs of groups of a block. A block of one group counts as one.
template <class B>
inline constexpr std::int64_t block_pairs = std::max<std::int64_t>(1, block_numbers<B> / (2 * group_numbers));

inline float float_of(float16 number) {
#ifdef __F16C__
  return _cvtsh_ss(number.bits);
#elif defined(__aarch64__)
  __fp16 half;
  std::memcpy(&half, &number, sizeof half);
  return half;
#else
  return number;
#endif
}

/// 32 bytes.
typedef std::uint8_t GroupBytes __attribute__((vector_size(group_numbers)));  // NOLINT: `using` would drop it

inline GroupBytes group_at(const void* from) {
  GroupBytes bytes;
  std::memcpy(&bytes, from, sizeof bytes);
  return bytes;
}

/// The integers of a block. group<odd>(n) returns those of group 2 * n + odd. A number is scale * (integer - origin),
/// minus the minimum in Q4_K and Q5_K. The integers have `bits` bits; those of Q8_0 have signs, the others have none.
template <class B>
class BlockBytes;

template <>
class BlockBytes<block::Q8_0> {
 public:
  static constexpr int origin = 0;
  static constexpr int bits = 8;
  explicit BlockBytes(const block::Q8_0& block) : block_(block) {}
  template <int odd>
  [[gnu::always_inline]] GroupBytes group(std::int64_t /*n*/) const {
    return group_at(block_.q);
  }

 private:
  const block::Q8_0& block_;
};

template <>
class BlockBytes<block::Q4_0> {
 public:
  static constexpr int origin = 8;
  static constexpr int bits = 4;
  explicit BlockBytes(const block::Q4_0& block) : block_(block) {}
  template <int odd>
  [[gnu::always_inline]] GroupBytes group(std::int64_t /*n*/) const {
    typedef std::uint8_t Half __attribute__((vector_size(group_numbers / 2)));  // NOLINT
    Half both;
    std::memcpy(&both, block_.q, sizeof both);
    return __builtin_shufflevector(both & 15, both >> 4, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17,
                                   18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31);
  }

 private:
  const block::Q4_0& block_;
};

template <>
class BlockBytes<block::Q4_K> {
 public:
  static constexpr int origin = 0;
  static constexpr int bits = 4;
  explicit BlockBytes(const block::Q4_K& block) : block_(block) {}
  template <int odd>
  [[gnu::always_inline]] GroupBytes group(std::int64_t n) const {
    const GroupBytes both = group_at(block_.q + 32 * n);
    return odd ? both >> 4 : both & 15;
  }

 private:
  const block::Q4_K& block_;
};

template <>
class BlockBytes<block::Q5_K> {
 public:
  static constexpr int origin = 0;
  static constexpr int bits = 5;
  explicit BlockBytes(const block::Q5_K& block) : block_(block) { std::memcpy(&high_, block.high, sizeof high_); }
  template <int odd>
  [[gnu::always_inline]] GroupBytes group(std::int64_t n) const {
    const GroupBytes both = group_at(block_.q + 32 * n);
    // Moves the bit of this group to bit 4. Bits of the neighbour, with which a byte shares a word, do not get there.
    const auto bit = static_cast<int>(2 * n + odd);
    const auto fifth = reinterpret_cast<GroupBytes>(bit < 4 ? high_ << (4 - bit) : high_ >> (bit - 4));
    return (odd ? both >> 4 : both & 15) | (fifth & 16);
  }

 private:
  typedef std::uint16_t Words __attribute__((vector_size(group_numbers)));  // NOLINT
  const block::Q5_K& block_;
  Words high_;
};

template <>
class BlockBytes<block::Q6_K> {
 public:
  static constexpr int origin = 32;
  static constexpr int bits = 6;
  explicit BlockBytes(const block::Q6_K& block) : block_(block) {}
  template <int odd>
  [[gnu::always_inline]] GroupBytes group(std::int64_t n) const {
    const GroupBytes low = group_at(block_.q + n / 2 * 64 + odd * 32), high = group_at(block_.high + n / 2 * 32);
    // Group 0 and 1 of a half have the low halves of bytes, group 2 and 3 the high halves.
    return n % 2 == 0 ? (low & 15) | (odd ? high << 2 & 48 : high << 4 & 48)
                      : (low >> 4) | (odd ? high >> 2 & 48 : high & 48);
  }

 private:
  const block::Q6_K& block_;
};

/// The scales and minima of Q4_K and Q5_K as floats.
struct PartFloats {
  alignas(64) float scales[8], minima[8];

  template <class B>
  explicit PartFloats(const B& block) {
    std::uint32_t words[3], bytes[4];
    std::memcpy(words, block.scales, sizeof words);
    bytes[0] = words[0] & 0x3F3F3F3FU;  // block::PartScales, four at a time
    bytes[1] = (words[2] & 0x0F0F0F0FU) | ((words[0] >> 6 & 0x03030303U) << 4);
    bytes[2] = words[1] & 0x3F3F3F3FU;
    bytes[3] = (words[2] >> 4 & 0x0F0F0F0FU) | ((words[1] >> 6 & 0x03030303U) << 4);
    const float scale = float_of(block.scale), minimum = float_of(block.minimum);
#ifdef __AVX2__
    const auto floats = [&](int at) {
      return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes + at))));
    };
    _mm256_store_ps(scales, _mm256_mul_ps(floats(0), _mm256_set1_ps(scale)));
    _mm256_store_ps(minima, _mm256_mul_ps(floats(2), _mm256_set1_ps(minimum)));
#else
    std::uint8_t numbers[16];
    std::memcpy(numbers, bytes, sizeof numbers);
    for (int i = 0; i < 8; ++i) {
      scales[i] = scale * static_cast<float>(numbers[i]);
      minima[i] = minimum * static_cast<float>(numbers[i + 8]);
    }
#endif
  }
};

/// The scales of Q6_K as floats.
struct SixteenScales {
  alignas(64) float scales[16];

  explicit SixteenScales(const block::Q6_K& block) {
    const float scale = float_of(block.scale);
#pragma omp simd
    for (int i = 0; i < 16; ++i) scales[i] = scale * static_cast<float>(block.scales[i]);
  }
};

}  // namespace xtape
