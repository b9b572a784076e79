/// Products of float32 rows by a matrix in blocks, in integers (rounds_to_bytes). The rows are rounded to 8 bits: 32
/// neighbours are a scale times integers from -127 to 127. So are 32 terms of a column that lies across the blocks. The
/// products of 32 or 16 numbers that share a scale in both operands are added as integers, which is exact. Their sums
/// are scaled and added in float32, in an order that depends only on shapes: results have the same bits with every
/// instruction set that fuses.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "base/arrays/lengths.hpp"
#include "base/system/instruction_set.hpp"
#include "kernels/math/block_bytes.hpp"
#include "kernels/products/gemm.hpp"

namespace xtape {

/// Registers of bytes, and of the sums of four neighbouring products of bytes.
using Ints = xsimd::batch<std::int32_t>;
using ByteRegister = Register<std::uint8_t, sizeof(Ints)>::type;

/// Whether an instruction multiplies unsigned by signed bytes and adds four neighbouring products (VNNI). Where a
/// processor of this set may lack it, product_kernel takes the products of the narrower set.
#if defined(__AVX512VNNI__) || (defined(__AVX512F__) && defined(XTAPE_SHARED_KERNELS))
#define XTAPE_ADDS_FOUR
inline constexpr bool adds_four = true;
#else
inline constexpr bool adds_four = false;
#endif

/// Whether instructions multiply bytes with signs. Tiles then need no origin: bytes lose it while they are packed.
#ifdef __aarch64__
inline constexpr bool multiplies_signed = true;
#else
inline constexpr bool multiplies_signed = false;
#endif

/// How the integers of a block are in registers. With VNNI, those of Q8_0 lose their signs.
template <class B>
inline constexpr bool has_signs = multiplies_signed || (block_dtype<B> == Dtype::q8_0 && !adds_four);
template <class B>
inline constexpr int origin_of = (block_dtype<B> == Dtype::q8_0 && adds_four) ? 128 : BlockBytes<B>::origin;
/// The numbers of a block that share a scale.
template <class B>
inline constexpr int part_numbers = block_dtype<B> == Dtype::q6_k ? 16 : 32;
template <class B>
inline constexpr bool has_minima = block_dtype<B> == Dtype::q4_k || block_dtype<B> == Dtype::q5_k;

/// What the rows need to know of a format.
struct ByteFormat {
  int part, origin;
  bool has_minima;
};
inline ByteFormat byte_format(Dtype dtype) {
  return with_block(dtype, [](auto block) {
    using B = decltype(block);
    return ByteFormat{part_numbers<B>, origin_of<B>, has_minima<B>};
  });
}

template <class B, int odd>
[[gnu::always_inline]] inline GroupBytes group_of(const BlockBytes<B>& block, std::int64_t n) {
  const GroupBytes bytes = block.template group<odd>(n);
  return block_dtype<B> == Dtype::q8_0 && adds_four ? bytes ^ 128 : bytes;
}

/// How bytes are multiplied, if the instructions for that are not those of the whole set: with SDOT (dotprod), or with
/// SMMLA (i8mm), which multiplies two rows by two columns, of eight terms each.
enum class ByteUnit : std::uint8_t { usual, dotprod, i8mm };
#ifdef __aarch64__
// Begins asm with one of these instructions: the assembler must know it, also if the compiler may not use it.
#ifdef __ARM_FEATURE_MATMUL_INT8
#define XTAPE_BYTE_UNIT
#elif defined(__ARM_FEATURE_DOTPROD)
#define XTAPE_BYTE_UNIT ".arch_extension i8mm\n\t"
#else
#define XTAPE_BYTE_UNIT ".arch armv8.2-a+dotprod+i8mm\n\t"
#endif
inline constexpr bool may_have_byte_unit = true;
#else
inline constexpr bool may_have_byte_unit = false;
#endif
/// Returns f(unit), where the unit of the processor, or `widest` if that is less, is a constant.
template <ByteUnit widest, class F>
auto with_byte_unit(const F& f) {
  if constexpr (may_have_byte_unit && widest == ByteUnit::i8mm)
    if (instruction_set() >= InstructionSet::i8mm) return f(std::integral_constant<ByteUnit, ByteUnit::i8mm>{});
  if constexpr (may_have_byte_unit)
    if (instruction_set() >= InstructionSet::dotprod) return f(std::integral_constant<ByteUnit, ByteUnit::dotprod>{});
  return f(std::integral_constant<ByteUnit, ByteUnit::usual>{});
}

/// Sums of two neighbouring products of bytes.
using Shorts = Register<std::int16_t, 2 * Ints::size>::type;

/// Whether 16 bits hold the sums of two products of all terms of a part, integers of 4 bits. With VNNI and NEON,
/// registers hold wider sums.
template <class B>
inline constexpr bool parts_are_short = BlockBytes<B>::bits == 4 && !adds_four && !multiplies_signed;
static_assert(part_numbers<block::Q4_K> / 4 * (2 * 15 * 127) <= 32767);

/// The sums of two neighbouring products of bytes of a weight and of a row, if 16 bits hold them: without VNNI, those
/// of all formats.
template <bool is_signed>
[[gnu::always_inline]] inline Shorts products_of_two(ByteRegister weight, ByteRegister row) {
#if defined(__AVX512BW__)
  auto w = reinterpret_cast<__m512i>(weight), x = reinterpret_cast<__m512i>(row);
  if constexpr (is_signed) {
    x = _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(w), _mm512_setzero_si512(), x);
    w = _mm512_abs_epi8(w);  // of -128: 128, without a sign
  }
  return reinterpret_cast<Shorts>(_mm512_maddubs_epi16(w, x));
#elif defined(__AVX2__)
  auto w = reinterpret_cast<__m256i>(weight), x = reinterpret_cast<__m256i>(row);
  if constexpr (is_signed) {
    x = _mm256_sign_epi8(x, w);
    w = _mm256_abs_epi8(w);  // of -128: 128, without a sign
  }
  return reinterpret_cast<Shorts>(_mm256_maddubs_epi16(w, x));
#elif defined(__aarch64__)
  const int8x16_t w = vreinterpretq_s8_u8(weight), x = vreinterpretq_s8_u8(row);
  return reinterpret_cast<Shorts>(vpaddq_s16(vmull_s8(vget_low_s8(w), vget_low_s8(x)), vmull_high_s8(w, x)));
#else
  const auto product = [&](std::size_t i) {
    const int w = is_signed ? static_cast<std::int8_t>(weight[i]) : static_cast<int>(weight[i]);
    return w * static_cast<std::int8_t>(row[i]);
  };
  Shorts sums;
  for (std::size_t i = 0; i < 2 * Ints::size; ++i)
    sums[i] = static_cast<std::int16_t>(product(2 * i) + product(2 * i + 1));
  return sums;
#endif
}

