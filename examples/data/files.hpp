// Shared code of the data programs: platform-independent random draws, and files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace dataset {

/// The finaliser of SplitMix64 (Steele, Lea, Flood, 2014).
inline std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

/// Returns random number `counter` of a stream, in [0, bound).
inline std::uint64_t draw_below(std::uint64_t bound, std::uint64_t stream, std::uint64_t counter) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(mix(mix(mix(0) ^ stream) ^ counter)) * bound) >> 64);
}

/// Returns a random permutation of the numbers [0, count).
inline std::vector<std::uint32_t> shuffled(std::uint32_t count, std::uint64_t stream) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  for (std::uint32_t i = count; i > 1; --i) std::swap(order[i - 1], order[draw_below(i, stream, i)]);
  return order;
}

/// Writes the lines to `folder`/`name`. Creates the folder.
inline void write_lines(const std::string& folder, const std::string& name, const std::vector<std::string>& lines) {
  std::filesystem::create_directories(folder);
  std::ofstream file(folder + "/" + name, std::ios::binary);
  for (const std::string& line : lines) file << line << '\n';
  if (!file.flush()) throw std::runtime_error("cannot write " + folder + "/" + name);
}

/// Returns argument `place` as a number, or `otherwise` if it is missing. Throws std::invalid_argument if it is not in
/// `low` to `high`.
inline std::int64_t number_argument(int argc, char** argv, int place, std::int64_t otherwise, std::int64_t low,
                                    std::int64_t high) {
  if (place >= argc) return otherwise;
  const std::string text = argv[place];
  const bool digits = !text.empty() && text.size() < 18 && text.find_first_not_of("0123456789") == std::string::npos;
  const std::int64_t number = digits ? std::stoll(text) : -1;
  if (number < low || number > high)
    throw std::invalid_argument("argument " + std::to_string(place) + " must be a whole number from " +
                                std::to_string(low) + " to " + std::to_string(high) + ", not '" + text + "'");
  return number;
}

}  // namespace dataset
