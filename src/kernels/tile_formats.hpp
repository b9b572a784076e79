/// The forms in which register tiles hold the operands of a product.
///
/// A part is what one lane of a register holds: one term, or two terms of bfloat16. A format packs lines (rows of the
/// left operand, columns of the right one) into parts, and multiplies registers of parts. It has:
/// - part: the part of the next `count` terms of a line, which are `stride` elements apart;
/// - along_terms: the next `count` parts of a line whose terms are contiguous;
/// - along_lines: one part of each of the next `count` lines, which are contiguous.
/// The elements of a line are of type Number, or of a narrower one (bfloat16, int8).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <xsimd/xsimd.hpp>

#include "xtape/bfloat16.hpp"

namespace xtape {

/// Lines of an operand: the strides between lines and between terms.
template <class T>
struct Lines {
  const T* data;
  std::int64_t line, term;
};

/// Numbers as they are.
template <class T>
struct Plain {
  using Number = T;  ///< Of the operands, unless they are narrow.
  using Part = T;
  using Sum = T;
  static constexpr std::int64_t terms = 1;       ///< Of a part.
  static constexpr bool must_pack_left = false;  ///< Whether the left operand cannot be read in place.

  static xsimd::batch<T> add_product(const xsimd::batch<T>& sum, const xsimd::batch<T>& left,
                                     const xsimd::batch<T>& right) {
    return xsimd::fma(left, right, sum);
  }
  template <class N>
  static T part(const N* terms, std::int64_t /*stride*/, std::int64_t /*count*/) {
    return static_cast<T>(*terms);
  }
  template <class N>
  static void along_terms(const N* from, std::int64_t count, T* to) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(from[i]);
  }
  template <class N>
  static void along_lines(const N* from, std::int64_t /*stride*/, std::int64_t count, T* to) {
    along_terms(from, count, to);
  }
};

#ifdef __AVX512F__
/// Pairs of bfloat16, for AVX512-BF16. A part is the bits of two terms, the first in the lower half. The instruction
/// sums in float32, and treats subnormal numbers as 0.
struct Pairs {
  using Number = float;
  using Part = float;
  using Sum = float;
  static constexpr std::int64_t terms = 2;
  static constexpr bool must_pack_left = true;

  static xsimd::batch<float> add_product(const xsimd::batch<float>& sum, const xsimd::batch<float>& left,
                                         const xsimd::batch<float>& right) {
    __m512 result = sum;
    // Not the intrinsic, which needs a function that is compiled for AVX512-BF16: templates of the compiler's library
    // that such a function calls would be, too.
    asm("vdpbf16ps %2, %1, %0" : "+v"(result) : "v"(__m512(left)), "v"(__m512(right)));
    return result;
  }
  template <class N>
  static float part(const N* terms, std::int64_t stride, std::int64_t count) {
    return pair(terms[0], count > 1 ? terms[stride] : N{});
  }
  template <class N>
  static void along_terms(const N* from, std::int64_t count, float* to) {
    auto* halves = reinterpret_cast<std::uint16_t*>(to);  // pairs of contiguous terms are contiguous bfloat16 numbers
#pragma omp simd
    for (std::int64_t i = 0; i < 2 * count; ++i) halves[i] = bits_of(from[i]);
  }
  template <class N>
  static void along_lines(const N* from, std::int64_t stride, std::int64_t count, float* to) {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) to[i] = pair(from[i], from[i + stride]);
  }

 private:
  static std::uint16_t bits_of(bfloat16 number) { return number.bits; }
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
