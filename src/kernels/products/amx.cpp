#include "kernels/products/amx.hpp"

#include <array>
#include <limits>

#include "base/system/instruction_set.hpp"

#if defined(XTAPE_AMX)
#include <immintrin.h>

namespace xtape::amx {

namespace {
/// A configuration of eight tile registers, of 16 rows of 64 bytes if no less are asked for. Configurations are global
/// constants, not local variables, because GCC 12 does not know that the unit reads them, and would drop the stores.
struct alignas(64) Configuration {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};

  constexpr explicit Configuration(std::uint8_t left_bytes) {
    row_bytes[4] = row_bytes[5] = left_bytes;
    rows[6] = rows[7] = left_bytes / 4;
  }
};
constexpr Configuration of_64_bytes(64), of_32_bytes(32);

// Separate functions, because a constructor cannot have the target attribute.
XTAPE_AMX void configure(const Configuration& configuration) {
  _tile_loadconfig(&configuration);
}
XTAPE_AMX void release() {
  _tile_release();
}

// The unit's eight tile registers: 0 to 3 hold the block of the result, 4 and 5 two tiles of the left side, 6 and 7 two
// tiles of the right side.
template <int rows>
XTAPE_AMX inline void load_left(const char* from, std::int64_t stride) {
  _tile_loadd(4, from, 64);
  if constexpr (rows == 2) _tile_loadd(5, from + stride, 64);
}
template <int columns>
XTAPE_AMX inline void load_right(const char* from, std::int64_t stride) {
  _tile_loadd(6, from, 64);
  if constexpr (columns == 2) _tile_loadd(7, from + stride, 64);
}
template <int rows, int columns>
XTAPE_AMX inline void add_products() {
  _tile_dpbf16ps(0, 4, 6);
  if constexpr (columns == 2) _tile_dpbf16ps(1, 4, 7);
  if constexpr (rows == 2) _tile_dpbf16ps(2, 5, 6);
  if constexpr (rows == 2 && columns == 2) _tile_dpbf16ps(3, 5, 7);
}

/// Adds the small products of all terms first, then the large product, so that few roundings apply to large sums.
template <int rows, int columns, int parts>
XTAPE_AMX void multiply_tiles(std::int64_t steps, const Panels& left, const Panels& right, const Ahead& ahead,
                              float* block) {
  constexpr std::int64_t step_bytes = parts * tile_bytes;
  const auto* a = static_cast<const char*>(left.data);
  const auto* b = static_cast<const char*>(right.data);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (std::int64_t s = 0; s < steps; ++s) {
    const char* x = a + s * step_bytes;
    const char* y = b + s * step_bytes;
    const char* lines = static_cast<const char*>(ahead.data) + s * ahead.lines * 64;
    for (std::int64_t line = 0; line < ahead.lines; ++line) _mm_prefetch(lines + line * 64, _MM_HINT_T1);
    if constexpr (parts == 1) {
      load_right<columns>(y, right.stride);
      load_left<rows>(x, left.stride);
      add_products<rows, columns>();
    } else {
      load_right<columns>(y, right.stride);
      if constexpr (parts == 3) {
        load_left<rows>(x + 2 * tile_bytes, left.stride);
        add_products<rows, columns>();
      }
      load_left<rows>(x + tile_bytes, left.stride);
      add_products<rows, columns>();
      load_right<columns>(y + tile_bytes, right.stride);
      if constexpr (parts == 3) add_products<rows, columns>();
      load_left<rows>(x, left.stride);
      add_products<rows, columns>();
      if constexpr (parts == 3) {
        load_right<columns>(y + 2 * tile_bytes, right.stride);
        add_products<rows, columns>();
      }
    }
  }
  for (std::int64_t s = 0; parts > 1 && s < steps; ++s) {
    load_right<columns>(b + s * step_bytes, right.stride);
    load_left<rows>(a + s * step_bytes, left.stride);
    add_products<rows, columns>();
  }
  constexpr std::int64_t row = block_lines * sizeof(float);
  _tile_stored(0, block, row);
  if constexpr (columns == 2) _tile_stored(1, block + panel_lines, row);
  if constexpr (rows == 2) _tile_stored(2, block + panel_lines * block_lines, row);
  if constexpr (rows == 2 && columns == 2) _tile_stored(3, block + panel_lines * block_lines + panel_lines, row);
}
template <int parts>
void multiply_tiles(std::int64_t steps, const Panels& left, const Panels& right, const Ahead& ahead, float* block) {
  if (left.count == 2)
    right.count == 2 ? multiply_tiles<2, 2, parts>(steps, left, right, ahead, block)
                     : multiply_tiles<2, 1, parts>(steps, left, right, ahead, block);
  else
    right.count == 2 ? multiply_tiles<1, 2, parts>(steps, left, right, ahead, block)
                     : multiply_tiles<1, 1, parts>(steps, left, right, ahead, block);
}
}  // namespace

