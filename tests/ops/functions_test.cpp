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

namespace {
using Reference = double (*)(double);

/// Compares with the C library at many points of [low, high]; float32 is compared with the library's double.
void check_accuracy(Unary op, Reference reference, double low, double high, double units) {
  const auto check = [&](auto scalar, double limit) {
    using T = decltype(scalar);
    std::mt19937_64 random(7);
    std::uniform_real_distribution<double> between(low, high);
    const std::size_t n = 20001;
    xt::xarray<T> points = xt::xarray<T>::from_shape({n});
    for (std::size_t i = 0; i < n; ++i) points(i) = static_cast<T>(between(random));
    const Array y = played_on<T>([op](const Vars& x) { return op(x[0]); }, {points});
    double worst = 0;
    T where_worst = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const double apart = units_apart(y.as<T>()[i], reference(static_cast<double>(points(i))));
      if (apart > worst) worst = apart, where_worst = points(i);
    }
    INFO(name_of(dtype_of<T>()) << ": " << worst << " units in the last place at " << where_worst);
    CHECK(worst <= limit);
  };
  check(float{}, units);
  check(double{}, units);
}

/// The values at special points.
void check_points(Unary op, Reference reference) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const xt::xarray<float> points{0,    -0.0f, 1,     -1,     1e-30f,     -1e-30f,     1e-5f,
                                 30.f, -30.f, 1e30f, -1e30f, float(inf), -float(inf), std::nanf("")};
  const Array y = played_on<float>([op](const Vars& x) { return op(x[0]); }, {points});
  for (std::size_t i = 0; i < points.size(); ++i) {
    INFO("at " << points(i) << ": got " << y.as<float>()[i]);
    CHECK(units_apart(y.as<float>()[i], reference(static_cast<double>(points(i)))) <= 4);
  }
}

void check_function(Unary op, Reference reference, double low, double high, const char* name, double units = 3) {
  check_accuracy(op, reference, low, high, units);
  check_points(op, reference);
  xt::xarray<double> points{0.07, 0.35, 0.8, 1.3, 2.1};
  if (low < 0) points = {-1.9, -0.6, -0.2, 0.35, 0.8, 1.7};
  check_gradients_on([op](const Var& x) { return op(x); }, points);
  check_golden("ops_pointwise.json", name);
}
}  // namespace

TEST_CASE("op sqrt: accuracy, gradients, golden values") {
  check_function(sqrt, std::sqrt, 0, 100, "sqrt");
}

TEST_CASE("op rsqrt: accuracy, gradients, golden values") {
  check_function(
      rsqrt, [](double x) { return 1 / std::sqrt(x); }, 0, 100, "rsqrt");
}

TEST_CASE("op exp: accuracy up to the largest float, gradients, golden values") {
  check_function(exp, std::exp, -80, 80, "exp");
  CHECK(std::isfinite(played<float>([](const Vars& x) { return exp(x[0]); }, {{88.7f}}).as<float>()[0]));
  const Array y = played<float>([](const Vars& x) { return exp(x[0]); }, {{88.0f, 88.5f, 88.7f, 88.8f}});
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(close(y.as<float>()[i], std::exp(xt::xarray<float>{88.0f, 88.5f, 88.7f, 88.8f}(i)), 1e-6));
}

TEST_CASE("op exp: right at every magnitude, from subnormal numbers to the largest float") {
  check_magnitudes(exp, std::exp, 2);
  const auto check = [](auto scalar, std::initializer_list<double> list) {
    using T = decltype(scalar);
    for (double x : list) {
      const T got = *played<T>([](const Vars& v) { return exp(v[0]); }, {{static_cast<T>(x)}}).template as<T>();
      CAPTURE(x);
      CHECK(std::abs(got - std::exp(static_cast<T>(x))) <=
            std::max<T>(4 * std::numeric_limits<T>::epsilon() * got, std::numeric_limits<T>::denorm_min()));
    }
  };
  check(float{}, {88.6, 88.72, -87.4, -88, -95.5, -103, -103.9, -110});
  check(double{}, {709.5, 709.78, -708.5, -720, -744, -745, -746.5});
}

