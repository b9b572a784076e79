// Products of bytes on the matrix unit. It adds the products of a part, integers, exactly. Vector registers then scale
// and add the sums of parts.

#include "kernels/products/amx.hpp"

#if defined(XTAPE_AMX)
#include <immintrin.h>

#include <algorithm>

namespace xtape::amx {

namespace {
constexpr std::int64_t tile_sums = panel_lines * panel_lines;

/// Writes the integers of a part. `sums`, `left` and `right` are tile registers.
#define XTAPE_MULTIPLY_PART(sums, left, right, part, to)                                \
  {                                                                                     \
    const std::int64_t term = (part)*part_terms;                                        \
    _tile_zero(sums);                                                                   \
    _tile_loadd(right, tile.columns + term * tile.line_columns, 4 * tile.line_columns); \
    _tile_loadd(left, tile.rows + term, tile.row_bytes);                                \
    _tile_dpbssd(sums, left, right);                                                    \
    _tile_stored(sums, to, panel_lines * sizeof(std::int32_t));                         \
  }

/// Adds the scaled integers of part p.
template <bool minima>
XTAPE_AMX inline void add_part(const ByteTile& tile, std::int64_t p, const std::int32_t* integers,
                               __m512 (&sums)[panel_lines]) {
  const __m512 scales = _mm512_loadu_ps(tile.scales + p * tile.line_columns);
  const float *row_scales = tile.row_scales + p * panel_lines, *row_sums = tile.row_sums + p * panel_lines;
  [[maybe_unused]] __m512 less;
  if constexpr (minima) less = _mm512_loadu_ps(tile.minima + p * tile.line_columns);
#pragma GCC unroll 16
  for (int i = 0; i < panel_lines; ++i) {
    const __m512 products = _mm512_cvtepi32_ps(_mm512_load_si512(integers + i * panel_lines));
    sums[i] = _mm512_fmadd_ps(products, _mm512_mul_ps(scales, _mm512_set1_ps(row_scales[i])), sums[i]);
    if constexpr (minima) sums[i] = _mm512_fnmadd_ps(less, _mm512_set1_ps(row_sums[i]), sums[i]);
  }
}

template <bool minima>
XTAPE_AMX void multiply(const ByteTile& tile, float* to, std::int64_t stride) {
  alignas(64) std::int32_t even[tile_sums], odd[tile_sums];
  __m512 sums[panel_lines];
#pragma GCC unroll 16
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  // The unit multiplies the next part while the sums of one are scaled. Neighbours have tile registers of their own, so
  // that neither waits for the other. After the last part, that part stands for the next one.
  const std::int64_t last = tile.parts - 1;
  XTAPE_MULTIPLY_PART(0, 4, 6, 0, even);
  for (std::int64_t p = 0; p < tile.parts; p += 2) {
    XTAPE_MULTIPLY_PART(1, 5, 7, std::min(p + 1, last), odd);
    add_part<minima>(tile, p, even, sums);
    if (p == last) break;
    XTAPE_MULTIPLY_PART(0, 4, 6, std::min(p + 2, last), even);
    add_part<minima>(tile, p + 1, odd, sums);
  }
#pragma GCC unroll 16
  for (int i = 0; i < panel_lines; ++i) _mm512_storeu_ps(to + i * stride, sums[i]);
}
}  // namespace

void multiply_bytes(const ByteTile& tile, float* to, std::int64_t stride) {
  (tile.minima == nullptr ? multiply<false> : multiply<true>)(tile, to, stride);
}

}  // namespace xtape::amx

#else

namespace xtape::amx {
void multiply_bytes(const ByteTile&, float*, std::int64_t) {}
}  // namespace xtape::amx

#endif
