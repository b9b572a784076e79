// Rounds rows to bytes, and multiplies them.
#include "kernels/products/byte_products.hpp"

#include <algorithm>

#include "base/arrays/lengths.hpp"
#include "base/system/instruction_set.hpp"
#include "base/threads/threads.hpp"
#include "kernels/table/scratch.hpp"

namespace xtape {

namespace {
/// Rounds 32 numbers. Returns their scale.
float round_group(const float* x, std::int32_t* to) {
  std::uint32_t largest = 0;
#pragma omp simd reduction(max : largest)
  for (int i = 0; i < group_numbers; ++i) largest = std::max(largest, magnitude_bits(x[i]));
  const ByteScale scale(largest);
#pragma omp simd
  for (int i = 0; i < group_numbers; ++i) to[i] = static_cast<std::int8_t>(rounded_bits(x[i], scale.factor));
  return scale.scale;
}

/// Whether each row of operand 1 is whole blocks, so that its columns lie across them.
bool rows_have_blocks(const GemmPlan& plan) {
  const auto whole = [block = block_of(*plan.narrow[1])](std::int64_t elements) { return elements % block == 0; };
  return plan.n_strides[1] == 1 && whole(plan.k_strides[1]) && whole(plan.offsets[1]) &&
         std::all_of(plan.outer.strides[1].begin(), plan.outer.strides[1].end(), whole);
}
}  // namespace

ByteRows::ByteRows(std::int64_t terms, const ByteFormat& format, int summed, std::int64_t together,
                   std::int64_t in_turn)
    : format_(format), summed_(summed), together_(together), in_turn_(in_turn) {
  // An odd number of lines: rows apart by a power of two would share few sets of the cache.
  constexpr std::int64_t line = 64;
  const std::int64_t padded = round_up(terms, line);
  const auto of_band = [&](std::int64_t bytes) { return static_cast<std::size_t>(together * bytes); };
  row_bytes_ = padded | line;
  scales_ = of_band(row_bytes_);
  origins_ = scales_ + of_band(padded / format.part * std::int64_t{sizeof(float)});
  sums_ = origins_ + (format.origin == 0 ? 0 : of_band(padded / summed * std::int64_t{sizeof(std::int32_t)}));
  band_bytes_ =
      whole_lines(sums_ + (format.has_minima ? of_band(padded / group_numbers * std::int64_t{sizeof(float)}) : 0)) |
      static_cast<std::size_t>(line);
}

void ByteRows::round(const float* x, std::int64_t terms, std::int64_t term_stride, std::byte* memory,
                     std::int64_t row) const {
  const std::int64_t lane = row % together_;
  std::byte* at = memory + static_cast<std::size_t>(row / together_) * band_bytes_;
  constexpr std::int64_t run = 8;  // terms in turn
  auto* bytes = reinterpret_cast<std::int8_t*>(at) + lane / in_turn_ * in_turn_ * row_bytes_ + lane % in_turn_ * run;
  auto* scales = reinterpret_cast<float*>(at + scales_) + lane;
  auto* origins = reinterpret_cast<std::int32_t*>(at + origins_) + lane;
  auto* sums = reinterpret_cast<float*>(at + sums_) + lane;
  const std::int64_t padded = round_up(terms, 64);
  for (std::int64_t first = 0; first < padded; first += group_numbers) {
    float gathered[group_numbers] = {};
    std::int32_t rounded[group_numbers];
    const float* from = x + first * term_stride;
    const std::int64_t count = std::min<std::int64_t>(group_numbers, terms - first);
    if (count < group_numbers || term_stride != 1) {
      for (std::int64_t i = 0; i < count; ++i) gathered[i] = from[i * term_stride];
      from = gathered;
    }
    const float scale = round_group(from, rounded);
    std::int8_t narrow[group_numbers];
    for (int i = 0; i < group_numbers; ++i) narrow[i] = static_cast<std::int8_t>(rounded[i]);
    for (std::int64_t i = 0; i < group_numbers; i += run) std::memcpy(bytes + (first + i) * in_turn_, narrow + i, run);
    for (std::int64_t i = 0; i < group_numbers; i += format_.part)
      scales[(first + i) / format_.part * together_] = scale;
    if (format_.origin != 0)
      for (std::int64_t i = 0; i < group_numbers; i += summed_) {
        std::int32_t sum = 0;
        for (std::int64_t k = i; k < i + summed_; ++k) sum += rounded[k];
        origins[(first + i) / summed_ * together_] = -format_.origin * sum;
      }
    if (format_.has_minima) {
      std::int32_t sum = 0;
      for (const std::int32_t number : rounded) sum += number;
      sums[first / group_numbers * together_] = scale * static_cast<float>(sum);
    }
  }
}

bool bytes_suit(const GemmPlan& given, Precision precision) {
  const auto has_blocks = [](const std::optional<Dtype>& dtype) { return is_block(dtype.value_or(Dtype::float32)); };
  if (!has_fma || !rounds_to_bytes(precision)) return false;
#ifdef XTAPE_SHARED_KERNELS
  if (adds_four && instruction_set() < InstructionSet::avx512_bf16) return false;
#endif
  if (has_blocks(given.narrow[0]) == has_blocks(given.narrow[1])) return false;
  const GemmPlan plan = has_blocks(given.narrow[1]) ? given : with_sides_swapped(given);
  if (plan.narrow[0] || plan.sums.rank() != 0) return false;
  return columns_have_blocks(plan) ||
         (precision == Precision::int8_training && plan.m > few_byte_rows && rows_have_blocks(plan));
}

[[gnu::cold]] MatrixProducts<float> make_bytes(const GemmPlan& given) {
  const bool swapped = !is_block(given.narrow[1].value_or(Dtype::float32));
  const GemmPlan plan = swapped ? with_sides_swapped(given) : given;
  const bool across = !columns_have_blocks(plan);
  const ByteProduct product =
      plan.m <= few_byte_rows && !across ? make_byte_columns(plan) : make_byte_tiles(plan, across);
  const std::size_t row_memory = product.rows.bytes(plan.m);
  const std::int64_t grain = rows_a_piece(std::min(plan.k, product.terms_together));
  return {[=](const void* a, const void* b, float* c, void* scratch, const void*) {
            if (swapped) std::swap(a, b);
            auto* memory = static_cast<std::byte*>(scratch);
            for (std::int64_t i = 0; i < plan.outer.count(); ++i) {
              auto at = plan.outer.offsets(i, plan.outer.rank());
              for (std::size_t k = 0; k < 3; ++k) at[k] += plan.offsets[k];
              for (std::int64_t term = 0; term < plan.k; term += product.terms_together) {
                const std::int64_t terms = std::min(product.terms_together, plan.k - term);
                const float* x = static_cast<const float*>(a) + at[0] + term * plan.k_strides[0];
                parallel_for(plan.threads, product.rows.padded(plan.m), grain,
                             [&](std::int64_t begin, std::int64_t end) {
                               for (std::int64_t row = begin; row < end; ++row)
                                 product.rows.round(x + std::min(row, plan.m - 1) * plan.m_strides[0], terms,
                                                    plan.k_strides[0], memory, row);
                             });
                const auto blocks = bytes_of(*plan.narrow[1], at[1] + term * plan.k_strides[1]);
                product.multiply(
                    {memory, static_cast<const std::byte*>(b) + blocks, c + at[2], terms, plan.accumulate || term > 0},
                    memory + row_memory);
              }
            }
          },
          row_memory + product.scratch_bytes};
}

}  // namespace xtape