TEST_CASE("op expm1: right at every magnitude, up to the largest float") {
  check_magnitudes(expm1, std::expm1, 3);
  CHECK(units_apart(*played<double>([](const Vars& x) { return expm1(x[0]); }, {{709.7}}).as<double>(),
                    std::expm1(709.7)) <= 3);
}

TEST_CASE("op log: right at every magnitude, also for subnormal numbers") {
  check_magnitudes(log, std::log, 1.5);
}

TEST_CASE("op log1p: right at every magnitude") {
  check_magnitudes(log1p, std::log1p, 1.5);
}

TEST_CASE("op sqrt: right at every magnitude") {
  check_magnitudes(sqrt, std::sqrt, 0.5);
}

TEST_CASE("op rsqrt: right at every magnitude") {
  check_magnitudes(
      rsqrt, [](long double x) { return 1 / std::sqrt(x); }, 2);
}

TEST_CASE("op softplus: right at every magnitude") {
  check_magnitudes(
      softplus, [](long double x) { return std::max(x, 0.0L) + std::log1p(std::exp(-std::abs(x))); }, 2);
  CHECK(*played<double>([](const Vars& x) { return softplus(x[0]); }, {{-740.0}}).as<double>() > 0);
}

TEST_CASE("op sigmoid: right at every magnitude") {
  check_magnitudes(
      sigmoid, [](long double x) { return 1 / (1 + std::exp(-x)); }, 3);
  CHECK(*played<float>([](const Vars& x) { return sigmoid(x[0]); }, {{-100.f}}).as<float>() > 0);
}

TEST_CASE("op tanh: right at every magnitude") {
  check_magnitudes(tanh, std::tanh, 2);
}

TEST_CASE("op exp, expm1, tanh, sin, cos: infinities, NaN and elements next to them are as in the C library") {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const auto points = listed({0.5, inf, -0.5, -inf, nan, 1.0, -800.0, 800.0, 1e300, -1e300, 0.0, 2.0});
  const auto check = [&](Var (*op)(const Argument&), double (*expected)(double)) {
    Tape tape;
    const Array y = evaluate(op(tape.parameter("x", points)));
    for (std::size_t i = 0; i < points.size(); ++i) {
      CAPTURE(points[i]);
      const double right = expected(points[i]);
      CHECK((std::isnan(right) ? std::isnan(y.as<double>()[i])
                               : y.as<double>()[i] == right || close(y.as<double>()[i], right, 1e-14)));
    }
  };
  check(exp, std::exp);
  check(expm1, std::expm1);
  check(tanh, std::tanh);
  check(sin, std::sin);
  check(cos, std::cos);
}

TEST_CASE("op pow: right at every magnitude, also for subnormal numbers") {
  check_magnitudes([](const Argument& x) { return pow(x, 0.25); }, [](long double x) { return std::pow(x, 0.25L); },
                   1.5);
}

TEST_CASE("float64 functions are within two units in the last place") {
  using Wide = long double;
  check_doubles(
      Unary(exp), [](Wide x) { return std::exp(x); }, -745, 709, 1.1);
  check_doubles(
      Unary(expm1), [](Wide x) { return std::expm1(x); }, -1.1, 1.1, 1.5);
  check_doubles(
      Unary(expm1), [](Wide x) { return std::expm1(x); }, -50, 709, 1.5);
  check_doubles(
      Unary(log), [](Wide x) { return std::log(x); }, 0, 4, 1);
  check_doubles(
      Unary(log1p), [](Wide x) { return std::log1p(x); }, -1, 4, 1.5);
  check_doubles(
      Unary(tanh), [](Wide x) { return std::tanh(x); }, -1, 1, 2.1);
  check_doubles(
      Unary(tanh), [](Wide x) { return std::tanh(x); }, -25, 25, 2.1);
  check_doubles(
      Unary(erf), [](Wide x) { return std::erf(x); }, -1.2, 1.2, 1.6);
  check_doubles(
      Unary(erf), [](Wide x) { return std::erf(x); }, -7, 7, 1.6);
  check_doubles(
      Unary(softplus), [](Wide x) { return std::max(x, Wide{0}) + std::log1p(std::exp(-std::abs(x))); }, -40, 40, 2);
  check_doubles(
      Unary(sigmoid), [](Wide x) { return 1 / (1 + std::exp(-x)); }, -40, 40, 2.5);
  check_doubles(
      Unary(sin), [](Wide x) { return std::sin(x); }, -2100, 2100, 1.7);
  check_doubles(
      Unary(cos), [](Wide x) { return std::cos(x); }, -2100, 2100, 1.7);
}

