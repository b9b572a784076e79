
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "play.hpp"
#include "same_bits.hpp"
#include "xtape/grad.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
struct Moments {
  double mean = 0;
  double variance = 0;
};
template <class T>
Moments moments(const Array& array) {
  Moments m;
  const auto n = static_cast<double>(array.count());
  for (std::int64_t i = 0; i < array.count(); ++i) m.mean += static_cast<double>(array.as<T>()[i]) / n;
  for (std::int64_t i = 0; i < array.count(); ++i) {
    const double d = static_cast<double>(array.as<T>()[i]) - m.mean;
    m.variance += d * d / n;
  }
  return m;
}

double correlation(const Array& a, const Array& b) {
  double product = 0;
  for (std::int64_t i = 0; i < a.count(); ++i)
    product += (static_cast<double>(a.as<float>()[i]) - 0.5) * (static_cast<double>(b.as<float>()[i]) - 0.5);
  return product / static_cast<double>(a.count()) * 12;
}

constexpr std::int64_t n = 200000;
}  // namespace

TEST_CASE("op uniform: range, moments, independence of steps, sites and seeds, threads") {
  Tape tape;
  const Var u = uniform(tape, {n});
  const Var other = uniform(tape, {n});
  const Array a = fast(u, 1);
  const Moments m = moments<float>(a);
  CHECK(std::abs(m.mean - 0.5) < 4 * std::sqrt(1.0 / 12 / n));
  CHECK(std::abs(m.variance - 1.0 / 12) < 0.001);
  CHECK(same_bits(a, fast(u, 3)));
  const double bound = 4 / std::sqrt(static_cast<double>(n));
  CHECK(std::abs(correlation(a, fast(u, 1, 1))) < bound);
  CHECK(std::abs(correlation(a, fast(u, 1, 0, 1))) < bound);
  CHECK(std::abs(correlation(a, fast(other))) < bound);
  const Var wide = uniform(tape, {n}, -3, 5, Dtype::float64);
  const Array w = fast(wide);
  for (std::int64_t i = 0; i < n; ++i) REQUIRE((w.as<double>()[i] >= -3 && w.as<double>()[i] < 5));
  CHECK(std::abs(moments<double>(w).mean - 1) < 4 * 8 * std::sqrt(1.0 / 12 / n));
  CHECK(same_bits(fast(wide, 1), fast(wide, 4)));
  for (std::int64_t i = 0; i < n; ++i) REQUIRE((a.as<float>()[i] >= 0 && a.as<float>()[i] < 1));
  CHECK(fast(uniform(tape, {3}, 2, 2)).to<float>() == xt::xarray<float>{2, 2, 2});
  CHECK_THROWS_AS(uniform(tape, {3}, 2, 1), Error);
  CHECK_THROWS_AS(uniform(tape, {3}, 0, 1, Dtype::int32), DtypeError);
}

TEST_CASE("op uniform: a shorter array at the same site is the beginning of a longer one") {
  Array longer, shorter;
  for (std::int64_t size : {1000, 37}) {
    Tape tape;  // the same site, but another shape
    (size == 1000 ? longer : shorter) = fast(uniform(tape, {size}));
  }
  CHECK(std::memcmp(longer.data(), shorter.data(), shorter.bytes()) == 0);
}

TEST_CASE("op bernoulli: frequency, extremes, refusals") {
  Tape tape;
  for (double p : {0.1, 0.5, 0.93}) {
    const Moments m = moments<bool>(fast(bernoulli(tape, {n}, p)));
    CHECK(std::abs(m.mean - p) < 4 * std::sqrt(p * (1 - p) / n));
  }
  CHECK(moments<bool>(fast(bernoulli(tape, {1000}, 0))).mean == 0);
  CHECK(moments<bool>(fast(bernoulli(tape, {1000}, 1))).mean == doctest::Approx(1));
  const Var b = bernoulli(tape, {n}, 0.3);
  CHECK(same_bits(fast(b, 1), fast(b, 3)));
  CHECK_THROWS_WITH_AS(bernoulli(tape, {3}, 1.5), "bernoulli: p must be in [0, 1], got 1.5", Error);
}

