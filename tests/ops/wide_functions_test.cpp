// Accuracy and bits of the functions that are computed in float64, and of the functions of single numbers.
#include <cmath>
#include <limits>
#include <vector>

#include "function_checks.hpp"
#include "kernels/table/kernels.hpp"
#include "xtape/ops/elementwise.hpp"

using namespace xtape;

namespace {
using Wide = long double;
using WideReference = Wide (*)(Wide);

/// The points low, low + step … below high.
xt::xarray<double> points_between(double low, double high) {
  const std::size_t count = 1 << 14;
  xt::xarray<double> points = xt::xarray<double>::from_shape({count});
  for (std::size_t i = 0; i < count; ++i) points(i) = low + (high - low) * static_cast<double>(i) / count;
  return points;
}

struct Row {
  const char* name;
  Unary op;
  WideReference reference;
  double low, high;  // where many points are compared
  double units;
  std::uint64_t digest;  // of the values at numbers of all sizes
};
const Row rows[] = {
    {"tan", tan, std::tan, -2100, 2100, 3.3, 0xe93b59e016820ff8},
    {"asin", asin, std::asin, -1, 1, 2.1, 0xe7789e25906bdf26},
    {"acos", acos, std::acos, -1, 1, 1.6, 0x390607cd998dadaf},
    {"atan", atan, std::atan, -6, 6, 1.3, 0x6c148c2d0d59bb59},
    {"sinh", sinh, std::sinh, -25, 25, 2, 0x85be952a4119a1c4},
    {"cosh", cosh, std::cosh, -25, 25, 2, 0x5362d9cb91d4b0c4},
    {"asinh", asinh, std::asinh, -20, 20, 2.6, 0xcca55f32931c1aa4},
    {"acosh", acosh, std::acosh, 1, 20, 2.6, 0xd840917f11868dd1},
    {"atanh", atanh, std::atanh, -1, 1, 2.6, 0xea67aebd5603a911},
    {"exp2", exp2, std::exp2, -1075, 1024, 1.1, 0x72996162b0af580f},
    {"log2", log2, std::log2, 0, 4, 1.1, 0xc6f5b9a94008abf8},
    {"log10", log10, std::log10, 0, 4, 0.6, 0x96908ee1d3d0f04c},
    {"erfc", erfc, std::erfc, -6, 26, 4, 0x42ad671c46417a1a},
};

/// Compares the op with `reference` for all pairs of numbers of every kind.
void check_pairs(Var (*op)(const Operand&, const Operand&), Wide (*reference)(Wide, Wide), double units) {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> numbers;
  for (const double size : {0.0, 1.0, 0.3, 0.9, 2.3, 2.5, 7.25, 1e-30, 1e30, 1e-310, 5e-324, 1e-160, 1e160, 1.7e308,
                            7e307, std::nextafter(1.0, 2.0), inf})
    numbers.insert(numbers.end(), {size, -size});
  numbers.push_back(nan);
  const std::size_t count = numbers.size() * numbers.size();
  xt::xarray<double> a = xt::xarray<double>::from_shape({count}), b = a;
  for (std::size_t i = 0; i < count; ++i) a(i) = numbers[i / numbers.size()], b(i) = numbers[i % numbers.size()];
  const Array y = played_on<double>([op](const Vars& x) { return op(x[0], x[1]); }, {a, b});
  for (std::size_t i = 0; i < count; ++i) {
    const double got = y.as<double>()[i];
    const Wide right = reference(static_cast<Wide>(a(i)), static_cast<Wide>(b(i)));
    INFO(a(i) << ", " << b(i) << ": got " << got << ", not " << static_cast<double>(right));
    CHECK(units_apart(got, static_cast<double>(right)) <= units);
    if (!std::isnan(got)) CHECK(std::signbit(got) == std::signbit(right));
  }
}
}  // namespace

TEST_CASE("functions in float64: a few units in the last place, at many points and at every magnitude") {
  for (const Row& row : rows) {
    INFO(std::string(row.name));
    check_doubles(row.op, row.reference, row.low, row.high, row.units);
    check_magnitudes(row.op, row.reference, row.units);
  }
  check_doubles(Unary(tan), WideReference(std::tan), -1.6, 1.6, 3.3);
  check_doubles(Unary(sinh), WideReference(std::sinh), -1.5, 1.5, 2);
  check_doubles(Unary(sinh), WideReference(std::sinh), 600, 710, 2);
  check_doubles(Unary(cosh), WideReference(std::cosh), -710, -600, 2);
  check_doubles(Unary(acosh), WideReference(std::acosh), 1, 1.01, 2.6);
  check_doubles(Unary(erfc), WideReference(std::erfc), -1.5, 1.5, 4);
}

TEST_CASE("op log2, log10, exp2, erfc: exact where the result is a short number") {
  const auto at = [](Unary op, double x) {
    return played<double>([op](const Vars& v) { return op(v[0]); }, {{x}}).as<double>()[0];
  };
  for (int k = -1074; k < 1024; k += 7) {
    CHECK(at(log2, std::ldexp(1, k)) == k);
    CHECK(at(exp2, k) == std::ldexp(1, k));
  }
  for (int k = 0; k < 23; ++k) CHECK(at(log10, static_cast<double>(std::pow(10.0L, k))) == k);
  CHECK(at(erfc, 0) == 1);
  CHECK(at(erfc, -40) == 2);
  CHECK(at(erfc, 40) == 0);
}

TEST_CASE("op atan2, hypot: numbers of every kind and sign") {
  check_pairs(atan2, std::atan2, 1.3);
  check_pairs(hypot, std::hypot, 1.2);
}