TEST_CASE("op pow: within 1.5 units in the last place for float64, by exponents of all sizes") {
  for (const double y : {0.25, -0.5, 3.0, 1.0 / 3, -7.3, 100.1, 700.0, -1000.7, 0.0, 1e-3})
    for (const double high : {2.0, 100.0}) {
      CAPTURE(y);
      check_doubles([y](const Argument& x) { return pow(x, y); },
                    [y](long double x) { return std::pow(x, static_cast<long double>(y)); }, high == 2 ? 0.55 : 1,
                    std::abs(y) > 100.1 ? 1.9 : high, 1.5);
    }
}

TEST_CASE("op pow: bases and exponents of every kind are as in the C library, whatever is next to them") {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const auto check = [&](auto scalar) {
    using T = decltype(scalar);
    const std::vector<double> numbers{0,    -0.0,  1,     -1,     2,    -2,    0.5, -0.5, 3,  -3,
                                      7.25, -7.25, 1e-40, -1e-40, 1e30, -1e30, inf, -inf, nan};
    std::vector<T> a, b;
    for (const double x : numbers)
      for (const double y : numbers) a.push_back(static_cast<T>(x)), b.push_back(static_cast<T>(y));
    xt::xarray<T> bases = xt::xarray<T>::from_shape({a.size()}), exponents = bases;
    std::copy(a.begin(), a.end(), bases.begin());
    std::copy(b.begin(), b.end(), exponents.begin());
    const Array y = played_on<T>([](const Vars& x) { return pow(x[0], x[1]); }, {bases, exponents});
    for (std::size_t i = 0; i < a.size(); ++i) {
      const T got = y.as<T>()[i];
      const double right = std::pow(static_cast<double>(a[i]), static_cast<double>(b[i]));
      INFO(a[i] << " ** " << b[i] << ": got " << got);
      CHECK(units_apart(got, right) <= 1.5);
      if (!std::isnan(right)) CHECK(std::signbit(got) == std::signbit(right));
    }
  };
  check(float{});
  check(double{});
}

TEST_CASE("float64 sin and cos: far from 0, next to multiples of pi, and with the sign of zero") {
  const xt::xarray<double> points{M_PI, -M_PI,   M_PI_2,  3 * M_PI_2, 710 * M_PI, 1e5,
                                  -3e7, 2047.99, 2048.01, 1e22,       5e-324,     1e-9};
  const Array s = played_on<double>([](const Vars& x) { return sin(x[0]); }, {points});
  const Array c = played_on<double>([](const Vars& x) { return cos(x[0]); }, {points});
  for (std::size_t i = 0; i < points.size(); ++i) {
    CAPTURE(points(i));
    CHECK(units_apart(s.as<double>()[i], std::sin(points(i))) <= 1.6);
    CHECK(units_apart(c.as<double>()[i], std::cos(points(i))) <= 1.6);
  }
  CHECK(std::signbit(*played<double>([](const Vars& x) { return sin(x[0]); }, {{-0.0}}).as<double>()));
}

TEST_CASE("op logsumexp: right if its sum is subnormal") {
  const Array y = played<double>([](const Vars& x) { return logsumexp(x[0]); }, {{-1e308, -740, -742}});
  CHECK(close(*y.as<double>(), -740 + std::log1p(std::exp(-2.0)), 1e-15));
}

TEST_CASE("op expm1: accuracy, also near 0, gradients, golden values") {
  check_function(expm1, std::expm1, -5, 5, "expm1");
  check_accuracy(expm1, std::expm1, -1e-3, 1e-3, 3);
}

