/// Random numbers that depend only on a seed, a name and two indices.
#pragma once

#include <Random123/philox.h>

#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <utility>

#include "base/arrays/order.hpp"
#include "kernels/table/kernels.hpp"

namespace xtape {

/// Random numbers as a function of (seed, name, block, attempt). The generator is Philox4x32-10 with one key per name.
class Draws {
 public:
  Draws(std::uint64_t seed, const std::string& name) {
    std::uint64_t hash = ByteHash().add_bytes(name).value();
    hash ^= seed + 0x9e3779b97f4a7c15U + (hash << 6) + (hash >> 2);
    key_ = {{static_cast<std::uint32_t>(hash), static_cast<std::uint32_t>(hash >> 32)}};
  }

  /// Returns two independent numbers in (0, 1).
  std::pair<double, double> uniform(std::uint64_t block, std::uint64_t attempt = 0) const {
    const auto bits =
        r123::Philox4x32()({{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
                             static_cast<std::uint32_t>(attempt), static_cast<std::uint32_t>(attempt >> 32)}},
                           key_);
    return {unit(bits[0], bits[1]), unit(bits[2], bits[3])};
  }

  /// Returns two independent numbers of the standard normal distribution (Box and Muller, 1958).
  std::pair<double, double> normal(std::uint64_t block, std::uint64_t attempt = 0) const {
    const auto [u, v] = uniform(block, attempt);
    const NumberFunctions& numbers = kernels().numbers;
    const double radius = std::sqrt(-2 * numbers.log(u));
    const double angle = 2 * std::numbers::pi * v;
    return {radius * numbers.cos(angle), radius * numbers.sin(angle)};
  }

  /// Returns a number of the standard normal distribution truncated to [-2, 2], by rejection.
  double truncated(std::uint64_t element) const {
    for (std::uint32_t attempt = 0;; ++attempt) {
      const auto [a, b] = normal(element, attempt);
      if (std::abs(a) <= 2) return a;
      if (std::abs(b) <= 2) return b;
    }
  }

 private:
  static double unit(std::uint32_t high, std::uint32_t low) {
    const std::uint64_t bits = (static_cast<std::uint64_t>(high) << 21) ^ (low >> 11);  // 53 bits
    return (static_cast<double>(bits) + 0.5) * 0x1p-53;
  }

  r123::Philox4x32::key_type key_;
};

}  // namespace xtape
