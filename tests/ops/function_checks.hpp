/// Checks of the accuracy and of the bits of functions.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include "base/system/instruction_set.hpp"
#include "play.hpp"

namespace xtape {

using Unary = Var (*)(const Argument&);

/// The distance of a result from the right one, in units of the last place.
template <class T>
double units_apart(T got, double wanted) {
  const T rounded = static_cast<T>(wanted);
  if (got == rounded || (std::isnan(got) && std::isnan(wanted))) return 0;
  if (std::isnan(got) || std::isinf(got) || std::isinf(rounded)) return std::numeric_limits<double>::infinity();
  const T unit = std::nextafter(std::abs(rounded), std::numeric_limits<T>::infinity()) - std::abs(rounded);
  return std::abs(static_cast<double>(got) - wanted) / static_cast<double>(unit);
}

/// Compares with the C library's long double over all magnitudes: every exponent, subnormal numbers, zeros, infinities
/// and NaN, of either sign. `units` bounds the error in units of the last place.
inline void check_magnitudes(Unary op, long double (*reference)(long double), double units) {
  const auto check = [&](auto scalar) {
    using T = decltype(scalar);
    using Limits = std::numeric_limits<T>;
    std::vector<T> list{0, Limits::infinity(), Limits::quiet_NaN(), Limits::denorm_min(), Limits::min(), Limits::max(),
                        1};
    for (int exponent = Limits::min_exponent - Limits::digits; exponent < Limits::max_exponent; ++exponent)
      for (double mantissa : {1.0, 1.0 + Limits::epsilon(), 1.2345678901234567, 1.4142135623730951, 1.9999})
        list.push_back(std::ldexp(static_cast<T>(mantissa), exponent));
    for (std::size_t i = 0, count = list.size(); i < count; ++i) list.push_back(-list[i]);
    xt::xarray<T> points = xt::xarray<T>::from_shape({list.size()});
    std::copy(list.begin(), list.end(), points.begin());
    const Array y = played_on<T>([op](const Vars& x) { return op(x[0]); }, {points});
    REQUIRE(y.count() == static_cast<std::int64_t>(list.size()));
    for (std::size_t i = 0; i < list.size(); ++i) {
      const T got = y.as<T>()[i];
      const long double wanted = reference(static_cast<long double>(list[i]));
      const T rounded = static_cast<T>(wanted);
      if (got == rounded || (std::isnan(got) && std::isnan(wanted))) continue;
      const T unit = std::nextafter(std::abs(rounded), Limits::infinity()) - std::abs(rounded);
      INFO(name_of(dtype_of<T>()) << " at " << list[i] << ": got " << got << ", not " << rounded);
      CHECK(std::abs(static_cast<long double>(got) - wanted) <= static_cast<long double>(units) * unit);
    }
  };
  check(float{});
  check(double{});
}

/// Compares float64 with the C library's long double at many points of [low, high].
inline void check_doubles(const std::function<Var(const Argument&)>& op,
                          const std::function<long double(long double)>& reference, double low, double high,
                          double units) {
  std::mt19937_64 random(11);
  std::uniform_real_distribution<double> between(low, high);
  const std::size_t n = 50003;
  xt::xarray<double> points = xt::xarray<double>::from_shape({n});
  for (double& point : points) point = between(random);
  const Array y = played_on<double>([&](const Vars& x) { return op(x[0]); }, {points});
  double worst = 0, where_worst = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const long double wanted = reference(static_cast<long double>(points(i)));
    const double got = y.as<double>()[i], rounded = std::abs(static_cast<double>(wanted));
    const double unit = std::nextafter(rounded, std::numeric_limits<double>::infinity()) - rounded;
    const auto apart =
        static_cast<double>(std::abs(static_cast<long double>(got) - wanted) / static_cast<long double>(unit));
    if (!(apart <= worst)) worst = apart, where_worst = points(i);
  }
  INFO(worst << " units in the last place at " << where_worst);
  CHECK(worst <= units);
}

/// A number with the bits of a counter at every exponent, of either sign.
template <class T>
xt::xarray<T> numbers_of_all_sizes() {
  using Word = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  const std::size_t count = 1 << 16;
  xt::xarray<T> points = xt::xarray<T>::from_shape({count});
  for (std::uint64_t i = 0; i < count; ++i)
    points(i) = std::bit_cast<T>(static_cast<Word>((i << (8 * sizeof(T) - 16)) + i * 0x9e37));
  return points;
}
/// A digest of the bits of the values at these points. All NaN are equal.
template <class T>
std::uint64_t digest_at(const std::function<Var(const Argument&)>& op, const xt::xarray<T>& points) {
  using Word = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  const Array y = played_on<T>([&](const Vars& x) { return op(x[0]); }, {points});
  std::uint64_t hash = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const T each = y.as<T>()[i];
    hash = (hash ^ (std::isnan(each) ? 1 : std::bit_cast<Word>(each))) * 0x100000001b3;
    hash ^= hash >> 29;
  }
  return hash;
}

/// Whether the processor has no fused multiply-adds, so that the bits of functions are others.
inline bool rounds_twice() {
  return instruction_set() == InstructionSet::baseline;
}

}  // namespace xtape
