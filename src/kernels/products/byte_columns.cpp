// Products of few rows in bytes by a matrix in blocks. Each column is read once. Registers hold neighbouring terms.
#include <algorithm>
#include <type_traits>
#include <utility>

#include "base/arrays/lengths.hpp"
#include "base/threads/threads.hpp"
#include "kernels/products/byte_products.hpp"

namespace xtape {

namespace {
/// The numbers that are multiplied together: a block of 256, or two of 32.
template <class B>
[[maybe_unused]] constexpr std::int64_t unit_numbers = std::max<std::int64_t>(64, block_numbers<B>);

template <class B>
using PartScales = std::conditional_t<block_dtype<B> == Dtype::q6_k, SixteenScales, PartFloats>;

/// The blocks of a column that are multiplied together, and their scales as floats.
template <class B>
class Unit : private BlockBytes<B>, public PartScales<B> {
 public:
  static constexpr int parts = block_numbers<B> / part_numbers<B>;
  /// Unit `u` of a column of `blocks` blocks.
  Unit(const B* column, std::int64_t u, std::int64_t /*blocks*/) : BlockBytes<B>(column[u]), PartScales<B>(column[u]) {}
  template <int odd>
  [[gnu::always_inline]] GroupBytes group(std::int64_t n) const {
    return group_of<B, odd>(*this, n);
  }
};

/// After an odd last block, it stands again, for terms of rows that are 0.
template <class B>
class TwoBlocks {
 public:
  static constexpr int parts = 2;
  float scales[2];
  TwoBlocks(const B* column, std::int64_t u, std::int64_t blocks)
      : first_(column[2 * u]), second_(column[std::min(2 * u + 1, blocks - 1)]) {
    scales[0] = float_of(first_.scale);
    scales[1] = float_of(second_.scale);
  }
  template <int odd>
  [[gnu::always_inline]] GroupBytes group(std::int64_t /*n*/) const {
    return group_of<B, odd>(BlockBytes<B>(odd ? second_ : first_), 0);
  }

 private:
  const B &first_, &second_;
};
template <>
struct Unit<block::Q8_0> : TwoBlocks<block::Q8_0> {
  using TwoBlocks::TwoBlocks;
};
template <>
struct Unit<block::Q4_0> : TwoBlocks<block::Q4_0> {
  using TwoBlocks::TwoBlocks;
};

/// Eight sums of minima.
class Eight {
 public:
  void add_products(const float* x, const float* y) {
#ifdef __AVX2__
    _mm256_store_ps(sums_, _mm256_fmadd_ps(_mm256_loadu_ps(x), _mm256_loadu_ps(y), _mm256_load_ps(sums_)));
#else
    for (int i = 0; i < 8; ++i) sums_[i] = fused(x[i], y[i], sums_[i]);
#endif
  }
  float sum() const {
    float four[4];
    for (int i = 0; i < 4; ++i) four[i] = sums_[i] + sums_[i + 4];
    return (four[0] + four[2]) + (four[1] + four[3]);
  }

 private:
  alignas(32) float sums_[8] = {};
};

/// The scales of the lanes of register `piece` of a line: each of the `parts` scales is that of neighbouring lanes.
template <int parts, std::size_t piece>
[[gnu::always_inline]] inline xsimd::batch<float> in_lanes(const float* scales) {
#ifdef __AVX512F__
  if constexpr (parts == 2) {
    const __m512 both =
        _mm512_broadcast_f32x2(_mm_castsi128_ps(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(scales))));
    return _mm512_permutevar_ps(both, _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1));
  } else {
    return _mm512_permutevar_ps(_mm512_broadcast_f32x4(_mm_loadu_ps(scales)),
                                _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3));
  }
#else
  constexpr std::size_t lanes = xsimd::batch<float>::size, first = piece * lanes * parts / 16;
