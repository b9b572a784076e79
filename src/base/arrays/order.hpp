/// The data order. Random draws depend only on seed, stream and counter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace xtape {

/// The streams of random numbers, one for each kind of draw.
namespace streams {
inline constexpr std::uint64_t text_rows = 1, text_sample = 2, rows_sample = 6, split = 7;
inline constexpr std::uint64_t epochs = 1000;  ///< The first stream for epochs. Each epoch has two streams.
inline constexpr std::uint64_t images = std::uint64_t{1} << 61;     ///< The first stream for epochs of varied images.
inline constexpr std::uint64_t row_draws = std::uint64_t{1} << 62;  ///< The first stream for draws of rows.
}  // namespace streams

/// A random number in [0, bound).
std::uint64_t draw_below(std::uint64_t bound, std::uint64_t seed, std::uint64_t stream, std::uint64_t counter);

/// A random permutation of the numbers [0, count).
std::vector<std::uint32_t> shuffled(std::uint32_t count, std::uint64_t seed, std::uint64_t stream);

// Hashes of several numbers and texts.

class Attributes;
/// Returns a hash of the values of attributes. Equal attributes have equal hashes.
std::size_t hash_of(const Attributes& attributes);

/// Adds a number to a hash. The order of the numbers matters.
inline void mix(std::uint64_t& hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL + (hash >> 29);
}

/// The 64-bit FNV-1a hash of bytes.
class ByteHash {
 public:
  ByteHash& add_bytes(const std::string& text) {
    for (const char c : text) add_byte(static_cast<unsigned char>(c));
    return *this;
  }
  ByteHash& add(const std::string& text) {
    add_bytes(text).add_byte(0xff);  // so that ("a", "b") and ("ab", "") differ
    return *this;
  }
  ByteHash& add(std::int64_t number) {
    for (int i = 0; i < 8; ++i) add_byte(static_cast<unsigned char>(number >> (8 * i)));
    return *this;
  }
  std::uint64_t value() const { return value_; }

 private:
  void add_byte(unsigned char byte) { value_ = (value_ ^ byte) * 1099511628211ULL; }
  std::uint64_t value_ = 14695981039346656037ULL;
};

}  // namespace xtape
