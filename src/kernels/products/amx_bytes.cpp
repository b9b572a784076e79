// Products of bytes on the matrix unit. It adds the products of a part, integers, exactly. Vector registers then scale
// and add the sums of parts.
#include "kernels/table/compact.hpp"

#include "kernels/products/amx.hpp"

#if defined(XTAPE_AMX)
#include <immintrin.h>

#include <algorithm>

namespace xtape::amx {

namespace {
constexpr std::int64_t tile_sums = panel_lines * panel_lines;

/// Writes the integers of the parts p and p + 1, which have tile registers of their own, so that neither waits for the
/// other. If there is no part p + 1, the last one stands for it.
XTAPE_AMX inline void multiply_two(const ByteTile& tile, std::int64_t p, std::int32_t* sums) {
  constexpr std::int64_t row = panel_lines * sizeof(std::int32_t);
  const std::int64_t term = p * part_terms, next = std::min(p + 1, tile.parts - 1) * part_terms;
  _tile_zero(0);
  _tile_loadd(6, tile.columns + term * tile.line_columns, 4 * tile.line_columns);
  _tile_loadd(4, tile.rows + term, tile.row_bytes);
  _tile_dpbssd(0, 4, 6);
  _tile_stored(0, sums, row);
  _tile_zero(1);
  _tile_loadd(7, tile.columns + next * tile.line_columns, 4 * tile.line_columns);
  _tile_loadd(5, tile.rows + next, tile.row_bytes);
  _tile_dpbssd(1, 5, 7);
  _tile_stored(1, sums + tile_sums, row);
}

/// Adds the scaled integers of part p.
XTAPE_AMX inline void add_part(const ByteTile& tile, std::int64_t p, const std::int32_t* integers,
                               __m512 (&sums)[panel_lines]) {
  const std::int64_t row = tile.row_bytes / static_cast<std::int64_t>(sizeof(float));
  const __m512 scales = _mm512_loadu_ps(tile.scales + p * tile.line_columns);
#pragma GCC unroll 16
  for (int i = 0; i < panel_lines; ++i) {
    const __m512 products = _mm512_cvtepi32_ps(_mm512_load_si512(integers + i * panel_lines));
    sums[i] = _mm512_fmadd_ps(products, _mm512_mul_ps(scales, _mm512_set1_ps(tile.row_scales[i * row + p])), sums[i]);
  }
  if (tile.minima == nullptr) return;
  const __m512 less = _mm512_loadu_ps(tile.minima + p * tile.line_columns);
#pragma GCC unroll 16
  for (int i = 0; i < panel_lines; ++i)
    sums[i] = _mm512_fnmadd_ps(less, _mm512_set1_ps(tile.row_sums[i * row + p]), sums[i]);
}
}  // namespace

XTAPE_AMX void multiply_bytes(const ByteTile& tile, float* to, std::int64_t stride) {
  alignas(64) std::int32_t integers[2][2 * tile_sums];
  __m512 sums[panel_lines];
#pragma GCC unroll 16
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  // The unit multiplies the next two parts while the sums of the last two are scaled.
  multiply_two(tile, 0, integers[0]);
  for (std::int64_t p = 0; p < tile.parts; p += 2) {
    if (p + 2 < tile.parts) multiply_two(tile, p + 2, integers[(p / 2 + 1) % 2]);
    const std::int32_t* of_two = integers[p / 2 % 2];
    add_part(tile, p, of_two, sums);
    if (p + 1 < tile.parts) add_part(tile, p + 1, of_two + tile_sums, sums);
  }
#pragma GCC unroll 16
  for (int i = 0; i < panel_lines; ++i) _mm512_storeu_ps(to + i * stride, sums[i]);
}

}  // namespace xtape::amx

#else

namespace xtape::amx {
void multiply_bytes(const ByteTile&, float*, std::int64_t) {}
}  // namespace xtape::amx

#endif