#ifdef __AVX2__
  if constexpr (parts == 4)
    return _mm256_set_m128(_mm_broadcast_ss(scales + first + 1), _mm_broadcast_ss(scales + first));
#endif
  return xsimd::batch<float>(scales[first]);
#endif
}

/// Register `piece` of the bytes of two groups.
template <std::size_t piece>
[[gnu::always_inline]] inline ByteRegister register_of(const GroupBytes& low, const GroupBytes& high) {
#ifdef __AVX512F__
  return reinterpret_cast<ByteRegister>(
      _mm512_inserti64x4(_mm512_castsi256_si512(reinterpret_cast<__m256i>(low)), reinterpret_cast<__m256i>(high), 1));
#else
  constexpr std::size_t bytes = sizeof(ByteRegister), in_group = sizeof(GroupBytes) / bytes;
  ByteRegister part;
  const GroupBytes& group = piece < in_group ? low : high;
  std::memcpy(&part, reinterpret_cast<const std::byte*>(&group) + piece % in_group * bytes, bytes);
  return part;
#endif
}

/// Some columns of a product.
struct ByteColumns {
  std::array<ByteBand, few_byte_rows> rows;
  const std::byte* w;
  float* c;
  std::int64_t terms, columns, w_column, c_row, c_column;  ///< w_column counts bytes
  bool add;
};
using MultiplyColumns = void (*)(const ByteColumns&, int first_row, int count);

/// Adds the products of a unit of a column and of all rows.
template <class B, ByteUnit unit_of_bytes, int rows>
[[gnu::always_inline]] inline void add_unit(const Unit<B>& unit, std::int64_t u, const ByteBand* x,
                                            Line<float> (&sums)[rows], Eight (&less)[rows]) {
  constexpr int parts = Unit<B>::parts, pairs = static_cast<int>(unit_numbers<B> / 64), of_pair = parts / pairs;
  alignas(64) float scales[rows][parts];
#pragma GCC unroll 4
  for (int i = 0; i < rows; ++i) {
    for (int part = 0; part < parts; ++part) scales[i][part] = unit.scales[part] * x[i].scales[u * parts + part];
    if constexpr (has_minima<B>) less[i].add_products(unit.minima, x[i].sums + 8 * u);
  }
  for (int n = 0; n < pairs; ++n) {
    const GroupBytes low = unit.template group<0>(n), high = unit.template group<1>(n);
    [&]<std::size_t... piece>(std::index_sequence<piece...>) __attribute__((always_inline)) {
      const auto add = [&](int i, auto which) __attribute__((always_inline)) {
        constexpr std::size_t at = which();
        constexpr auto lanes = static_cast<std::int64_t>(Ints::size);
        const std::int64_t place = (u * pairs + n) * 16 + static_cast<std::int64_t>(at) * lanes;
        ByteRegister row;
        std::memcpy(&row, x[i].bytes + 4 * place, sizeof row);
        const Ints first = origin_of<B> == 0 ? Ints(0) : Ints::load_unaligned(x[i].origins + place);
        const Ints products = add_products<has_signs<B>, unit_of_bytes>(first, register_of<at>(low, high), row);
        sums[i][at] = fused<float>(floats_of(products), in_lanes<of_pair, at>(scales[i] + n * of_pair), sums[i][at]);
      };
#pragma GCC unroll 4
      for (int i = 0; i < rows; ++i) (add(i, std::integral_constant<std::size_t, piece>{}), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<Line<float>>>{});
  }
}

/// Computes the columns for the rows [first_row, first_row + count), count <= rows.
template <class B, ByteUnit unit, int rows, int columns>
void multiply_columns(const ByteColumns& p, int first_row, int count) {
  ByteBand x[rows];  // the last rows again, if there are no more
  for (int i = 0; i < rows; ++i) x[i] = p.rows[static_cast<std::size_t>(first_row + std::min(i, count - 1))];
  const std::int64_t blocks = p.terms / block_numbers<B>, units = ceiling(p.terms, unit_numbers<B>);
  // Whole columns, and at least what a core reads while memory answers.
  constexpr std::int64_t least_ahead = 4096;
  const std::int64_t together = std::max<std::int64_t>(1, columns * p.w_column);
  const std::int64_t ahead = ceiling(least_ahead, together) * together;
  for (std::int64_t first = 0; first < p.columns; first += columns) {
    const B* w[columns];
    for (int j = 0; j < columns; ++j)
      w[j] = reinterpret_cast<const B*>(p.w + std::min(first + j, p.columns - 1) * p.w_column);
    Line<float> sums[columns][rows];
    Eight less[columns][rows];
    for (auto& of_column : sums)
      for (auto& sum : of_column) sum.fill(xsimd::batch<float>(0.0F));
    for (std::int64_t u = 0; u < units; ++u) {
      constexpr std::int64_t cache_line = 64,
                             bytes = unit_numbers<B> / block_numbers<B> * static_cast<std::int64_t>(sizeof(B));
#pragma GCC unroll 4
      for (int j = 0; j < columns; ++j) {
        for (std::int64_t byte = 0; byte < bytes; byte += cache_line) will_read(w[j], ahead + u * bytes + byte);
        add_unit<B, unit, rows>(Unit<B>(w[j], u, blocks), u, x, sums[j], less[j]);
      }
    }
    for (int j = 0; j < columns && first + j < p.columns; ++j)
      for (int i = 0; i < count; ++i) {
        float sum = add_line<float>(sums[j][i]);
        if constexpr (has_minima<B>) sum -= less[j][i].sum();
        float& to = p.c[(first_row + i) * p.c_row + (first + j) * p.c_column];
        to = p.add ? to + sum : sum;
      }
  }
}

/// The functions for one row and for up to four rows.
std::array<MultiplyColumns, 2> functions_of(Dtype dtype) {
  return with_block(dtype, [](auto block) -> std::array<MultiplyColumns, 2> {
    using B = decltype(block);
    if constexpr (has_fma)
      return with_byte_unit<ByteUnit::dotprod>([](auto unit) -> std::array<MultiplyColumns, 2> {
        return {multiply_columns<B, unit(), 1, 2>, multiply_columns<B, unit(), 4, 1>};
      });
    else
      return {};  // bytes_suit is false
  });
}
}  // namespace

