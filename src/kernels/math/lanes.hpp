/// Vectorised loops over rows of contiguous elements, for kernels that work on rows.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>
#include <xsimd/xsimd.hpp>

#include "xtape/half.hpp"

namespace xtape {

/// The vector type of GCC and Clang with `count` elements.
template <class T, std::size_t count>
struct Register {
  typedef T type __attribute__((vector_size(count * sizeof(T))));  // NOLINT: `using` would drop the attribute
  typedef T loose __attribute__((vector_size(count * sizeof(T)), aligned(alignof(T)), may_alias));  // NOLINT: in memory
};

/// Whether registers multiply and add with one rounding. Results have the same bits on all processors that do.
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
inline constexpr bool has_fma = true;
#else
inline constexpr bool has_fma = false;
#endif

/// x * y + z, rounded once. The kernels are compiled without contraction of expressions, so only this function fuses.
/// (xsimd's fma multiplies and adds separately with AVX-512.) Without fused multiply-adds, rounds twice.
template <class T>
[[gnu::always_inline]] inline xsimd::batch<T> fused(const xsimd::batch<T>& x, const xsimd::batch<T>& y,
                                                    const xsimd::batch<T>& z) {
#ifdef __AVX512F__
  if constexpr (std::is_same_v<T, float>)
    return _mm512_fmadd_ps(x, y, z);
  else
    return _mm512_fmadd_pd(x, y, z);
#else
  return xsimd::fma(x, y, z);
#endif
}
/// z - x * y, rounded once.
template <class T>
[[gnu::always_inline]] inline xsimd::batch<T> fused_away(const xsimd::batch<T>& x, const xsimd::batch<T>& y,
                                                         const xsimd::batch<T>& z) {
#ifdef __AVX512F__
  if constexpr (std::is_same_v<T, float>)
    return _mm512_fnmadd_ps(x, y, z);
  else
    return _mm512_fnmadd_pd(x, y, z);
#elif defined(__FMA__)
  return xsimd::fnma(x, y, z);
#else
  return xsimd::fma(-x, y, z);  // on NEON, xsimd's fnma rounds twice
#endif
}
/// x * y + z, rounded once for floats, for loops that the compiler vectorises.
template <class T>
[[gnu::always_inline]] inline T fused(T x, T y, T z) {
  if constexpr (has_fma && std::is_same_v<T, float>)
    return __builtin_fmaf(x, y, z);
  else if constexpr (has_fma && std::is_same_v<T, double>)
    return __builtin_fma(x, y, z);
  else
    return x * y + z;
}

/// Whether there are 32 registers, as with AVX-512 and NEON, or 16.
#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr bool many_registers = true;
#else
inline constexpr bool many_registers = false;
#endif

/// Whether instructions multiply a register by one lane of another one. One load then brings several factors.
#ifdef __aarch64__
inline constexpr bool multiplies_by_lanes = true;
#else
inline constexpr bool multiplies_by_lanes = false;
#endif
/// Element `lane` in all lanes.
template <std::size_t lane, class T>
[[gnu::always_inline]] inline xsimd::batch<T> lane_of(const xsimd::batch<T>& x) {
  return xsimd::batch<T>(static_cast<typename xsimd::batch<T>::register_type>(x)[lane]);
}

/// x / y, correctly rounded. On NEON, xsimd only estimates the quotients of float32.
template <class T>
[[gnu::always_inline]] inline xsimd::batch<T> quotient(const xsimd::batch<T>& x, const xsimd::batch<T>& y) {
#ifdef __aarch64__
  if constexpr (std::is_same_v<T, float>) return vdivq_f32(x, y);
#endif
  return x / y;
}

/// Loads a register of floats from elements of a narrower type N: bfloat16, float16 or int8.
template <class N>
xsimd::batch<float> widened(const N* from) {
#ifdef __AVX512F__
  [[maybe_unused]] const auto read = [&] { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)); };
  if constexpr (std::is_same_v<N, bfloat16>)
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(read()), 16));
  else if constexpr (std::is_same_v<N, float16>)
    return _mm512_cvtph_ps(read());
  else
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
#elif defined(__AVX2__)
  [[maybe_unused]] const auto read = [&] { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); };
  if constexpr (std::is_same_v<N, bfloat16>)
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(read()), 16));
  else if constexpr (std::is_same_v<N, float16>)
    return _mm256_cvtph_ps(read());
  else
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from))));
#elif defined(__aarch64__)
  [[maybe_unused]] const auto read = [&] { return vld1_u16(reinterpret_cast<const std::uint16_t*>(from)); };
  if constexpr (std::is_same_v<N, bfloat16>) {
    return vreinterpretq_f32_u32(vshll_n_u16(read(), 16));
  } else if constexpr (std::is_same_v<N, float16>) {
    return vcvt_f32_f16(vreinterpret_f16_u16(read()));
  } else {
    std::uint32_t four;
    std::memcpy(&four, from, sizeof four);
    return vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(vcreate_s8(four)))));
  }
