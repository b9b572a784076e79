/// The data order. Random draws depend only on seed, stream and counter.
#pragma once

#include <cstdint>
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

}  // namespace xtape
