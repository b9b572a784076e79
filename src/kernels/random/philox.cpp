#include "kernels/random/philox.hpp"

#include <Random123/philox.h>

#include <array>
#include <cstddef>
#include <xsimd/xsimd.hpp>

namespace xtape {

namespace philox {

namespace {
using Lanes = xsimd::batch<std::uint64_t>;
constexpr std::size_t registers = 2;                           // computed together, to hide the multiply's latency.
constexpr std::int64_t at_once = 4 * registers * Lanes::size;  // words
static_assert(words % at_once == 0);

// Products of the lower halves of 64-bit lanes, which xsimd does not provide.
#if defined(__AVX512F__)
inline __m512i multiplied(__m512i a, __m512i b) {
  return _mm512_mul_epu32(a, b);
}
#elif defined(__AVX2__)
inline __m256i multiplied(__m256i a, __m256i b) {
  return _mm256_mul_epu32(a, b);
}
#elif defined(__SSE2__)
inline __m128i multiplied(__m128i a, __m128i b) {
  return _mm_mul_epu32(a, b);
}
#endif
inline Lanes product(const Lanes& a, const Lanes& b) {
#if defined(__SSE2__)
  return Lanes(multiplied(static_cast<Lanes::register_type>(a), static_cast<Lanes::register_type>(b)));
#elif defined(__aarch64__)
  return vmull_u32(vmovn_u64(a), vmovn_u64(b));
#else
  const Lanes low(0xFFFFFFFFu);
  return (a & low) * (b & low);
#endif
}

/// Stores blocks one after another: `front` holds the first two words of each block, and `back` holds the last two.
inline void store_blocks(const Lanes& front, const Lanes& back, std::uint32_t* to) {
#if defined(__AVX512F__)
  const __m512i lower = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);  // xsimd's zip_lo works within 128-bit lanes
  const __m512i upper = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
  _mm512_storeu_si512(to, _mm512_permutex2var_epi64(front, lower, back));
  _mm512_storeu_si512(to + 16, _mm512_permutex2var_epi64(front, upper, back));
#elif defined(__AVX2__)
  const __m256i even = _mm256_unpacklo_epi64(front, back), odd = _mm256_unpackhi_epi64(front, back);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm256_permute2x128_si256(even, odd, 0x20));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 8), _mm256_permute2x128_si256(even, odd, 0x31));
#else
  std::array<std::uint64_t, Lanes::size> fronts, backs;
  front.store_unaligned(fronts.data());
  back.store_unaligned(backs.data());
  for (std::size_t i = 0; i < Lanes::size; ++i) {
    to[4 * i] = static_cast<std::uint32_t>(fronts[i]);
    to[4 * i + 1] = static_cast<std::uint32_t>(fronts[i] >> 32);
    to[4 * i + 2] = static_cast<std::uint32_t>(backs[i]);
    to[4 * i + 3] = static_cast<std::uint32_t>(backs[i] >> 32);
  }
#endif
}

/// Writes the words of elements [first, first + at_once) to `out`.
inline void fill_some(const RandomStream& stream, std::int64_t first, std::uint32_t* out) {
  // Each 64-bit lane contains a 32-bit word of a different block. The upper half has no effect, because the
  // multiplication uses only the lower half.
  std::array<Lanes, registers> a, b, c, d;
  static constexpr std::array<std::uint64_t, 8> ramp{0, 1, 2, 3, 4, 5, 6, 7};
  const Lanes start = Lanes::load_unaligned(ramp.data()) + Lanes(static_cast<std::uint64_t>(first) / 4);
#pragma GCC unroll 4
  for (std::size_t u = 0; u < registers; ++u) {
    a[u] = start + Lanes(std::uint64_t{u * Lanes::size});
    b[u] = a[u] >> 32;
    c[u] = Lanes(stream.step);
    d[u] = Lanes(stream.step >> 32);
  }
  const Lanes m0(std::uint64_t{PHILOX_M4x32_0});
  const Lanes m1(std::uint64_t{PHILOX_M4x32_1});
  auto k0 = static_cast<std::uint32_t>(stream.key);
  auto k1 = static_cast<std::uint32_t>(stream.key >> 32);
  for (int round = 0; round < 10; ++round) {
    const Lanes key0(std::uint64_t{k0});
    const Lanes key1(std::uint64_t{k1});
#pragma GCC unroll 4
    for (std::size_t u = 0; u < registers; ++u) {  // unrolled, so that the lanes stay in registers
      const Lanes p0 = product(a[u], m0);
      const Lanes p1 = product(c[u], m1);
      a[u] = (p1 >> 32) ^ b[u] ^ key0;
      c[u] = (p0 >> 32) ^ d[u] ^ key1;
      b[u] = p1;
      d[u] = p0;
    }
    k0 += PHILOX_W32_0;
    k1 += PHILOX_W32_1;
  }
  const Lanes low(std::uint64_t{0xFFFFFFFFu});
#pragma GCC unroll 4
  for (std::size_t u = 0; u < registers; ++u)
    store_blocks((a[u] & low) | (b[u] << 32), (c[u] & low) | (d[u] << 32), out + 4 * u * Lanes::size);
}
}  // namespace

void fill(const RandomStream& stream, std::int64_t first, std::uint32_t* out) {
  for (std::int64_t i = 0; i < words; i += at_once) fill_some(stream, first + i, out + i);
}

}  // namespace philox

}  // namespace xtape