#else
  float wide[xsimd::batch<float>::size];
  for (std::size_t i = 0; i < xsimd::batch<float>::size; ++i) wide[i] = static_cast<float>(from[i]);
  return xsimd::batch<float>::load_unaligned(wide);
#endif
}

/// Loads and stores full registers. Elements of a narrower type are widened.
template <class T>
struct AllLanes {
  using Batch = xsimd::batch<T>;
  Batch load(const T* from, T /*fill*/ = T{}) const { return Batch::load_unaligned(from); }
  template <class N>
  Batch load(const N* from) const {
    return widened(from);
  }
  void store(T* to, const Batch& batch) const { batch.store_unaligned(to); }
};

#if defined(__AVX2__) && !defined(__AVX512F__)
/// Returns the mask of the first `count` lanes of T.
template <class T>
__m256i mask_of_first(std::int64_t count) {
  constexpr std::size_t lanes = 32 / sizeof(T);
  using Word = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  static constexpr std::array<Word, 2 * lanes> words = [] {
    std::array<Word, 2 * lanes> ones_then_zeros{};
    for (std::size_t i = 0; i < lanes; ++i) ones_then_zeros[i] = -1;
    return ones_then_zeros;
  }();
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words.data() + (lanes - static_cast<std::size_t>(count))));
}
#endif

