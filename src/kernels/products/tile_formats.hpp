/// The formats in which register tiles hold the operands of a product.
///
/// A part is the content of one lane of a register: one term, or two terms of bfloat16. A format packs lines (rows of
/// the left operand, columns of the right operand) into parts, and multiplies registers of parts. It has these
/// functions:
/// - part: the part of the next `count` terms of a line, which are `stride` elements apart;
/// - along_terms: the next `count` parts of a line whose terms are contiguous;
/// - along_lines: one part of each of the next `count` lines, which are contiguous.
/// The elements of a line are of type Number, or of a narrower type (bfloat16, float16, int8).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <type_traits>
#include <xsimd/xsimd.hpp>

#include "kernels/math/lanes.hpp"

namespace xtape {

/// Lines of an operand: the strides between lines and between terms.
template <class T>
struct Lines {
  const T* data;
  std::int64_t line, term;
};

/// Unchanged numbers, one per part.
template <class T>
struct Plain {
  using Number = T;  ///< The type of the operands, unless they are narrow.
  using Part = T;
  using Sum = T;
  static constexpr std::int64_t terms = 1;  ///< The number of terms in a part.
  static constexpr bool must_pack = false;  ///< Whether operands cannot be read in place.

  static xsimd::batch<T> add_product(const xsimd::batch<T>& sum, const xsimd::batch<T>& left,
                                     const xsimd::batch<T>& right) {
    return fused(left, right, sum);
  }
  template <class N>
  static T part(const N* terms, std::int64_t /*stride*/, std::int64_t /*count*/) {
    return static_cast<T>(*terms);
  }
  template <class N>
  [[gnu::always_inline]] static void along_terms(const N* from, std::int64_t count, T* to) {
    constexpr auto width = static_cast<std::int64_t>(xsimd::batch<T>::size);
    std::int64_t i = 0;
    for (; i + width <= count; i += width) AllLanes<T>{}.load(from + i).store_unaligned(to + i);
#pragma omp simd
    for (std::int64_t k = i; k < count; ++k) to[k] = static_cast<T>(from[k]);
  }
  template <class N>
  [[gnu::always_inline]] static void along_lines(const N* from, std::int64_t /*stride*/, std::int64_t count, T* to) {
    along_terms(from, count, to);
  }
};

#ifdef __AVX512F__
/// Pairs of bfloat16, for AVX512-BF16. A part contains two terms, the first in the lower half. The instruction sums in
/// float32, and treats subnormal numbers as 0.
struct Pairs {
  using Number = float;
  using Part = float;
  using Sum = float;
  static constexpr std::int64_t terms = 2;
  static constexpr bool must_pack = true;

  static xsimd::batch<float> add_product(const xsimd::batch<float>& sum, const xsimd::batch<float>& left,
                                         const xsimd::batch<float>& right) {
    __m512 result = sum;
    // Does not use the intrinsic, because the intrinsic needs a function that is compiled for AVX512-BF16. Library
    // templates called by such a function would then be compiled for AVX512-BF16, too.
    asm("vdpbf16ps %2, %1, %0" : "+v"(result) : "v"(__m512(left)), "v"(__m512(right)));
    return result;
  }
  template <class N>
  static float part(const N* terms, std::int64_t stride, std::int64_t count) {
    return pair(terms[0], count > 1 ? terms[stride] : N{});
  }
  template <class N>
  static void along_terms(const N* from, std::int64_t count, float* to) {
    std::int64_t i = 0;
    if constexpr (!std::is_same_v<N, bfloat16>)
      for (; i + lanes <= count; i += lanes)  // pairs of contiguous terms are contiguous bfloat16 numbers
        _mm512_storeu_si512(to + i, rounded(load(from + 2 * i), load(from + 2 * i + lanes)));
    auto* halves = reinterpret_cast<std::uint16_t*>(to);
#pragma omp simd
    for (std::int64_t k = 2 * i; k < 2 * count; ++k) halves[k] = bits_of(from[k]);
  }
  template <class N>
  static void along_lines(const N* from, std::int64_t stride, std::int64_t count, float* to) {
    std::int64_t i = 0;
    if constexpr (!std::is_same_v<N, bfloat16>)
      for (; i + lanes <= count; i += lanes)
        _mm512_storeu_si512(to + i, interleaved(rounded(load(from + i), load(from + i + stride))));
#pragma omp simd
    for (std::int64_t k = i; k < count; ++k) to[k] = pair(from[k], from[k + stride]);
  }

 private:
  static constexpr std::int64_t lanes = 16;

  template <class N>
  static __m512 load(const N* from) {
    return AllLanes<float>{}.load(from);
  }
  /// Rounds the numbers to bfloat16, those of `low` first. Subnormal numbers become 0.
  static __m512i rounded(__m512 low, __m512 high) {
    __m512i result;
    asm("vcvtne2ps2bf16 %2, %1, %0" : "=v"(result) : "v"(high), "v"(low));  // not the intrinsic (see add_product)
    return result;
  }
  /// Interleaves the elements of the first and second half.
  static __m512i interleaved(__m512i halves) {
    static constexpr auto order = [] {
      std::array<std::uint16_t, 32> places{};
      for (std::size_t i = 0; i < 32; ++i) places[i] = static_cast<std::uint16_t>(i / 2 + i % 2 * 16);
      return places;
    }();
    return _mm512_permutexvar_epi16(_mm512_loadu_si512(order.data()), halves);
  }
  static std::uint16_t bits_of(bfloat16 number) {
    return number.bits;
  }
  template <class N>
  static std::uint16_t bits_of(N number) {
    return bfloat16(number).bits;
  }
  template <class N>
  static float pair(N first, N second) {
    return std::bit_cast<float>(bits_of(first) | static_cast<std::uint32_t>(bits_of(second)) << 16);
  }
};
#endif

}  // namespace xtape
