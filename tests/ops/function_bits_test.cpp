// Functions of float arrays: bits, and the largest errors over all magnitudes.
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "function_checks.hpp"
#include "golden.hpp"
#include "play.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

TEST_CASE("functions convert integers to float32, and an element gives the same bits at any index") {
  Tape tape;
  const Var counts = tape.parameter("counts", xt::xarray<std::int64_t>{1, 4});
  CHECK(sqrt(counts).dtype() == Dtype::float32);
  CHECK(fast(sqrt(counts)).to<float>() == xt::xarray<float>{1, 2});
  xt::xarray<float> same = xt::xarray<float>::from_shape({77});
  same.fill(0.37f);
  for (const Unary op : {Unary(exp), Unary(tanh), Unary(erf), Unary(silu)}) {
    const Array y = played_on<float>([op](const Vars& x) { return op(x[0]); }, {same});
    for (std::int64_t i = 1; i < 77; ++i) CHECK(y.as<float>()[i] == y.as<float>()[0]);
  }
}

TEST_CASE("functions: an element has the same bits whatever is next to it") {
  // Of each pair of registers one has only ordinary elements, and one an element that takes another way.
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const auto check = [](auto scalar, Unary op, double x, double other) {
    using T = decltype(scalar);
    CAPTURE(x);
    CAPTURE(other);
    xt::xarray<T> points = xt::xarray<T>::from_shape({64});
    points.fill(static_cast<T>(x));
    points(33) = static_cast<T>(other);
    const Array y = played_on<T>([op](const Vars& v) { return op(v[0]); }, {points});
    for (std::int64_t i = 1; i < 64; ++i)
      if (i != 33) CHECK(y.as<T>()[i] == y.as<T>()[0]);
  };
  for (const Unary op : {Unary(exp), Unary(expm1), Unary(log), Unary(log1p), Unary(tanh), Unary(erf), Unary(sin),
                         Unary(cos), Unary(softplus), Unary(sigmoid)})
    for (const double other : {inf, nan, -inf, 0.0, -3.0, 1e-310, 1e300}) {
      for (const double x : {0.37, 0.9, 1.7, 5.5, 660.25, 707.5}) check(double{}, op, x, other);
      for (const double x : {0.37, 0.9, 1.7, 5.5, 80.25, 88.0}) check(float{}, op, x, other);
    }
}

TEST_CASE(
    "functions of float32: within 1.6 units in the last place at any magnitude, sigmoid and softplus within 2.5") {
  using Wide = long double;
  const auto check = [](const char* name, Unary op, Wide (*reference)(Wide), double units) {
    const std::size_t count = 1 << 17;
    xt::xarray<float> points = xt::xarray<float>::from_shape({count});
    for (std::size_t i = 0; i < count; ++i) points(i) = std::bit_cast<float>(static_cast<std::uint32_t>(i * 32749));
    const Array y = played_on<float>([op](const Vars& x) { return op(x[0]); }, {points});
    double worst = 0;
    for (std::size_t i = 0; i < count; ++i)
      worst = std::max(worst, units_apart(y.as<float>()[i], static_cast<double>(reference(points(i)))));
    INFO(name << ": " << worst << " units in the last place");
    CHECK(worst <= units);
  };
  check(
      "exp", exp, [](Wide x) { return std::exp(x); }, 1.2);
  check(
      "expm1", expm1, [](Wide x) { return std::expm1(x); }, 1.6);
  check(
      "log", log, [](Wide x) { return std::log(x); }, 1.6);
  check(
      "log1p", log1p, [](Wide x) { return std::log1p(x); }, 1.6);
  check(
      "tanh", tanh, [](Wide x) { return std::tanh(x); }, 1.6);
  check(
      "erf", erf, [](Wide x) { return std::erf(x); }, 1.6);
  check(
      "sin", sin, [](Wide x) { return std::sin(x); }, 1.6);
  check(
      "cos", cos, [](Wide x) { return std::cos(x); }, 1.6);
  check(
      "sigmoid", sigmoid, [](Wide x) { return 1 / (1 + std::exp(-x)); }, 2.5);
  check(
      "softplus", softplus, [](Wide x) { return std::max(x, Wide{0}) + std::log1p(std::exp(-std::abs(x))); }, 2.5);
}

TEST_CASE("functions have the same bits on all processors with fused multiply-adds" * doctest::skip(rounds_twice()) *
          doctest::description("a processor with fused multiply-adds")) {
  struct Expected {
    const char* name;
    Unary op;
    std::uint64_t narrow, wide;
  };
  const auto power = [](const Argument& x) { return pow(x, -1.7); };
  for (const Expected& each :
       std::initializer_list<Expected>{{"exp", exp, 0xe12a91f20eb30222, 0xf7e85f383854b6a7},
                                       {"expm1", expm1, 0xd0c71ac9106a76ef, 0x7e2a103d7cd7a643},
                                       {"log", log, 0x248b69e42e9817f5, 0x511f16bfc5c0d78b},
                                       {"log1p", log1p, 0xf71ea7e95bf70673, 0xf9772e9290ab5c75},
                                       {"tanh", tanh, 0x3461c20ad38fdac3, 0x0119ef187bf314fb},
                                       {"erf", erf, 0x814626de7e8e5481, 0x007b9bfccddc1ddd},
                                       {"sin", sin, 0xcecfb751184fb405, 0x57541405c3641941},
                                       {"cos", cos, 0xf82fa660f1c283e5, 0x3dcd514ec79ac929},
                                       {"sigmoid", sigmoid, 0x71baf11a810b8ad8, 0x348d8fb7c5b24c43},
                                       {"softplus", softplus, 0x70a285d5b91961a5, 0x8ebe5ce92d7b82df},
                                       {"silu", silu, 0x3e526f5d530c8d0b, 0x5de179e88680d880},
                                       {"pow", power, 0x6763171af6bd9855, 0x96eff5164b2ef1db}}) {
    const std::uint64_t narrow = digest_at(each.op, numbers_of_all_sizes<float>());
    const std::uint64_t wide = digest_at(each.op, numbers_of_all_sizes<double>());
    INFO(std::string(each.name) << ": " << narrow << ", " << wide);
    CHECK(narrow == each.narrow);
    CHECK(wide == each.wide);
  }
}
