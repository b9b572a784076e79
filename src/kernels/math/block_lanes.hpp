/// Reads blocks (base/blocks/block_formats.hpp) in registers of float32. The numbers of a block are decoded in groups
/// of 32. Every value is a product that float32 holds exactly, minus another one, so it has one rounding, and the same
/// bits with every instruction set and in BlockFormat::decode.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/math/block_bytes.hpp"

namespace xtape {

/// 32 small integers, and registers of them as floats.
class Group {
 public:
  static constexpr int registers = group_numbers / static_cast<int>(xsimd::batch<float>::size);

  /// The integers are signed bytes.
  explicit Group(GroupBytes bytes) : bytes_(bytes) {}

  template <int i>
  [[gnu::always_inline]] xsimd::batch<float> floats() const {
#ifdef __AVX512F__
    const auto all = reinterpret_cast<__m256i>(bytes_);
    return _mm512_cvtepi32_ps(
        _mm512_cvtepi8_epi32(i == 0 ? _mm256_castsi256_si128(all) : _mm256_extracti128_si256(all, 1)));
#elif defined(__AVX2__)
    const auto all = reinterpret_cast<__m256i>(bytes_);
    const __m128i half = i < 2 ? _mm256_castsi256_si128(all) : _mm256_extracti128_si256(all, 1);
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(i % 2 == 0 ? half : _mm_unpackhi_epi64(half, half)));
#elif defined(__aarch64__)
    int8x16_t halves[2];
    std::memcpy(halves, &bytes_, sizeof halves);
    const int16x8_t eight = i % 4 < 2 ? vmovl_s8(vget_low_s8(halves[i / 4])) : vmovl_high_s8(halves[i / 4]);
    return vcvtq_f32_s32(i % 2 == 0 ? vmovl_s16(vget_low_s16(eight)) : vmovl_high_s16(eight));
#else
    constexpr int width = group_numbers / registers;
    std::int8_t numbers[group_numbers];
    std::memcpy(numbers, &bytes_, sizeof numbers);
    float wide[width];
    for (int k = 0; k < width; ++k) wide[k] = numbers[i * width + k];
    return xsimd::batch<float>::load_unaligned(wide);
#endif
  }

 private:
  GroupBytes bytes_;
};

/// Calls f(i, register i of 32 numbers) for every register. `at(i)` returns it; i is a constant.
template <class At, class F>
[[gnu::always_inline]] inline void each_register(const At& at, const F& f) {
  [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    (f(std::integral_constant<int, i>{}, at(std::integral_constant<int, i>{})), ...);
  }
  (std::make_integer_sequence<int, Group::registers>{});
}

/// scale * number - minimum for the numbers of a group.
template <class F>
[[gnu::always_inline]] inline void scale_less(const Group& group, float scale, float minimum, const F& f) {
  const xsimd::batch<float> scales(scale), less(-minimum);
  each_register([&](auto i) { return fused<float>(group.floats<i()>(), scales, less); }, f);
}
template <class F>
[[gnu::always_inline]] inline void scale(const Group& group, float scale, const F& f) {
  const xsimd::batch<float> scales(scale);
  each_register([&](auto i) { return group.floats<i()>() * scales; }, f);
}

#if defined(__AVX2__) && !defined(__AVX512F__)
/// The low or high halves of 8 bytes as floats.
template <int high>
__m256 halves_of_bytes(const std::uint8_t* from, int origin) {
  const __m256i bytes = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
  const __m256i halves = high ? _mm256_srli_epi32(bytes, 4) : _mm256_and_si256(bytes, _mm256_set1_epi32(15));
  return _mm256_cvtepi32_ps(origin == 0 ? halves : _mm256_sub_epi32(halves, _mm256_set1_epi32(origin)));
}
#endif