/// Adds to each lane its two integers of 16 bits.
[[gnu::always_inline]] inline Ints add_both(Ints sums, Shorts two) {
#if defined(__AVX512BW__)
  return _mm512_add_epi32(sums, _mm512_madd_epi16(reinterpret_cast<__m512i>(two), _mm512_set1_epi16(1)));
#elif defined(__AVX2__)
  return _mm256_add_epi32(sums, _mm256_madd_epi16(reinterpret_cast<__m256i>(two), _mm256_set1_epi16(1)));
#elif defined(__aarch64__)
  return vpadalq_s16(sums, reinterpret_cast<int16x8_t>(two));
#else
  std::array<std::int32_t, Ints::size> all;
  sums.store_unaligned(all.data());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] += two[2 * i] + two[2 * i + 1];
  return Ints::load_unaligned(all.data());
#endif
}

/// Adds to each lane the products of its four bytes of a weight and of a row.
template <bool is_signed, ByteUnit unit>
[[gnu::always_inline]] inline Ints add_products(Ints sums, ByteRegister weight, ByteRegister row) {
#ifdef XTAPE_ADDS_FOUR
  __m512i result = sums;
  // Does not use the intrinsic, which needs a function that is compiled for the instruction.
  asm("vpdpbusd %2, %1, %0" : "+v"(result) : "v"(weight), "v"(row));
  return result;
#else
#ifdef __aarch64__
  if constexpr (unit == ByteUnit::dotprod) {
    int32x4_t result = sums;
    // Not the intrinsic, for the same reason.
    asm(XTAPE_BYTE_UNIT "sdot %0.4s, %1.16b, %2.16b" : "+w"(result) : "w"(weight), "w"(row));
    return result;
  }
#endif
  return add_both(sums, products_of_two<is_signed>(weight, row));
#endif
}

inline xsimd::batch<float> floats_of(Ints numbers) {
#ifdef __AVX512F__
  return _mm512_cvtepi32_ps(numbers);
#elif defined(__AVX2__)
  return _mm256_cvtepi32_ps(numbers);
#elif defined(__aarch64__)
  return vcvtq_f32_s32(numbers);
#else
  std::array<std::int32_t, Ints::size> all;
  numbers.store_unaligned(all.data());
  std::array<float, Ints::size> floats;
  for (std::size_t i = 0; i < all.size(); ++i) floats[i] = static_cast<float>(all[i]);
  return xsimd::batch<float>::load_unaligned(floats.data());
#endif
}

