/// The distance of a large number to the nearest multiple of pi / 2, by integers (Payne and Hanek, 1983).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace xtape::vector_math {

/// An angle is the rest plus a number of quarter turns modulo 4.
struct Angle {
  double rest;
  std::uint64_t quarter;
};

/// The angle of a float64 of at least 2^-10, correctly rounded in all but very few cases. Infinity and NaN give NaN.
inline Angle angle_of(double x) {
  __extension__ using Wide = unsigned __int128;
  // 64 zeros, and the binary digits of 2 / pi behind the point
  static constexpr std::uint64_t digits[] = {0,
                                             0xa2f9836e4e441529,
                                             0xfc2757d1f534ddc0,
                                             0xdb6295993c439041,
                                             0xfe5163abdebbc561,
                                             0xb7246e3a424dd2e0,
                                             0x06492eea09d1921c,
                                             0xfe1deb1cb129a73e,
                                             0xe88235f52ebb4484,
                                             0xe99c7026b45f7e41,
                                             0x3991d639835339f4,
                                             0x9c845f8bbdf9283b,
                                             0x1ff897ffde05980f,
                                             0xef2f118b5a0a6d1f,
                                             0x6d367ecf27cb09b7,
                                             0x4f463f669e5fea2d,
                                             0x7527bac7ebe5f17b,
                                             0x3d0739f78a5292ea,
                                             0x6bfb5fb11f8d5d08,
                                             0x56033046fc7b6bab};
  if (!std::isfinite(x)) return {x - x, 0};
  // x = m 2^e. The digits before those of weight 2^(2 - e) give multiples of 4 turns. Of the product with the 192
  // digits from there on, the two highest bits are the turns, and the others are the fraction of a turn.
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const std::uint64_t m = (bits & 0x000fffffffffffff) | 0x0010000000000000;
  const int first = static_cast<int>(bits >> 52) - 1075 + 62, word = first / 64, shift = first % 64;
  const auto digits_from = [&](int i) {
    return static_cast<std::uint64_t>((Wide{digits[i]} << 64 | digits[i + 1]) << shift >> 64);
  };
  const Wide low = Wide{m} * digits_from(word + 2), middle = Wide{m} * digits_from(word + 1) + (low >> 64);
  const Wide product = (Wide{m * digits_from(word)} << 64) + middle;
  Wide fraction = product << 2;
  const bool above = (fraction >> 127) != 0;  // the nearest multiple is the next one
  if (above) fraction = -fraction;
  // the 64 highest bits of the fraction times pi / 2, in units of 2^-63
  const auto high = static_cast<std::uint64_t>(fraction >> 64), next = static_cast<std::uint64_t>(fraction);
  const int zeros = high != 0 ? __builtin_clzll(high) : 64 + __builtin_clzll(next | 1);
  const auto leading = static_cast<std::uint64_t>(fraction << zeros >> 64);
  const auto rest = static_cast<std::uint64_t>(Wide{leading} * 0xc90fdaa22168c235 >> 64);
  const double size = static_cast<double>(rest) * std::bit_cast<double>(std::uint64_t(1023 - 63 - zeros) << 52);
  return {above ? -size : size, static_cast<std::uint64_t>(product >> 126) + above};
}

}  // namespace xtape::vector_math