#ifdef __AVX512F__
/// scale * (k - origin) - minimum for k = 0 to 15: the values of four bits.
inline __m512 values_of_bits(float scale, float origin, float minimum) {
  const __m512 numbers = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  return _mm512_sub_ps(_mm512_mul_ps(_mm512_set1_ps(scale), _mm512_sub_ps(numbers, _mm512_set1_ps(origin))),
                       _mm512_set1_ps(minimum));
}
/// 16 bytes as 32-bit integers, of which _mm512_permutexvar_ps reads the lower four bits.
inline __m512i wide_bytes(const std::uint8_t* from) {
  return _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
}
#endif

/// Decodes one block. group<odd>(n, f) calls f(i, register i) for group 2 * n + odd.
template <class B>
class BlockReader;

#ifdef __OPTIMIZE_SIZE__

// Where code is to be small, the block is decoded in memory.
template <class B>
class BlockReader {
 public:
  explicit BlockReader(const B& block) {
    static const BlockFormat& format = *find_block_format(name_of(block_dtype<B>));
    format.decode(reinterpret_cast<const std::byte*>(&block), numbers_, 1);
  }
  template <int odd, class F>
  void group(std::int64_t n, const F& f) const {
    const float* numbers = numbers_ + (2 * n + odd) * group_numbers;
    constexpr int width = xsimd::batch<float>::size;
    each_register([&](auto i) { return xsimd::batch<float>::load_unaligned(numbers + i() * width); }, f);
  }

 private:
  float numbers_[block_numbers<B>];
};

#else

template <>
class BlockReader<block::Q8_0> {
 public:
  explicit BlockReader(const block::Q8_0& block) : block_(block) {}
  template <int odd, class F>
  [[gnu::always_inline]] void group(std::int64_t /*n*/, const F& f) const {
    scale(Group(BlockBytes<block::Q8_0>(block_).group<0>(0)), float_of(block_.scale), f);
  }

 private:
  const block::Q8_0& block_;
};

template <>
class BlockReader<block::Q4_0> {
 public:
  explicit BlockReader(const block::Q4_0& block) : block_(block) {}
  template <int odd, class F>
  [[gnu::always_inline]] void group(std::int64_t /*n*/, const F& f) const {
#ifdef __AVX512F__
    const __m512 values = values_of_bits(float_of(block_.scale), 8, 0);
    const __m512i bits = wide_bytes(block_.q);
    f(std::integral_constant<int, 0>{}, xsimd::batch<float>(_mm512_permutexvar_ps(bits, values)));
    f(std::integral_constant<int, 1>{}, xsimd::batch<float>(_mm512_permutexvar_ps(_mm512_srli_epi32(bits, 4), values)));
#elif defined(__AVX2__)
    const __m256 scale = _mm256_set1_ps(float_of(block_.scale));
    each_register(
        [&](auto i) {
          return xsimd::batch<float>(_mm256_mul_ps(halves_of_bytes<i() / 2>(block_.q + i() % 2 * 8, 8), scale));
        },
        f);
#else
    scale(Group(BlockBytes<block::Q4_0>(block_).group<0>(0) - 8), float_of(block_.scale), f);
#endif
  }

 private:
  const block::Q4_0& block_;
};

template <>
class BlockReader<block::Q4_K> {
 public:
  explicit BlockReader(const block::Q4_K& block) : block_(block), parts_(block) {}
  template <int odd, class F>
  [[gnu::always_inline]] void group(std::int64_t n, const F& f) const {
    const float scale = parts_.scales[2 * n + odd], minimum = parts_.minima[2 * n + odd];
    [[maybe_unused]] const std::uint8_t* q = block_.q + 32 * n;
#ifdef __AVX512F__
    const __m512 values = values_of_bits(scale, 0, minimum);
    each_register(
        [&](auto i) {
          const __m512i bits = wide_bytes(q + 16 * i());
          return xsimd::batch<float>(_mm512_permutexvar_ps(odd ? _mm512_srli_epi32(bits, 4) : bits, values));
        },
        f);
#elif defined(__AVX2__)
    const __m256 scales = _mm256_set1_ps(scale), minima = _mm256_set1_ps(minimum);
    each_register(
        [&](auto i) {
          return xsimd::batch<float>(_mm256_fmsub_ps(halves_of_bytes<odd>(q + 8 * i(), 0), scales, minima));
        },
        f);
#else
    scale_less(Group(BlockBytes<block::Q4_K>(block_).group<odd>(n)), scale, minimum, f);
#endif
  }