TEST_CASE("op log: accuracy, gradients, golden values") {
  check_function(log, std::log, 0, 100, "log");
  check_accuracy(log, std::log, 0.9, 1.1, 3);
}

TEST_CASE("op log1p: accuracy, also near 0, gradients, golden values") {
  check_function(log1p, std::log1p, 0, 10, "log1p");
  check_accuracy(log1p, std::log1p, -1e-3, 1e-3, 3);
}

TEST_CASE("op sin: accuracy, gradients, golden values") {
  check_accuracy(sin, std::sin, -100, 100, 3);
  check_gradients_at([](const Var& x) { return sin(x); }, {-2.0, 0.1, 1.5});
  check_golden("ops_pointwise.json", "sin");
}

TEST_CASE("op cos: accuracy, gradients, golden values") {
  check_accuracy(cos, std::cos, -100, 100, 3);
  check_gradients_at([](const Var& x) { return cos(x); }, {-2.0, 0.1, 1.5});
  check_golden("ops_pointwise.json", "cos");
}

TEST_CASE("op tanh: accuracy, gradients, golden values") {
  check_function(tanh, std::tanh, -10, 10, "tanh");
}

TEST_CASE("op erf: accuracy, gradients, golden values") {
  check_function(erf, std::erf, -4, 4, "erf");
}

TEST_CASE("op sigmoid: accuracy, gradients, golden values") {
  check_function(
      sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, -20, 20, "sigmoid");
}

TEST_CASE("op relu: no gradient at 0, NaN stays") {
  check_points(relu, [](double x) { return x <= 0 ? 0 : x; });
  check_gradients_at([](const Var& x) { return relu(x) * x; }, {-1.0, 2.0});
  check_golden("ops_pointwise.json", "relu");
}

TEST_CASE("op silu: accuracy, gradients, golden values") {
  check_accuracy(
      silu, [](double x) { return x / (1 + std::exp(-x)); }, -20, 20, 4);
  check_gradients_at([](const Var& x) { return silu(x); }, {-3.0, -0.5, 0.0, 2.0});
  check_golden("ops_pointwise.json", "silu");
}

TEST_CASE("op softplus: accuracy, gradients, golden values") {
  check_function(
      softplus, [](double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }, -20, 20, "softplus");
}

TEST_CASE("op gelu: both forms, by kernel and by expand, gradients, golden values") {
  const xt::xarray<double> points{-7.5, -3, -1.2, -0.4, 0, 0.3, 1, 2.5, 6};
  for (const char* form : {"none", "tanh"}) {
    const auto apply_form = [form](const Vars& x) { return gelu(x[0], form); };
    const Array y = played_on<double>(apply_form, {points});
    for (std::size_t i = 0; i < points.size(); ++i) {
      const double x = points(i);
      const double cubic = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
      const double wanted = 0.5 * x * (1 + (form[0] == 'n' ? std::erf(x / std::sqrt(2.0)) : std::tanh(cubic)));
      CHECK(close(y.as<double>()[i], wanted, 1e-14));
    }
    Tape tape;
    const Var x = tape.parameter("x", ArrayView(points));
    const Var g = grad(sum(gelu(x, form)), {x})[0];
    const Array kernel = fast(g), expanded = evaluate(g);
    for (std::size_t i = 0; i < points.size(); ++i)
      CHECK(close(kernel.as<double>()[i], expanded.as<double>()[i], 1e-14));
    check_gradients_on([form](const Var& v) { return gelu(v, form); }, points);
  }
  check_golden("ops_pointwise.json", "gelu");
  Tape tape;
  CHECK_THROWS_WITH_AS(gelu(tape.input("x", {1}), "erf"), "gelu: approximate must be 'none' or 'tanh', got 'erf'",
                       Error);
}

TEST_CASE("op gelu_grad: gradients of both its inputs") {
  const Op& row = builtin_ops().at("gelu_grad");
  for (const char* form : {"none", "tanh"})
    check_gradients(
        [&](const Vars& x) {
          return apply(row, {x[0], x[1]}, {{"approximate", std::string(form)}});
        },
        {listed({-2.0, -0.3, 0.0, 1.5}), listed({0.7, -1.1, 2.0, 0.4})});
}
