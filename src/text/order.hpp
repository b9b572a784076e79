/// The data order: what is drawn, as a function of seed, stream and counter alone.
#pragma once

#include <cstdint>
#include <vector>

namespace xtape {

/// What numbers are drawn for. Each kind of draw has a stream of its own.
namespace streams {
inline constexpr std::uint64_t text_rows = 1, text_sample = 2, rows_sample = 6;
inline constexpr std::uint64_t epochs = 1000;  ///< And upwards: those of every epoch.
}  // namespace streams

/// A number in [0, bound), from the counter's bits.
std::uint64_t draw_below(std::uint64_t bound, std::uint64_t seed, std::uint64_t stream, std::uint64_t counter);

/// The numbers [0, count) shuffled.
std::vector<std::uint32_t> shuffled(std::uint32_t count, std::uint64_t seed, std::uint64_t stream);

}  // namespace xtape
