// The matrix unit, emulated: amx.cpp and amx_bytes.cpp with tile registers in memory, so that its logic is tested on
// processors with AVX-512 but without the unit. Replaces the functions of instruction_set.cpp, too.
#include <immintrin.h>

#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/system/instruction_set.hpp"
#include "xtape/half.hpp"

namespace {
struct TileRegister {
  std::uint8_t rows[16][64];
};
thread_local TileRegister tiles[8];
/// As _tile_loadconfig reads it.
struct TileSizes {
  std::uint8_t palette, start_row, reserved[14];
  std::uint16_t row_bytes[16];
  std::uint8_t rows[16];
};
thread_local TileSizes sizes;

void configure_tiles(const void* from) {
  std::memcpy(&sizes, from, sizeof sizes);
  std::memset(tiles, 0, sizeof tiles);
}
void load_tile(int tile, const void* from, std::int64_t stride) {
  std::memset(&tiles[tile], 0, sizeof(TileRegister));
  for (int i = 0; i < sizes.rows[tile]; ++i)
    std::memcpy(tiles[tile].rows[i], static_cast<const char*>(from) + i * stride, sizes.row_bytes[tile]);
}
void store_tile(int tile, void* to, std::int64_t stride) {
  for (int i = 0; i < sizes.rows[tile]; ++i)
    std::memcpy(static_cast<char*>(to) + i * stride, tiles[tile].rows[i], sizes.row_bytes[tile]);
}
/// As the unit: a subnormal number is 0.
float flushed(float x) {
  return std::abs(x) < 0x1p-126f ? 0 : x;
}
/// c[i, j] += the sum over pairs k of a[i, 2 k] b[k, 2 j] + a[i, 2 k + 1] b[k, 2 j + 1].
void multiply_tiles(int c, int a, int b) {
  float sums[16][16], rows[32][16];
  xtape::bfloat16 left[16][32], right[16][32];
  std::memcpy(sums, tiles[c].rows, sizeof sums);
  std::memcpy(left, tiles[a].rows, sizeof left);
  std::memcpy(right, tiles[b].rows, sizeof right);
  for (int k = 0; k < 32; ++k)
    for (int j = 0; j < 16; ++j) rows[k][j] = flushed(right[k / 2][2 * j + k % 2]);
  for (int i = 0; i < 16; ++i)
    for (int k = 0; k < 32; ++k) {
      const float x = flushed(left[i][k]);
#pragma omp simd
      for (int j = 0; j < 16; ++j) sums[i][j] = flushed(x * rows[k][j] + sums[i][j]);
    }
  std::memcpy(tiles[c].rows, sums, sizeof sums);
}
/// c[i, j] += the sum over k of a[i, k] b[k / 4, 4 j + k % 4], bytes with signs.
void multiply_byte_tiles(int c, int a, int b) {
  std::int32_t sums[16][16];
  std::memcpy(sums, tiles[c].rows, sizeof sums);
  for (int i = 0; i < 16; ++i)
    for (int k = 0; k < sizes.row_bytes[a]; ++k)
      for (int j = 0; j < 16; ++j)
        sums[i][j] += static_cast<std::int8_t>(tiles[a].rows[i][k]) *
                      static_cast<std::int8_t>(tiles[b].rows[k / 4][4 * j + k % 4]);
  std::memcpy(tiles[c].rows, sums, sizeof sums);
}
}  // namespace

#undef _tile_loadd
#undef _tile_stored
#undef _tile_zero
#undef _tile_dpbf16ps
#undef _tile_dpbssd
#undef _tile_loadconfig
#undef _tile_release
#define _tile_loadd(tile, from, stride) load_tile(tile, from, stride)
#define _tile_stored(tile, to, stride) store_tile(tile, to, stride)
#define _tile_zero(tile) std::memset(&tiles[tile], 0, sizeof(TileRegister))
#define _tile_dpbf16ps(c, a, b) multiply_tiles(c, a, b)
#define _tile_dpbssd(c, a, b) multiply_byte_tiles(c, a, b)
#define _tile_loadconfig(configuration) configure_tiles(configuration)
#define _tile_release() static_cast<void>(0)

namespace xtape {
const char* name_of(InstructionSet set) {
  return set == InstructionSet::amx ? "amx" : "baseline";
}
InstructionSet processor_instruction_set() {
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return wide ? InstructionSet::amx : InstructionSet::baseline;
}
InstructionSet instruction_set() {
  return processor_instruction_set();
}
}  // namespace xtape

#include "kernels/products/amx.cpp"
#include "kernels/products/amx_bytes.cpp"
