#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "constants.hpp"
#include "golden.hpp"
#include "play.hpp"
#include "xtape/ops/elementwise.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
/// PyTorch's own second derivative of lgamma has nine digits; the recurrences below test more.
constexpr double trigamma_digits = 1e-8;
const xt::xarray<double> everywhere{-1.9, -0.6, -0.2, 0.35, 0.8, 1.7}, inside{-0.9, -0.3, 0.05, 0.4, 0.85},
    above{1.1, 1.7, 3, 8}, near_zero{-1.4, -0.6, -0.2, 0.35, 0.8, 1.3}, positive{0.07, 0.35, 0.8, 1.3, 2.1};

Var record(const char* op, const Vars& x, const Attributes& attributes = {}) {
  return apply(builtin_ops().at(op), std::vector<Operand>(x.begin(), x.end()), attributes)[0];
}

/// Golden values with gradients; gradients by differences; and float32 within an ulp of the function of doubles.
void check_special(const char* op, const xt::xarray<double>& points, double (*reference)(double)) {
  check_golden("ops_elementwise.json", op, 1e-10, 0);
  check_gradients_on([op](const Var& x) { return record(op, {x}); }, points);
  std::mt19937 random(3);
  std::uniform_real_distribution<float> between(static_cast<float>(points(0)),
                                                static_cast<float>(points(points.size() - 1)));
  xt::xarray<float> many = xt::xarray<float>::from_shape({3001});
  for (float& x : many) x = between(random);
  many(0) = 1e-6f, many(1) = 1e-30f;
  const Array y = played_on<float>([op](const Vars& x) { return record(op, x); }, {many});
  for (std::size_t i = 0; i < many.size(); ++i) {
    const double wanted = reference(static_cast<double>(many(i)));
    if (std::isnan(wanted)) continue;
    INFO("at " << many(i));
    CHECK(std::abs(static_cast<double>(y.as<float>()[i]) - wanted) <= 1.2e-7 * std::abs(wanted));
  }
  const xt::xarray<double> none = xt::xarray<double>::from_shape({0, 2});
  CHECK(played_on<double>([op](const Vars& x) { return record(op, x); }, {none}).count() == 0);
}

double value(const char* op, double x) {
  return played<double>([op](const Vars& v) { return record(op, v); }, {{x}}).as<double>()[0];
}

/// A rounding: golden values, no gradient, and integers that stay what they are.
void check_rounding(const char* op) {
  check_golden("ops_elementwise.json", op, 1e-12, 0);
  Tape tape;
  const Var counts = tape.input("n", {2}, Dtype::int64), x = tape.parameter("x", xt::xarray<double>{0.4, 1.2});
  CHECK(record(op, {counts}).id().node == counts.id().node);
  CHECK(fast(grad(sum(x * record(op, {x})), {x})[0]).to<double>() == fast(record(op, {x})).to<double>());
  CHECK_THROWS_AS(record(op, {tape.input("b", {2}, Dtype::boolean)}), DtypeError);
}

void check_bitwise(const char* op, const std::function<std::int64_t(std::int64_t, std::int64_t)>& wanted) {
  check_golden("ops_elementwise.json", op, 1e-12, 0);
  Tape tape;
  const xt::xarray<std::int32_t> a{{7, -9, 1 << 30}, {7, -9, 1 << 30}}, b{{3, 3, 3}, {2, 2, 2}};
  const Array y = fast(record(op, {tape.parameter("a", ArrayView(a)), tape.parameter("b", ArrayView(b))}));
  REQUIRE(y.dtype() == Dtype::int32);
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      CHECK(y.as<std::int32_t>()[3 * i + j] == static_cast<std::int32_t>(wanted(a(i, j), b(i, j))));
  const Var x = tape.input("x", {2});
  CHECK_THROWS_AS(record(op, {x, x}), DtypeError);
}
}  // namespace