 private:
  const block::Q4_K& block_;
  PartFloats parts_;
};

template <>
class BlockReader<block::Q5_K> {
 public:
  explicit BlockReader(const block::Q5_K& block) : bytes_(block), parts_(block) {}
  template <int odd, class F>
  [[gnu::always_inline]] void group(std::int64_t n, const F& f) const {
    scale_less(Group(bytes_.group<odd>(n)), parts_.scales[2 * n + odd], parts_.minima[2 * n + odd], f);
  }

 private:
  BlockBytes<block::Q5_K> bytes_;
  PartFloats parts_;
};

template <>
class BlockReader<block::Q6_K> {
 public:
  explicit BlockReader(const block::Q6_K& block) : bytes_(block), parts_(block) {}
  template <int odd, class F>
  [[gnu::always_inline]] void group(std::int64_t n, const F& f) const {
    const Group numbers(bytes_.group<odd>(n) - 32);
    const float* scales = parts_.scales + 4 * n + 2 * odd;
    each_register(
        [&](auto i) { return numbers.floats<i()>() * xsimd::batch<float>(scales[i() / (Group::registers / 2)]); }, f);
  }

 private:
  BlockBytes<block::Q6_K> bytes_;
  SixteenScales parts_;
};

#endif

/// Calls f(first number, i, register i) for the groups [begin, finish) of a block.
template <class B, class F>
[[gnu::always_inline]] inline void each_group(const B& block, std::int64_t begin, std::int64_t finish, const F& f) {
  const BlockReader<B> reader(block);
  if constexpr (block_numbers<B> == group_numbers) {
    reader.template group<0>(0, [&](auto i, const auto& values) { f(std::int64_t{0}, i, values); });
  } else {
    const auto one = [&](std::int64_t g, auto odd) __attribute__((always_inline)) {
      reader.template group<odd()>(g / 2, [&](auto i, const auto& values) { f(g * group_numbers, i, values); });
    };
    constexpr std::integral_constant<int, 0> even;
    constexpr std::integral_constant<int, 1> odd;
    std::int64_t g = begin;
    if (g % 2 != 0 && g < finish) one(g++, odd);
    for (; g + 2 <= finish; g += 2) {
      one(g, even);
      one(g + 1, odd);
    }
    if (g < finish) one(g, even);
  }
}

/// Writes the numbers [first, first + count) of an array of blocks as floats.
template <class B>
void widen_blocks(const void* blocks, std::int64_t first, std::int64_t count, float* to) {
  constexpr std::int64_t width = xsimd::batch<float>::size;
  const auto* all = static_cast<const B*>(blocks);
  while (count > 0) {
    const B& block = all[first / block_numbers<B>];
    const std::int64_t at = first % block_numbers<B>, group = at / group_numbers, skipped = at % group_numbers;
    const std::int64_t whole = std::min(block_numbers<B> - at, count) / group_numbers;
    if (skipped == 0 && whole > 0) {
      each_group(block, group, group + whole, [&](std::int64_t number, auto i, const auto& values) {
        values.store_unaligned(to + (number - at) + i() * width);
      });
      first += whole * group_numbers;
      count -= whole * group_numbers;
      to += whole * group_numbers;
      continue;
    }
    float numbers[group_numbers];  // a part of a group
    each_group(block, group, group + 1, [&](std::int64_t /*number*/, auto i, const auto& values) {
      values.store_unaligned(numbers + i() * width);
    });
    const std::int64_t some = std::min(group_numbers - skipped, count);
    std::copy_n(numbers + skipped, some, to);
    first += some;
    count -= some;
    to += some;
  }
}

}  // namespace xtape
