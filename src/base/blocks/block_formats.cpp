// The table of formats, and the values of blocks.
#include "base/blocks/block_formats.hpp"

#include <algorithm>
#include <cstring>

#include "base/blocks/encode_blocks.hpp"

namespace xtape {

namespace block {
namespace {

/// Returns bit `i` of a list of bytes.
unsigned bit(const std::uint8_t* bytes, int i) {
  return bytes[i / 8] >> i % 8 & 1U;
}

/// Splits 16 bytes into 32 numbers of 4 bits. number(i, low bits) returns the value.
template <class Number>
void halves(const std::uint8_t (&q)[16], float* to, const Number& number) {
  for (int i = 0; i < 16; ++i) {
    to[i] = number(i, q[i] & 15U);
    to[i + 16] = number(i + 16, q[i] >> 4);
  }
}

void values(const Q4_0& block, float* to) {
  const float scale = block.scale;
  halves(block.q, to, [&](int, unsigned q) { return scale * static_cast<float>(static_cast<int>(q) - 8); });
}
void values(const Q4_1& block, float* to) {
  const float scale = block.scale, minimum = block.minimum;
  halves(block.q, to, [&](int, unsigned q) { return scale * static_cast<float>(q) + minimum; });
}
void values(const Q5_0& block, float* to) {
  const float scale = block.scale;
  halves(block.q, to, [&](int i, unsigned q) {
    return scale * static_cast<float>(static_cast<int>(q | bit(block.high, i) << 4) - 16);
  });
}
void values(const Q5_1& block, float* to) {
  const float scale = block.scale, minimum = block.minimum;
  halves(block.q, to,
         [&](int i, unsigned q) { return scale * static_cast<float>(q | bit(block.high, i) << 4) + minimum; });
}
void values(const Q8_0& block, float* to) {
  const float scale = block.scale;
  for (int i = 0; i < 32; ++i) to[i] = static_cast<float>(block.q[i]) * scale;
}

void values(const Q2_K& block, float* to) {
  const float scale = block.scale, minimum = block.minimum;
  for (int part = 0; part < 16; ++part) {
    const float wide = scale * static_cast<float>(block.scales[part] & 15U);
    const float least = minimum * static_cast<float>(block.scales[part] >> 4);
    const std::uint8_t* q = block.q + part / 8 * 32 + part % 2 * 16;
    const int shift = part / 2 % 4 * 2;
    for (int i = 0; i < 16; ++i) to[16 * part + i] = wide * static_cast<float>(q[i] >> shift & 3U) - least;
  }
}

void values(const Q3_K& block, float* to) {
  const float scale = block.scale;
  for (int part = 0; part < 16; ++part) {
    // Byte i of the first 8 has the low bits of scales i and i + 8, byte 8 + i the high bits of i, i + 4, i + 8, i
    // + 12.
    const unsigned low = block.scales[part % 8] >> part / 8 * 4 & 15U;
    const unsigned high = block.scales[8 + part % 4] >> part / 4 * 2 & 3U;
    const float wide = scale * static_cast<float>(static_cast<int>(low | high << 4) - 32);
    const std::uint8_t* q = block.q + part / 8 * 32 + part % 2 * 16;
    const std::uint8_t* third = block.high + part % 2 * 16;
    const int shift = part / 2 % 4 * 2;
    for (int i = 0; i < 16; ++i) {
      const int number = static_cast<int>(q[i] >> shift & 3U) - ((third[i] >> part / 2 & 1U) != 0 ? 0 : 4);
      to[16 * part + i] = wide * static_cast<float>(number);
    }
  }
}

/// The common part of Q4_K and Q5_K. fifth(part, i) is the number's bit 4.
template <class Block, class Fifth>
void values_of_parts(const Block& block, float* to, const Fifth& fifth) {
  const float scale = block.scale, minimum = block.minimum;
  const PartScales parts = part_scales(block.scales);
  for (int part = 0; part < 8; ++part) {
    const float wide = scale * static_cast<float>(parts.scales[part]);
    const float least = minimum * static_cast<float>(parts.minima[part]);
    const std::uint8_t* q = block.q + part / 2 * 32;
    const int shift = part % 2 * 4;
    for (int i = 0; i < 32; ++i)
      to[32 * part + i] = wide * static_cast<float>((q[i] >> shift & 15U) | fifth(part, i) << 4) - least;
  }
}
void values(const Q4_K& block, float* to) {
  values_of_parts(block, to, [](int, int) { return 0U; });
}
void values(const Q5_K& block, float* to) {
  values_of_parts(block, to, [&](int part, int i) { return block.high[i] >> part & 1U; });
}

void values(const Q6_K& block, float* to) {
  const float scale = block.scale;
  for (int part = 0; part < 16; ++part) {
    const float wide = scale * static_cast<float>(block.scales[part]);
    const int half = part / 8, third = part / 2 % 4, first = part % 2 * 16;  // of 128, 32 and 16 numbers
    const std::uint8_t* q = block.q + 64 * half + 32 * (third % 2) + first;
    const std::uint8_t* high = block.high + 32 * half + first;
    for (int i = 0; i < 16; ++i) {
      const unsigned number = (q[i] >> third / 2 * 4 & 15U) | (high[i] >> 2 * third & 3U) << 4;
      to[16 * part + i] = wide * static_cast<float>(static_cast<int>(number) - 32);
    }
  }
}

void values(const float& number, float* to) {
  *to = number;
}
void values(const float16& number, float* to) {
  *to = number;
}
void values(const bfloat16& number, float* to) {
  *to = number;
}

template <class Block>
constexpr std::int64_t elements_of = 256;
template <>
inline constexpr std::int64_t elements_of<Q4_0> = 32;
template <>
inline constexpr std::int64_t elements_of<Q4_1> = 32;
template <>
inline constexpr std::int64_t elements_of<Q5_0> = 32;
template <>
inline constexpr std::int64_t elements_of<Q5_1> = 32;
template <>
inline constexpr std::int64_t elements_of<Q8_0> = 32;
template <>
inline constexpr std::int64_t elements_of<float> = 1;
template <>
inline constexpr std::int64_t elements_of<float16> = 1;
template <>
inline constexpr std::int64_t elements_of<bfloat16> = 1;

/// Files do not align blocks, so each block is copied.
template <class Block>
void decode(const std::byte* from, float* to, std::int64_t blocks) {
  for (std::int64_t i = 0; i < blocks; ++i) {
    Block block;
    std::memcpy(&block, from + i * static_cast<std::int64_t>(sizeof block), sizeof block);
    values(block, to + i * elements_of<Block>);
  }
}
template <class Block>
void encode(const float* from, std::byte* to, std::int64_t blocks) {
  for (std::int64_t i = 0; i < blocks; ++i) {
    Block block;
    round_to(block, from + i * elements_of<Block>);
    std::memcpy(to + i * static_cast<std::int64_t>(sizeof block), &block, sizeof block);
  }
}

template <class Block>
constexpr BlockFormat written_and_read(const char* name, std::uint32_t number) {
  return {name, number, elements_of<Block>, sizeof(Block), decode<Block>, encode<Block>};
}
template <class Block>
constexpr BlockFormat read_only(const char* name, std::uint32_t number) {
  return {name, number, elements_of<Block>, sizeof(Block), decode<Block>, nullptr};
}

constexpr BlockFormat formats[] = {
    written_and_read<float>("F32", 0),     written_and_read<float16>("F16", 1), written_and_read<Q4_0>("Q4_0", 2),
    written_and_read<Q4_1>("Q4_1", 3),     written_and_read<Q5_0>("Q5_0", 6),   written_and_read<Q5_1>("Q5_1", 7),
    written_and_read<Q8_0>("Q8_0", 8),     read_only<Q2_K>("Q2_K", 10),         read_only<Q3_K>("Q3_K", 11),
    written_and_read<Q4_K>("Q4_K", 12),    written_and_read<Q5_K>("Q5_K", 13),  written_and_read<Q6_K>("Q6_K", 14),
    written_and_read<bfloat16>("BF16", 30)};

}  // namespace
}  // namespace block

std::span<const BlockFormat> block_formats() {
  return block::formats;
}

const BlockFormat* find_block_format(const std::string& name) {
  const auto found = std::ranges::find_if(block::formats, [&](const BlockFormat& each) { return each.name == name; });
  return found == std::end(block::formats) ? nullptr : found;
}

const BlockFormat* find_block_format(std::uint32_t number) {
  const auto found = std::ranges::find(block::formats, number, &BlockFormat::number);
  return found == std::end(block::formats) ? nullptr : found;
}

}  // namespace xtape