#define XTAPE_ROUNDING(name)                                 \
  TEST_CASE("op " #name ": values, integers, no gradient") { \
    check_rounding(#name);                                   \
  }
XTAPE_ROUNDING(round)
XTAPE_ROUNDING(ceil)
XTAPE_ROUNDING(trunc)
#undef XTAPE_ROUNDING
#define XTAPE_SPECIAL(name, points)              \
  TEST_CASE("op " #name ": values, gradients") { \
    check_special(#name, points, std::name);     \
  }
XTAPE_SPECIAL(tan, near_zero)
XTAPE_SPECIAL(asin, inside)
XTAPE_SPECIAL(acos, inside)
XTAPE_SPECIAL(atan, everywhere)
XTAPE_SPECIAL(sinh, everywhere)
XTAPE_SPECIAL(cosh, everywhere)
XTAPE_SPECIAL(acosh, above)
XTAPE_SPECIAL(atanh, inside)
XTAPE_SPECIAL(exp2, everywhere)
XTAPE_SPECIAL(log2, positive)
XTAPE_SPECIAL(log10, positive)
#undef XTAPE_SPECIAL
TEST_CASE("op asinh: values, gradients, large numbers") {
  check_special("asinh", everywhere, std::asinh);
  Tape tape;
  const Var x = tape.parameter("x", xt::xarray<double>{1e200});
  CHECK(fast(grad(asinh(x), {x})[0]).as<double>()[0] == doctest::Approx(1e-200).epsilon(1e-12));
}
TEST_CASE("op erfc: values, gradients, the tail") {
  check_special("erfc", everywhere, std::erfc);
  CHECK(value("erfc", 26) == doctest::Approx(std::erfc(26.0)).epsilon(1e-14));
}
TEST_CASE("op erfinv: the inverse of erf, also near 1") {
  check_golden("ops_elementwise.json", "erfinv", 1e-10, 0);
  check_gradients_on([](const Var& x) { return erfinv(x); }, inside);
  for (double y : {1e-300, 1e-12, 0.1, 0.5, 0.7, 1.0, 2.0, 3.0}) {
    // Near 1, rounding erf(y) moves its inverse.
    const double conditioning = std::erf(y) / y * std::exp(y * y) / M_2_SQRTPI;
    CHECK(std::abs(value("erfinv", std::erf(y)) - y) <= 4e-16 * y * (1 + conditioning));
    CHECK(value("erfinv", -std::erf(y)) == -value("erfinv", std::erf(y)));
  }
  for (double tail : {0x1p-30, 0x1p-40, 0x1p-53})
    CHECK(std::erfc(value("erfinv", 1 - tail)) == doctest::Approx(tail).epsilon(1e-13));
  CHECK(value("erfinv", 1) == inf);
  CHECK(value("erfinv", -1) == -inf);
}
TEST_CASE("op lgamma: values, gradients, poles") {
  check_golden("ops_elementwise.json", "lgamma", trigamma_digits, 0);
  check_gradients_on([](const Var& x) { return lgamma(x); }, xt::xarray<double>{-1.6, -0.3, 0.2, 1.1, 4.5});
  CHECK(value("lgamma", 0) == inf);
  CHECK(value("lgamma", -3) == inf);
}
TEST_CASE("op digamma: values, gradients, poles") {
  check_golden("ops_elementwise.json", "digamma", trigamma_digits, 0);
  check_gradients_on([](const Var& x) { return digamma(x); }, xt::xarray<double>{-1.6, -0.3, 0.2, 1.1, 4.5});
  CHECK(value("digamma", 0.0) == -inf);
  CHECK(value("digamma", -0.0) == inf);
  CHECK(std::isnan(value("digamma", -2)));
  for (double x : {-1e-9, -1e-17, 1e-9, 1e-17}) CHECK(value("digamma", x) * x == doctest::Approx(-1).epsilon(1e-8));
  CHECK(value("digamma", -1e-9) == doctest::Approx(1e9 - 0.57721566490153286).epsilon(1e-15));
  for (double x : {-7.3, -0.4, 0.2, 1.46, 8.9, 10.0, 123.4})
    CHECK(value("digamma", x + 1) == doctest::Approx(value("digamma", x) + 1 / x).epsilon(1e-13));
}
TEST_CASE("op polygamma: values, gradients, recurrence, negative numbers, errors") {
  check_golden("ops_elementwise.json", "polygamma", trigamma_digits, 0);
  check_gradients_on([](const Var& x) { return polygamma(1, x); }, xt::xarray<double>{-1.6, -0.3, 0.4, 1.1, 4.5});
  const auto at = [](std::int64_t n, double x) {
    return played<double>([n](const Vars& v) { return polygamma(n, v[0]); }, {{x}}).as<double>()[0];
  };
  CHECK(at(0, 2.5) == value("digamma", 2.5));
  CHECK(at(1, 1) == doctest::Approx(M_PI * M_PI / 6).epsilon(1e-14));
  double factorial = 1;
  for (std::int64_t n = 1; n < 6; ++n) {
    factorial *= static_cast<double>(n);
    for (double x : {-5.3, -2.4, -0.6, 0.3, 1.7, 11.2}) {
      CAPTURE(n);
      CAPTURE(x);
      const double step = (n % 2 == 0 ? 1 : -1) * factorial * std::pow(x, static_cast<double>(-n - 1));
      CHECK(std::abs(at(n, x + 1) - (at(n, x) + step)) <= 1e-12 * (std::abs(at(n, x)) + std::abs(step)));
    }
  }
  Tape tape;
  CHECK_THROWS_WITH_AS(polygamma(-1, tape.input("x", {1})),
                       "polygamma: n must be at least 0 and less than 2 ** 53, got -1", Error);
  CHECK_THROWS_AS(polygamma(std::int64_t{1} << 53, tape.input("y", {1})), Error);
  // Just beside a pole, one term is the whole value. 200! overflows, and so does 100 ** 201.
  for (std::int64_t n : {1, 2, 5}) {
    const double term = std::tgamma(n + 1) * std::pow(1e-9, -n - 1);
    CHECK(at(n, -1e-9) == doctest::Approx(term).epsilon(1e-14));
    CHECK(at(n, 1e-9) == doctest::Approx(n % 2 == 0 ? -term : term).epsilon(1e-14));
  }
  double sum = 0;
  for (int k = 0; k < 1000; ++k) sum -= std::exp(std::lgamma(201.0) - 201 * std::log(100.0 + k));
  CHECK(at(200, 100) == doctest::Approx(sum).epsilon(1e-11));
  CHECK(at(1000, 100) == -inf);
  CHECK(at(171, -1e-9) == inf);
  CHECK(at(1, 1e300) * 1e300 == doctest::Approx(1).epsilon(1e-14));
}
TEST_CASE("op atan2: values, gradients, quadrants") {
  check_golden("ops_elementwise.json", "atan2", 1e-10, 0);
  check_gradients([](const Vars& x) { return Vars{atan2(x[0], x[1])}; },
                  {{{0.3, -1.2, 2.0}, {1.0, 0.4, -0.7}}, {0.5, 1.5, -0.8}});
  const Array y = played<float>([](const Vars& x) { return atan2(x[0], x[1]); }, {{0.f, -0.f, 1}, {-1, -1, 0}});
  CHECK(y.to<float>() == xt::xarray<float>{float(M_PI), -float(M_PI), float(M_PI_2)});
}
TEST_CASE("op hypot: values, gradients, no overflow") {
  check_golden("ops_elementwise.json", "hypot", 1e-10, 0);
  check_gradients([](const Vars& x) { return Vars{hypot(x[0], x[1])}; },
                  {{{0.3, -1.2, 2.0}, {1.0, 0.4, -0.7}}, {0.5, 1.5, -0.8}});
  const Array y = played<double>([](const Vars& x) { return hypot(x[0], x[1]); }, {{3e300, 3e-300}, {4e300, 4e-300}});
  CHECK(y.as<double>()[0] == doctest::Approx(5e300).epsilon(1e-15));
  CHECK(y.as<double>()[1] / 5e-300 == doctest::Approx(1).epsilon(1e-15));
}
TEST_CASE("op bitwise_and: values, errors") {
  Tape tape;
  const Var x = tape.input("x", {2});
  CHECK_THROWS_WITH_AS(bitwise_and(x, 1), "bitwise_and: takes integers, received float32: cast to an integer first",
                       DtypeError);
  check_bitwise("bitwise_and", [](auto a, auto b) { return a & b; });
}
TEST_CASE("op bitwise_or: values, errors") {
  check_bitwise("bitwise_or", [](auto a, auto b) { return a | b; });
}
TEST_CASE("op bitwise_xor: values, errors") {
  check_bitwise("bitwise_xor", [](auto a, auto b) { return a ^ b; });
}
TEST_CASE("op bitwise_left_shift: values, counts out of range") {
  check_bitwise("bitwise_left_shift", [](auto a, auto b) { return a * (1 << b); });
  const auto by = [](const Vars& x) { return bitwise_left_shift(x[0], x[1]); };
  CHECK(played<std::int64_t>(by, {{5, 5, 5}, {-1, 63, 64}}).to<std::int64_t>() ==
        xt::xarray<std::int64_t>{0, std::numeric_limits<std::int64_t>::min(), 0});
  CHECK(played<std::int32_t>(by, {{5, 5}, {32, 40}}).to<std::int32_t>() == xt::xarray<std::int32_t>{0, 0});
}
TEST_CASE("op bitwise_right_shift: values, counts out of range") {
  check_bitwise("bitwise_right_shift", [](auto a, auto b) { return a >> b; });
  const auto by = [](const Vars& x) { return bitwise_right_shift(x[0], x[1]); };
  CHECK(played<std::int64_t>(by, {{5, -5, -5}, {-1, 64, 100}}).to<std::int64_t>() ==
        xt::xarray<std::int64_t>{0, -1, -1});
}
TEST_CASE("op bitwise_not: values, errors") {
  check_golden("ops_elementwise.json", "bitwise_not", 1e-12, 0);
  Tape tape;
  CHECK_THROWS_WITH_AS(bitwise_not(tape.input("x", {1}, Dtype::boolean)),
                       "bitwise_not: takes integers, received bool: use the logical ops", DtypeError);
}