ByteProduct make_byte_columns(const GemmPlan& plan) {
  constexpr std::int64_t task_columns = 16, worth_a_thread = 1 << 16;
  const ByteFormat format = byte_format(*plan.narrow[1]);
  const ByteRows rows(plan.k, format, 4, 1);
  const std::int64_t grain = std::max<std::int64_t>(1, worth_a_thread / (plan.m * task_columns * plan.k));
  const std::int64_t column_bytes = bytes_of(*plan.narrow[1], plan.n_strides[1]);
  return {rows, plan.k, 0, [=, functions = functions_of(*plan.narrow[1])](const ByteOperands& given, std::byte*) {
            ByteColumns all{{},           given.blocks,      given.c,           given.terms, 0,
                            column_bytes, plan.m_strides[2], plan.n_strides[2], given.add};
            for (std::int64_t i = 0; i < plan.m; ++i) all.rows[static_cast<std::size_t>(i)] = rows.band(given.rows, i);
            parallel_for(plan.threads, ceiling(plan.n, task_columns), grain, [&](std::int64_t begin, std::int64_t end) {
              ByteColumns some = all;
              some.columns = std::min(plan.n, end * task_columns) - begin * task_columns;
              some.w += begin * task_columns * all.w_column;
              some.c += begin * task_columns * all.c_column;
              const auto count = static_cast<int>(plan.m);
              if (count == 1) return functions[0](some, 0, 1);
              for (int row = 0; row < count; row += 4) functions[1](some, row, std::min(4, count - row));
            });
          }};
}

}  // namespace xtape
