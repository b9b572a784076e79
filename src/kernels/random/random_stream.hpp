/// The identity of a random draw.
#pragma once

#include <cstdint>

namespace xtape {

/// The key and step of a random draw. A random number is a function of the key, the step and the element's index.
struct RandomStream {
  std::uint64_t key = 0;
  std::uint64_t step = 0;

  /// The key of a site for a seed.
  static std::uint64_t key_of(std::uint64_t seed, std::uint64_t site) { return mixed(mixed(seed) + site); }

 private:
  /// The finaliser of splitmix64 (Steele et al., 2014): every bit of the input affects every bit of the output.
  static std::uint64_t mixed(std::uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  }
};

}  // namespace xtape
