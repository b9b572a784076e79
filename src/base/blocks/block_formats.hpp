/// Numbers of 2 to 8 bits in blocks with scales: the formats of GGUF files. A block holds 32 or 256 neighbours of the
/// last axis. Sizes, layouts and arithmetic are those of ggml, so that the values are equal bit for bit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "xtape/half.hpp"

namespace xtape {

/// A format of blocks. Plain floats are formats of one element, so that files need no second table.
struct BlockFormat {
  const char* name;       ///< The name in ggml and in GGUF files: "Q4_K".
  std::uint32_t number;   ///< The number in GGUF files.
  std::int64_t elements;  ///< The number of elements of a block.
  std::int64_t bytes;     ///< The number of bytes of a block.
  /// Writes the values of `blocks` consecutive blocks. Each value is computed in float32, with a rounding for each
  /// product and sum, so it is the same on every processor.
  void (*decode)(const std::byte* from, float* to, std::int64_t blocks);
  /// Writes the blocks of finite values. Null if the format is only read. Rounds values to nearest; the scales of Q*_0
  /// and Q*_1 are those of ggml, and the scales of Q*_K minimise the squared error, weighted as in ggml.
  void (*encode)(const float* from, std::byte* to, std::int64_t blocks);
};

/// Returns all formats, in the order of their numbers.
std::span<const BlockFormat> block_formats();
/// Returns the format with this name or number, or null.
const BlockFormat* find_block_format(const std::string& name);
const BlockFormat* find_block_format(std::uint32_t number);

namespace block {

// The bytes of a block in memory, little-endian, without gaps. `q` has the low bits of the quantised numbers, two in a
// byte (4 bits) or four in a byte (2 bits). `high` has the remaining bits. For 32 numbers, the low half of byte i is
// number i and the high half is number i + 16. In blocks of 256, comments say the order.

struct Q4_0 {  // value = scale * (q - 8)
  float16 scale;
  std::uint8_t q[16];
};
struct Q4_1 {  // value = scale * q + minimum
  float16 scale, minimum;
  std::uint8_t q[16];
};
struct Q5_0 {  // value = scale * (q - 16); bit i of `high` belongs to number i
  float16 scale;
  std::uint8_t high[4], q[16];
};
struct Q5_1 {  // value = scale * q + minimum
  float16 scale, minimum;
  std::uint8_t high[4], q[16];
};
struct Q8_0 {  // value = scale * q
  float16 scale;
  std::int8_t q[32];
};

// Blocks of 256 numbers. They consist of parts of 16 or 32 numbers, which have scales of 4, 6 or 8 bits.

struct Q2_K {  // value = (scale * low half of scales[i]) * q - minimum * high half of scales[i]; 16 parts of 16
  std::uint8_t scales[16];
  std::uint8_t q[64];  // as in Q3_K
  float16 scale, minimum;
};
struct Q3_K {             // value = (scale * (scales[i] - 32)) * (q - 4); 16 parts of 16
  std::uint8_t high[32];  // bit k of byte i belongs to number 32 k + i
  std::uint8_t q[64];     // bits 2 k, 2 k + 1 of byte 32 n + i belong to number 128 n + 32 k + i
  std::uint8_t scales[12];
  float16 scale;
};
struct Q4_K {  // value = (scale * scales[i]) * q - minimum * minima[i]; 8 parts of 32
  float16 scale, minimum;
  std::uint8_t scales[12];  // see PartScales
  std::uint8_t q[128];      // the low half of byte 32 n + i is number 64 n + i, the high half number 64 n + 32 + i
};
struct Q5_K {  // as Q4_K
  float16 scale, minimum;
  std::uint8_t scales[12];
  std::uint8_t high[32];  // bit k of byte i belongs to number 32 k + i
  std::uint8_t q[128];
};
struct Q6_K {             // value = (scale * scales[i]) * (q - 32); 16 parts of 16
  std::uint8_t q[128];    // the halves of byte 64 n + i are numbers 128 n + i and 128 n + 64 + i
  std::uint8_t high[64];  // bits 2 k, 2 k + 1 of byte 32 n + i belong to number 128 n + 32 k + i
  std::int8_t scales[16];
  float16 scale;
};
static_assert(sizeof(Q4_0) == 18 && sizeof(Q4_1) == 20 && sizeof(Q5_0) == 22 && sizeof(Q5_1) == 24 &&
              sizeof(Q8_0) == 34 && sizeof(Q2_K) == 84 && sizeof(Q3_K) == 110 && sizeof(Q4_K) == 144 &&
              sizeof(Q5_K) == 176 && sizeof(Q6_K) == 210);

/// The 8 scales and 8 minima of Q4_K and Q5_K, 6 bits each.
struct PartScales {
  std::array<std::uint8_t, 8> scales, minima;
};

/// In bytes 0 to 3 are the scales 0 to 3, in bytes 4 to 7 the minima 0 to 3. Bytes 8 to 11 have the low 4 bits of
/// scales (low halves) and minima (high halves) 4 to 7; their upper 2 bits are the upper bits of bytes 0 to 3 and 4
/// to 7.
inline PartScales part_scales(const std::uint8_t (&packed)[12]) {
  PartScales parts;
  for (int i = 0; i < 4; ++i) {
    parts.scales[i] = packed[i] & 63U;
    parts.minima[i] = packed[i + 4] & 63U;
    parts.scales[i + 4] = (packed[i + 8] & 15U) | (packed[i] >> 6 << 4);
    parts.minima[i + 4] = (packed[i + 8] >> 4) | (packed[i + 4] >> 6 << 4);
  }
  return parts;
}

}  // namespace block
}  // namespace xtape