/// Loads and stores the first `count` lanes of a register (none to all), at the end of a row. The other lanes are set
/// to `fill` and are not stored.
template <class T>
struct FirstLanes {
  using Batch = xsimd::batch<T>;
  std::int64_t count;
  Batch load(const T* from, T fill = T{}) const {
#ifdef __AVX512F__
    const auto mask = static_cast<std::uint32_t>((1u << count) - 1);
    if constexpr (std::is_same_v<T, float>)
      return _mm512_mask_loadu_ps(Batch(fill), static_cast<__mmask16>(mask), from);
    if constexpr (std::is_same_v<T, double>)
      return _mm512_mask_loadu_pd(Batch(fill), static_cast<__mmask8>(mask), from);
#elif defined(__AVX2__)
    const __m256i mask = mask_of_first<T>(count);
    if constexpr (std::is_same_v<T, float>)
      return _mm256_blendv_ps(Batch(fill), _mm256_maskload_ps(from, mask), _mm256_castsi256_ps(mask));
    if constexpr (std::is_same_v<T, double>)
      return _mm256_blendv_pd(Batch(fill), _mm256_maskload_pd(from, mask), _mm256_castsi256_pd(mask));
#elif defined(__aarch64__)
    // A register has few lanes, so that a case for each takes less time than a copy of any number of elements.
    const auto lane = [&](std::int64_t i) { return i < count ? from[i] : fill; };
    if constexpr (std::is_same_v<T, double>) return float64x2_t{lane(0), lane(1)};
    if constexpr (std::is_same_v<T, float>) return float32x4_t{lane(0), lane(1), lane(2), lane(3)};
#endif
    std::array<T, Batch::size> lanes;
    lanes.fill(fill);
    std::copy_n(from, count, lanes.data());
    return Batch::load_unaligned(lanes.data());
  }
  template <class N>
  Batch load(const N* from) const {
    std::array<N, Batch::size> lanes{};
    std::copy_n(from, count, lanes.data());
    return widened(lanes.data());
  }
  void store(T* to, const Batch& batch) const {
#ifdef __AVX512F__
    const auto mask = static_cast<std::uint32_t>((1u << count) - 1);
    if constexpr (std::is_same_v<T, float>) return _mm512_mask_storeu_ps(to, static_cast<__mmask16>(mask), batch);
    if constexpr (std::is_same_v<T, double>) return _mm512_mask_storeu_pd(to, static_cast<__mmask8>(mask), batch);
#elif defined(__AVX2__)
    if constexpr (std::is_same_v<T, float>) return _mm256_maskstore_ps(to, mask_of_first<T>(count), batch);
    if constexpr (std::is_same_v<T, double>) return _mm256_maskstore_pd(to, mask_of_first<T>(count), batch);
#elif defined(__aarch64__)
    if constexpr (std::is_floating_point_v<T>) {
      const auto numbers = static_cast<typename Batch::register_type>(batch);
#pragma GCC unroll 4
      for (std::size_t i = 0; i < Batch::size; ++i)
        if (static_cast<std::int64_t>(i) < count) to[i] = numbers[i];
      return;
    }
#endif
    std::array<T, Batch::size> lanes;
    batch.store_unaligned(lanes.data());
    std::copy_n(lanes.data(), count, to);
  }
};

/// Calls visit(i, lanes) for i = 0, width, 2 width … below `count`; `lanes` is AllLanes or FirstLanes.
template <class T, class Visit>
[[gnu::always_inline]] inline void for_lanes(std::int64_t count, const Visit& visit) {
  constexpr std::int64_t width = xsimd::batch<T>::size;
  std::int64_t i = 0;
  for (; i + width <= count; i += width) visit(i, AllLanes<T>{});
  if (i < count) visit(i, FirstLanes<T>{count - i});
}

/// Exchanges blocks of `block` elements between two registers, for transpose_square. In each pair of blocks, a0 a1 and
/// b0 b1 become a0 b0 and a1 b1.
template <std::size_t block, class R, std::size_t... j>
[[gnu::always_inline]] inline void exchange_blocks(R& a, R& b, std::index_sequence<j...> /*elements*/) {
  constexpr std::size_t count = sizeof...(j);
  const R first = __builtin_shufflevector(a, b, ((j & block) != 0 ? count + j - block : j)...);
  b = __builtin_shufflevector(a, b, ((j & block) != 0 ? count + j : j + block)...);
  a = first;
}
template <std::size_t block, std::size_t n, class R>
[[gnu::always_inline]] inline void transpose_blocks(R* rows) {
#pragma GCC unroll 16
  for (std::size_t i = 0; i < n; ++i)
    if ((i & block) == 0) exchange_blocks<block>(rows[i], rows[i + block], std::make_index_sequence<n>{});
  if constexpr (2 * block < n) transpose_blocks<2 * block, n>(rows);
}
/// Transposes n x n elements in n registers of n elements.
template <class T, std::size_t n>
[[gnu::always_inline]] inline void transpose_square(typename Register<T, n>::type (&rows)[n]) {
  transpose_blocks<1, n>(rows);
}