TEST_CASE("op categorical: frequencies follow the softmax, -inf is never drawn") {
  Tape tape;
  const float inf = std::numeric_limits<float>::infinity();
  const Var logits = tape.constant(xt::xarray<float>{0, std::log(3.0f), -inf, std::log(6.0f)});
  const Array drawn = fast(categorical(broadcast_to(logits, {50000, 4})));
  std::vector<double> seen(4, 0);
  for (std::int64_t i = 0; i < drawn.count(); ++i) seen[static_cast<std::size_t>(drawn.as<std::int64_t>()[i])] += 1;
  for (std::size_t k = 0; k < 4; ++k) {
    const double p = std::vector<double>{0.1, 0.3, 0, 0.6}[k];
    CHECK(std::abs(seen[k] / 50000 - p) <= 4 * std::sqrt(p * (1 - p) / 50000));
  }
  CHECK(fast(categorical(tape.constant(xt::xarray<double>{{-1e300, 0}, {0, -1e300}}))).to<std::int64_t>() ==
        xt::xarray<std::int64_t>{1, 0});
  CHECK(fast(categorical(tape.constant(xt::xarray<float>{-inf, -inf}))).to<std::int64_t>()() == 0);
  const Var many = categorical(broadcast_to(logits, {1003, 4}));
  CHECK(same_bits(fast(many, 1), fast(many, 3)));
  CHECK_THROWS_AS(categorical(tape.input("s", {})), ShapeError);
  for (const float wrong : {inf, std::nanf("")})
    for (const std::size_t place : {0, 1, 2}) {
      xt::xarray<float> bad{{0, 1, 2}, {3, 4, 5}};
      bad(1, place) = wrong;
      std::string message;
      try {
        fast(categorical(tape.constant(bad)));
      } catch (const Error& error) {
        message = error.what();
      }
      CHECK(message.find("categorical: the logits of row (1,) contain NaN or inf") != std::string::npos);
    }
}

TEST_CASE(
    "op dropout: rate, scale, and the same mask for the gradient, for the expansion and for any number of threads") {
  Tape tape;
  Array values(Dtype::float32, {n});
  for (std::int64_t i = 0; i < n; ++i) values.as<float>()[i] = static_cast<float>(i % 97 + 1);
  const Var x = tape.parameter("x", values);
  const Var y = dropout(x, 0.2);
  const Array a = fast(y, 1);
  double kept = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const float each = a.as<float>()[i];
    if (each == 0) continue;
    kept += 1;
    REQUIRE(close(each, values.as<float>()[i] / 0.8, 1e-6));
  }
  CHECK(std::abs(kept / n - 0.8) < 4 * std::sqrt(0.2 * 0.8 / n));
  CHECK(same_bits(a, fast(y, 3)));
  CHECK(same_bits(a, evaluate(y)));
  CHECK_FALSE(same_bits(a, fast(y, 1, 1)));
  const Array g = fast(grad(sum(y), {x})[0]);
  for (std::int64_t i = 0; i < n; ++i) REQUIRE(close(g.as<float>()[i], a.as<float>()[i] == 0 ? 0 : 1.25, 1e-6));
  check_gradients_at([](const Var& v) { return dropout(square(v), 0.4); }, {0.3, 1.2, -0.7, 2.1, -1.4, 0.9, 0.5, 0.6});
}

TEST_CASE("op dropout: a rate of 1 gives zeros and a zero gradient, by the kernel and by the expansion") {
  Tape tape(Mode::train);
  const Var x = tape.parameter("x", xt::xarray<double>{0.0, -1.5, 2.0});
  const Var y = dropout(x, 1.0);
  const Var dx = grad(sum(square(y) + y), {x})[0];
  for (const Var& var : {y, dx})
    for (const Array& found : {fast(var), evaluate(var)}) CHECK(found.to<double>() == xt::xarray<double>{0, 0, 0});
}

TEST_CASE("op dropout: x itself unless in mode train with a rate; two calls draw different numbers; refusals") {
  for (Mode mode : {Mode::train, Mode::eval, Mode::predict}) {
    Tape tape(mode);
    const Var x = tape.input("x", {8});
    CHECK(dropout(x, 0).id() == x.id());
    CHECK((dropout(x, 0.5).id() == x.id()) == (mode != Mode::train));
    CHECK_THROWS_WITH_AS(dropout(x, -0.1), "dropout: rate must be in [0, 1], got -0.1", Error);
  }
  Tape tape;
  const Var x = ones(tape, {n});
  CHECK_FALSE(same_bits(fast(dropout(x, 0.5)), fast(dropout(x, 0.5))));
  const Array none = fast(dropout(x, 1));
  for (std::int64_t i = 0; i < n; ++i) REQUIRE(none.as<float>()[i] == 0);
}