TEST_CASE("op lgamma: a few units in the last place, for negative numbers relative to 1") {
  for (const auto& [low, high] : {std::pair{0.0, 1.0}, {0.9, 2.6}, {2.0, 12.0}, {10.0, 1e4}})
    check_doubles(
        Unary(lgamma), [](Wide x) { return std::lgamma(x); }, low, high, 5);
  const xt::xarray<double> below = points_between(-30, 0);
  const Array y = played_on<double>([](const Vars& x) { return lgamma(x[0]); }, {below});
  for (std::size_t i = 0; i < below.size(); ++i) {
    const auto right = static_cast<double>(std::lgamma(static_cast<Wide>(below(i))));
    INFO("at " << below(i));
    if (std::isinf(right))
      CHECK(y.as<double>()[i] == right);
    else
      CHECK(std::abs(y.as<double>()[i] - right) <= 3e-15 * std::max(1.0, std::abs(right)));
  }
  const Array ends =
      played<double>([](const Vars& x) { return lgamma(x[0]); }, {{1, 2, 5e-324, -5e-324, 2e305, 1e308}});
  for (std::size_t i : {0, 1}) CHECK(ends.as<double>()[i] == 0);
  for (std::size_t i : {2, 3}) CHECK(units_apart(ends.as<double>()[i], 744.44007192138121809) <= 1);
  CHECK(units_apart(ends.as<double>()[4], static_cast<double>(std::lgamma(2e305L))) <= 2);
  CHECK(std::isinf(ends.as<double>()[5]));
}

TEST_CASE("functions of single numbers have the bits of the ops, and powers are nearly always the nearest number") {
  const NumberFunctions& numbers = kernels().numbers;
  const auto check = [](double (*function)(double), Unary op) {
    const xt::xarray<double> points = numbers_of_all_sizes<double>();
    const Array y = played_on<double>([op](const Vars& x) { return op(x[0]); }, {points});
    std::size_t equal = 0;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const double one = function(points(i)), other = y.as<double>()[i];
      equal += one == other || (std::isnan(one) && std::isnan(other));
    }
    CHECK(equal == points.size());
  };
  check(numbers.exp, exp);
  check(numbers.log, log);
  check(numbers.sin, sin);
  check(numbers.cos, cos);
  int differing = 0;
  for (int base = 1; base < 40; ++base) {
    double power = 1;
    for (int exponent = 0; power < 0x1p53; ++exponent, power *= base) {
      CAPTURE(base);
      CAPTURE(exponent);
      CHECK(numbers.pow(base, exponent) == power);
      CHECK(numbers.pow(-base, exponent) == (exponent % 2 == 0 ? power : -power));
      if (power < 0x1p26) CHECK(numbers.pow(power * power, 0.5) == power);
      if (base == 1 && exponent == 3) break;
    }
    CHECK(numbers.pow(base / 7.0, 1) == base / 7.0);
    for (const double exponent : {0.25, -0.5, 1.0 / 3, -7.3, 20.1, -150.0, 170.0}) {
      const Wide right = std::pow(static_cast<Wide>(base), static_cast<Wide>(exponent));
      CHECK(units_apart(numbers.pow(base, exponent), static_cast<double>(right)) <= 1);
      differing += numbers.pow(base, exponent) != static_cast<double>(right);
    }
  }
  CHECK(differing <= 30);  // of 273
}

TEST_CASE("functions in float64 have the same bits on all processors with fused multiply-adds" *
          doctest::skip(rounds_twice()) * doctest::description("a processor with fused multiply-adds")) {
  for (const Row& row : rows) {
    const std::uint64_t digest = digest_at(row.op, numbers_of_all_sizes<double>());
    INFO(std::string(row.name) << ": " << digest);
    CHECK(digest == row.digest);
  }
  struct Expected {
    const char* name;
    std::function<Var(const Argument&)> op;
    double low, high;
    std::uint64_t digest;
  };
  const Expected others[] = {
      {"erfinv", [](const Argument& x) { return erfinv(x); }, -1, 1, 0x30bb65cfb87b3be5},
      {"atan2", [](const Argument& x) { return atan2(x, -0.7); }, -9, 9, 0xc7834cdeafad52f6},
      {"hypot", [](const Argument& x) { return hypot(x, 3); }, -9, 9, 0xef75b9d9b451ace1},
      {"lgamma", [](const Argument& x) { return lgamma(x); }, -9.5, 25, 0x134ff048a2dd5956},
      {"digamma", [](const Argument& x) { return digamma(x); }, -9.5, 25, 0xf71a3af70b82b71f},
      {"polygamma", [](const Argument& x) { return polygamma(2, x); }, -9.5, 25, 0x52265e87cc225175},
      {"gammainc", [](const Argument& x) { return gammainc(2.5, x); }, 0, 9, 0x194c38031f14dc75},
      {"gammainc, large", [](const Argument& x) { return gammainc(3e8, x); }, 2.9e8, 3.1e8, 0xcb09d11c301c19c9},
      {"gammaincinv", [](const Argument& x) { return gammaincinv(2.5, x); }, 0, 1, 0x89988115c24fac19},
      {"poisson_quantile", [](const Argument& x) { return poisson_quantile(x, 7.5); }, 0, 1, 0x2a4c298e3113efd1},
  };
  for (const Expected& each : others) {
    const std::uint64_t digest = digest_at(each.op, points_between(each.low, each.high));
    INFO(std::string(each.name) << ": " << digest);
    CHECK(digest == each.digest);
  }
}