/// Sums the elements of each of n registers of n elements. Element i of rows[0] becomes the sum of rows[i]. The order
/// of the additions is that of add_lanes.
template <class T, std::size_t n, std::size_t block = n / 2>
[[gnu::always_inline]] inline void add_rows(typename Register<T, n>::type* rows) {
#pragma GCC unroll 16
  for (std::size_t i = 0; i < block; ++i) {
    exchange_blocks<block>(rows[i], rows[i + block], std::make_index_sequence<n>{});
    rows[i] = rows[i] + rows[i + block];
  }
  if constexpr (block > 1) add_rows<T, n, block / 2>(rows);
}

/// Reduces all elements of a register with `combine`, combining both halves at each level.
template <class T, std::size_t... k, class Combine>
T fold_register(const typename Register<T, 2 * sizeof...(k)>::type& numbers, std::index_sequence<k...> /*half*/,
                const Combine& combine) {
  constexpr std::size_t half = sizeof...(k);
  if constexpr (half == 1) {
    return combine(numbers[0], numbers[1]);
  } else {
    return fold_register<T>(combine(__builtin_shufflevector(numbers, numbers, k...),
                                    __builtin_shufflevector(numbers, numbers, (k + half)...)),
                            std::make_index_sequence<half / 2>{}, combine);
  }
}

/// Reduces all lanes pairwise with `combine`. (xsimd's hadd makes GCC 12 warn about its own headers.)
template <class T, class Combine>
T fold_lanes(const xsimd::batch<T>& batch, const Combine& combine) {
  constexpr std::size_t lanes = xsimd::batch<T>::size;
  typename Register<T, lanes>::type numbers;
  batch.store_unaligned(reinterpret_cast<T*>(&numbers));
  return fold_register<T>(numbers, std::make_index_sequence<lanes / 2>{}, combine);
}
template <class T>
T add_lanes(const xsimd::batch<T>& batch) {
  return fold_lanes(batch, [](const auto& a, const auto& b) { return a + b; });
}

/// A line: 64 bytes of adjacent elements, in one register or in several. Sums along a row have the lanes of a line, and
/// add them up in one order. They therefore have the same bits whatever the width of a register is.
template <class T>
using Line = std::array<xsimd::batch<T>, 64 / sizeof(xsimd::batch<T>)>;

/// The sum of the registers of a line, or of several lines that follow each other. Adds both halves at each level.
template <class T, std::size_t n>
[[gnu::always_inline]] inline xsimd::batch<T> joined(std::array<xsimd::batch<T>, n> registers) {
#pragma GCC unroll 8
  for (std::size_t half = n / 2; half > 0; half /= 2)
#pragma GCC unroll 16
    for (std::size_t i = 0; i < half; ++i) registers[i] += registers[i + half];
  return registers[0];
}
/// The sum of all their lanes, which goes on in this way.
template <class T, std::size_t n>
[[gnu::always_inline]] inline T add_line(const std::array<xsimd::batch<T>, n>& registers) {
  return add_lanes<T>(joined<T>(registers));
}

/// Calls visit(i, piece, lanes) for each register of the lines of a row: `piece` is the number of the register in its
/// line (a constant), and `lanes` is AllLanes or FirstLanes.
template <class T, class Visit>
[[gnu::always_inline]] inline void for_lines(std::int64_t count, const Visit& visit) {
  constexpr std::int64_t width = xsimd::batch<T>::size;
  [&]<std::size_t... piece>(std::index_sequence<piece...>) __attribute__((always_inline)) {
    constexpr auto pieces = static_cast<std::int64_t>(sizeof...(piece));
    std::int64_t i = 0;
    for (; i + pieces * width <= count; i += pieces * width)
      (visit(i + static_cast<std::int64_t>(piece) * width, std::integral_constant<std::size_t, piece>{}, AllLanes<T>{}),
       ...);
    const auto rest = [&](auto which) __attribute__((always_inline)) {
      const std::int64_t at = i + static_cast<std::int64_t>(which()) * width;
      if (at + width <= count)
        visit(at, which, AllLanes<T>{});
      else if (at < count)
        visit(at, which, FirstLanes<T>{count - at});
    };
    if (i < count) (rest(std::integral_constant<std::size_t, piece>{}), ...);
  }
  (std::make_index_sequence<std::tuple_size_v<Line<T>>>{});
}

