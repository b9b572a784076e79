// Rounds rows to bytes, and multiplies them.
#include "kernels/products/byte_products.hpp"

#include <bit>
#include <limits>

#include "base/system/instruction_set.hpp"
#include "base/threads/threads.hpp"
#include "kernels/table/scratch.hpp"

namespace xtape {

namespace {
/// Rounds 32 numbers. Returns their scale.
float round_group(const float* x, std::int32_t* to) {
  constexpr std::uint32_t infinite = 0x7F800000U;
  constexpr float least = 0x1p-118F;  // scales of smaller numbers would be subnormal
  std::uint32_t largest = 0;          // the bits of magnitudes have their order, and those of NaN are above infinity
#pragma omp simd reduction(max : largest)
  for (int i = 0; i < group_numbers; ++i) largest = std::max(largest, std::bit_cast<std::uint32_t>(x[i]) & 0x7FFFFFFFU);
  const float magnitude = std::bit_cast<float>(largest);
  const bool rounds = largest < infinite && magnitude >= least;
  const float factor = 127 / magnitude;
#pragma omp simd
  for (int i = 0; i < group_numbers; ++i) {
    constexpr float whole = 12582912;  // 1.5 · 2^23: the last bit of a sum is 1
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(x[i] * factor + whole);
    to[i] = rounds ? static_cast<std::int32_t>(bits - std::bit_cast<std::uint32_t>(whole)) : 0;
  }
  return rounds ? magnitude / 127 : largest < infinite ? 0.0F : std::numeric_limits<float>::quiet_NaN();
}
}  // namespace

ByteRows::ByteRows(std::int64_t terms, const ByteFormat& format, int summed)
    : terms_(terms), format_(format), summed_(summed) {
  const auto padded = static_cast<std::size_t>(ceiling(terms, 64) * 64);
  scales_ = padded;
  origins_ = scales_ + padded / static_cast<std::size_t>(format.part) * sizeof(float);
  sums_ = origins_ + (format.origin == 0 ? 0 : padded / static_cast<std::size_t>(summed) * sizeof(std::int32_t));
  // An odd number of lines: rows apart by a power of two would share few sets of the cache.
  constexpr std::size_t line = 64;
  row_bytes_ = whole_lines(sums_ + (format.has_minima ? padded / group_numbers * sizeof(float) : 0)) | line;
}

void ByteRows::round(const float* x, std::int64_t term_stride, std::byte* memory, std::int64_t row) const {
  std::byte* at = memory + static_cast<std::size_t>(row) * row_bytes_;
  auto* bytes = reinterpret_cast<std::int8_t*>(at);
  auto* scales = reinterpret_cast<float*>(at + scales_);
  auto* origins = reinterpret_cast<std::int32_t*>(at + origins_);
  auto* sums = reinterpret_cast<float*>(at + sums_);
  const std::int64_t padded = ceiling(terms_, 64) * 64;
  for (std::int64_t first = 0; first < padded; first += group_numbers) {
    float gathered[group_numbers] = {};
    std::int32_t rounded[group_numbers];
    const float* from = x + first * term_stride;
    if (first >= terms_ || term_stride != 1) {
      for (std::int64_t i = 0; i < group_numbers && first < terms_; ++i) gathered[i] = from[i * term_stride];
      from = gathered;
    }
    const float scale = round_group(from, rounded);
    for (int i = 0; i < group_numbers; ++i) bytes[first + i] = static_cast<std::int8_t>(rounded[i]);
    for (std::int64_t i = 0; i < group_numbers; i += format_.part) scales[(first + i) / format_.part] = scale;
    if (format_.origin != 0)
      for (std::int64_t i = 0; i < group_numbers; i += summed_) {
        std::int32_t sum = 0;
        for (std::int64_t k = i; k < i + summed_; ++k) sum += rounded[k];
        origins[(first + i) / summed_] = -format_.origin * sum;
      }
    if (format_.has_minima) {
      std::int32_t sum = 0;
      for (const std::int32_t number : rounded) sum += number;
      sums[first / group_numbers] = scale * static_cast<float>(sum);
    }
  }
}

bool bytes_suit(const GemmPlan& given) {
  const auto has_blocks = [](const std::optional<Dtype>& dtype) { return is_block(dtype.value_or(Dtype::float32)); };
  if (!has_fma) return false;
#ifdef XTAPE_SHARED_KERNELS
  if (adds_four && instruction_set() < InstructionSet::avx512_bf16) return false;
#endif
  if (has_blocks(given.narrow[0]) == has_blocks(given.narrow[1])) return false;
  const GemmPlan plan = has_blocks(given.narrow[1]) ? given : with_sides_swapped(given);
  return !plan.narrow[0] && plan.sums.rank() == 0 && columns_have_blocks(plan);
}

MatrixProducts<float> make_bytes(const GemmPlan& given) {
  const bool swapped = !is_block(given.narrow[1].value_or(Dtype::float32));
  const GemmPlan plan = swapped ? with_sides_swapped(given) : given;
  const ByteProduct product = plan.m <= few_byte_rows ? make_byte_columns(plan) : make_byte_tiles(plan);
  const std::size_t row_memory = static_cast<std::size_t>(plan.m) * product.rows.bytes_of_row();
  const std::int64_t grain = rows_a_piece(plan.k);
  return {[=](const void* a, const void* b, float* c, void* scratch, const void*) {
            if (swapped) std::swap(a, b);
            auto* memory = static_cast<std::byte*>(scratch);
            for (std::int64_t i = 0; i < plan.outer.count(); ++i) {
              auto at = plan.outer.offsets(i, plan.outer.rank());
              for (std::size_t k = 0; k < 3; ++k) at[k] += plan.offsets[k];
              const float* x = static_cast<const float*>(a) + at[0];
              parallel_for(plan.threads, plan.m, grain, [&](std::int64_t begin, std::int64_t end) {
                for (std::int64_t row = begin; row < end; ++row)
                  product.rows.round(x + row * plan.m_strides[0], plan.k_strides[0], memory, row);
              });
              const auto blocks = bytes_of(*plan.narrow[1], at[1]);
              product.multiply(memory, static_cast<const std::byte*>(b) + blocks, c + at[2], memory + row_memory);
            }
          },
          row_memory + product.scratch_bytes};
}

}  // namespace xtape