bool available() {
  return instruction_set() >= InstructionSet::amx;
}

Ready::Ready(std::int64_t row_bytes) {
  configure(row_bytes == 64 ? of_64_bytes : of_32_bytes);
}
Ready::~Ready() {
  release();
}

void multiply(int parts, std::int64_t steps, const Panels& left, const Panels& right, const Ahead& ahead,
              float* block) {
  (parts == 3   ? multiply_tiles<3>
   : parts == 2 ? multiply_tiles<2>
                : multiply_tiles<1>)(steps, left, right, ahead, block);
}

/// Masks for the two registers of a row that has `columns` columns.
XTAPE_AMX inline std::array<__mmask16, 2> lanes_of(std::int64_t columns) {
  const auto lanes = static_cast<std::uint32_t>((std::uint64_t{1} << columns) - 1);
  return {static_cast<__mmask16>(lanes), static_cast<__mmask16>(lanes >> 16)};
}

XTAPE_AMX bool sound(const float* block, std::int64_t rows, std::int64_t columns, float least) {
  const auto lanes = lanes_of(columns);
  constexpr int lesser_size = 0xa;
  __m512 sizes[2], others[2];  // sizes: smallest magnitudes; others: 0, or NaN if a sum is not finite
  for (int r = 0; r < 2; ++r) {
    sizes[r] = _mm512_set1_ps(std::numeric_limits<float>::max());
    others[r] = _mm512_setzero_ps();
  }
  for (std::int64_t i = 0; i < rows; ++i, block += block_lines)
    for (int r = 0; r < 2; ++r) {
      const __m512 sums = _mm512_load_ps(block + r * panel_lines);
      sizes[r] = _mm512_mask_range_ps(sizes[r], lanes[r], sizes[r], sums, lesser_size);
      others[r] = _mm512_mask3_fmadd_ps(sums, _mm512_setzero_ps(), others[r], lanes[r]);
    }
  const __m512 all = _mm512_add_ps(_mm512_min_ps(sizes[0], sizes[1]), _mm512_add_ps(others[0], others[1]));
  return _mm512_cmp_ps_mask(all, _mm512_set1_ps(least), _CMP_GE_OQ) == 0xffff;
}

XTAPE_AMX bool only_zeros(const float* block, std::int64_t rows, std::int64_t columns, float least,
                          std::uint32_t* zeros) {
  const auto lanes = lanes_of(columns);
  const __m512 least_sizes = _mm512_set1_ps(least), most = _mm512_set1_ps(std::numeric_limits<float>::max());
  unsigned others = 0;
  for (std::int64_t i = 0; i < rows; ++i, block += block_lines) {
    zeros[i] = 0;
    for (int r = 0; r < 2; ++r) {
      const __m512 sizes = _mm512_abs_ps(_mm512_load_ps(block + r * panel_lines));
      const std::uint32_t zero = _mm512_mask_cmp_ps_mask(lanes[r], sizes, _mm512_setzero_ps(), _CMP_EQ_OQ);
      const auto enough = _mm512_cmp_ps_mask(sizes, least_sizes, _CMP_GE_OQ);
      others |= lanes[r] & ~zero & ~_mm512_mask_cmp_ps_mask(enough, sizes, most, _CMP_LE_OQ);
      zeros[i] |= zero << (r * panel_lines);
    }
  }
  return others == 0;
}

XTAPE_AMX void put(const float* block, std::int64_t rows, std::int64_t columns, bool add, float* c,
                   std::int64_t stride) {
  const auto lanes = lanes_of(columns);
  for (std::int64_t i = 0; i < rows; ++i, block += block_lines, c += stride)
    for (int r = 0; r < 2; ++r) {
      __m512 sums = _mm512_load_ps(block + r * panel_lines);
      if (add) sums = _mm512_add_ps(sums, _mm512_maskz_loadu_ps(lanes[r], c + r * panel_lines));
      _mm512_mask_storeu_ps(c + r * panel_lines, lanes[r], sums);
    }
}

}  // namespace xtape::amx

#else

namespace xtape::amx {
bool available() {
  return false;
}
Ready::Ready(std::int64_t) {}
Ready::~Ready() = default;
}  // namespace xtape::amx

#endif