/// The bits of a magnitude. They have the order of magnitudes, and those of NaN are above infinity.
inline std::uint32_t magnitude_bits(float x) {
  return std::bit_cast<std::uint32_t>(x) & 0x7FFFFFFFU;
}
/// The scale of numbers that are rounded to bytes together, and the factor that makes them integers from -127 to 127.
struct ByteScale {
  float scale, factor;

  /// `largest`: the bits of the largest magnitude. The scale is NaN if that is infinite or NaN.
  explicit ByteScale(std::uint32_t largest) {
    constexpr std::uint32_t infinite = 0x7F800000U;
    constexpr float least = 0x1p-118F;  // scales of smaller numbers would be subnormal
    const auto magnitude = std::bit_cast<float>(largest);
    const bool rounds = largest < infinite && magnitude >= least;
    const float spacing = magnitude / 127, inverse = 127 / magnitude;
    scale = rounds ? spacing : largest < infinite ? 0.0F : std::numeric_limits<float>::quiet_NaN();
    factor = rounds ? inverse : 0.0F;
  }
};
/// The lowest byte is x * factor, rounded to nearest, ties to even.
inline std::uint32_t rounded_bits(float x, float factor) {
  constexpr float whole = 12582912;  // 1.5 · 2^23: the last bit of a sum is 1
  return std::bit_cast<std::uint32_t>(x * factor + whole);
}

/// A band of rows in bytes. Its other arrays are [parts, rows].
struct ByteBand {
  const std::int8_t* bytes;     ///< Of the first row. The next one is ByteRows::row_bytes further.
  const float* scales;          ///< For every 16 or 32 numbers.
  const std::int32_t* origins;  ///< The sums of numbers, times -origin: what sums of products begin with.
  const float* sums;            ///< scale * the sum of every 32 numbers, for the minima.
};

/// The memory of rows in bytes, in bands of `together` rows. The last band is filled up with copies of the last row.
class ByteRows {
 public:
  /// `summed`: the number of neighbours with a sum in ByteBand::origins. `in_turn`: the number of rows that share the
  /// memory of so many rows, with eight terms of each in turn.
  ByteRows(std::int64_t terms, const ByteFormat& format, int summed, std::int64_t together, std::int64_t in_turn = 1);

  std::int64_t row_bytes() const { return row_bytes_; }
  std::int64_t padded(std::int64_t rows) const { return round_up(rows, together_); }
  std::size_t bytes(std::int64_t rows) const {
    return static_cast<std::size_t>(padded(rows) / together_) * band_bytes_;
  }
  /// The band of which row `first` is the first one.
  ByteBand band(const std::byte* memory, std::int64_t first) const {
    const std::byte* at = memory + static_cast<std::size_t>(first / together_) * band_bytes_;
    return {reinterpret_cast<const std::int8_t*>(at), reinterpret_cast<const float*>(at + scales_),
            reinterpret_cast<const std::int32_t*>(at + origins_), reinterpret_cast<const float*>(at + sums_)};
  }
  /// Rounds a row of at most the given number of terms to bytes. If a number is infinite or NaN, the scale of its 32
  /// neighbours is NaN, and so are the results of the row.
  void round(const float* x, std::int64_t terms, std::int64_t term_stride, std::byte* memory, std::int64_t row) const;

 private:
  ByteFormat format_;
  int summed_;
  std::int64_t together_, in_turn_, row_bytes_;
  std::size_t scales_, origins_, sums_, band_bytes_;
};

/// The arrays of a product of bytes: `blocks` and `c` are the addresses of the first elements.
struct ByteOperands {
  const std::byte *rows, *blocks;
  float* c;
  std::int64_t terms;
  bool add;  ///< Whether to add to c.
};
/// A product by a matrix in blocks, which is operand 1 of its plan.
struct ByteProduct {
  ByteRows rows;                ///< How the method reads the rows.
  std::int64_t terms_together;  ///< The most terms of a call. The sums of further terms are added by further calls.
  std::size_t scratch_bytes = 0;
  std::function<void(const ByteOperands& operands, std::byte* scratch)> multiply;
};

/// The most rows of products that read each column once, with terms in the lanes of registers. The bits of a row do not
/// depend on the other rows.
constexpr std::int64_t few_byte_rows = 8;
ByteProduct make_byte_columns(const GemmPlan& plan);
/// Products of more rows, with columns in the lanes. The blocks lie along the sums, or across them.
ByteProduct make_byte_tiles(const GemmPlan& plan, bool across);

}  // namespace xtape
