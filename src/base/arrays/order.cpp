#include "base/arrays/order.hpp"

#include <numeric>
#include <utility>

namespace xtape {

namespace {
// The finaliser of SplitMix64 (Steele, Lea, Flood, 2014).
std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}
}  // namespace

std::uint64_t draw_below(std::uint64_t bound, std::uint64_t seed, std::uint64_t stream, std::uint64_t counter) {
  const std::uint64_t bits = mix(mix(mix(seed) ^ stream) ^ counter);
  // The high half of the product is uniform, apart from a bias of at most bound / 2^64.
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(bits) * bound) >> 64);
}

std::vector<std::uint32_t> shuffled(std::uint32_t count, std::uint64_t seed, std::uint64_t stream) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  for (std::uint32_t i = count; i > 1; --i) std::swap(order[i - 1], order[draw_below(i, seed, stream, i)]);
  return order;
}

}  // namespace xtape