/// Computes `sums` sums over a row. term(i, lanes) returns an array with a batch of terms for each sum. Lanes beyond
/// the end of the row must be zero. Blocks of a fixed size are summed in T, and their sums are added in double, so
/// rounding errors do not accumulate.
template <class T, std::size_t sums, class Term>
[[gnu::always_inline]] inline std::array<double, sums> sum_lanes(std::int64_t count, const Term& term) {
  using Batch = xsimd::batch<T>;
  constexpr std::int64_t width = Batch::size;
  // Several independent additions hide their latency. All of them must fit the registers.
  constexpr std::size_t lines = sums == 1 ? 4 : sums == 2 ? 2 : 1, registers = lines * std::tuple_size_v<Line<T>>;
  constexpr std::int64_t step = static_cast<std::int64_t>(registers) * width;
  constexpr std::int64_t block = 2048 / step * step;
  std::array<double, sums> totals{};
  std::int64_t i = 0;
  while (i + step <= count) {
    std::array<std::array<Batch, registers>, sums> parts;
    for (auto& part : parts) part.fill(Batch(T{}));
    const std::int64_t stop = std::min(count, i + block);
    for (; i + step <= stop; i += step)
#pragma GCC unroll 16
      for (std::size_t k = 0; k < registers; ++k) {  // unrolled, so that the sums stay in registers
        const std::array<Batch, sums> terms = term(i + static_cast<std::int64_t>(k) * width, AllLanes<T>{});
        for (std::size_t s = 0; s < sums; ++s) parts[s][k] += terms[s];
      }
    for (std::size_t s = 0; s < sums; ++s) totals[s] += add_line<T>(parts[s]);
  }
  if (i == count) return totals;
  std::array<Line<T>, sums> rest;
  for (auto& line : rest) line.fill(Batch(T{}));
  for_lines<T>(count - i, [&](std::int64_t k, auto piece, const auto& lanes) {
    const std::array<Batch, sums> terms = term(i + k, lanes);
    for (std::size_t s = 0; s < sums; ++s) rest[s][piece] += terms[s];
  });
  for (std::size_t s = 0; s < sums; ++s) totals[s] += add_line<T>(rest[s]);
  return totals;
}

/// Like sum_lanes for a single sum: term(i, lanes) returns a batch.
template <class T, class Term>
[[gnu::always_inline]] inline double sum_of_lanes(std::int64_t count, const Term& term) {
  return sum_lanes<T, 1>(
      count, [&term](std::int64_t i, const auto& lanes) { return std::array<xsimd::batch<T>, 1>{term(i, lanes)}; })[0];
}

/// The largest element, or -inf if there is none. The result is unspecified if an element is NaN.
template <class T>
T max_of_lanes(const T* row, std::int64_t count) {
  using Batch = xsimd::batch<T>;
  constexpr std::int64_t width = Batch::size;
  constexpr T lowest = -std::numeric_limits<T>::infinity();
  Batch a(lowest), b(lowest), c(lowest), d(lowest);
  std::int64_t i = 0;
  for (; i + 4 * width <= count; i += 4 * width) {
    a = xsimd::max(a, Batch::load_unaligned(row + i));
    b = xsimd::max(b, Batch::load_unaligned(row + i + width));
    c = xsimd::max(c, Batch::load_unaligned(row + i + 2 * width));
    d = xsimd::max(d, Batch::load_unaligned(row + i + 3 * width));
  }
  for_lanes<T>(count - i,
               [&](std::int64_t k, const auto& lanes) { a = xsimd::max(a, lanes.load(row + i + k, lowest)); });
  return fold_lanes(xsimd::max(xsimd::max(a, b), xsimd::max(c, d)),
                    [](const auto& p, const auto& q) { return p > q ? p : q; });
}

}  // namespace xtape
