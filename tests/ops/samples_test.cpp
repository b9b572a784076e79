#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "constants.hpp"
#include "play.hpp"
#include "xtape/ops/elementwise.hpp"
#include "xtape/ops/linear_algebra.hpp"
#include "xtape/ops/random.hpp"
#include "xtape/vmap.hpp"

using namespace xtape;

namespace {
constexpr std::int64_t many = 20000;
constexpr double bound = 1.95 / 141.4;  // of the distance of Kolmogorov and Smirnov, for `many` samples

std::vector<double> numbers_of(const Var& var, std::uint64_t seed = 3) {
  const Array drawn = fast(cast(var, Dtype::float64), 2, 0, seed);
  return {drawn.as<double>(), drawn.as<double>() + drawn.count()};
}
/// The largest distance between the distribution of samples and a distribution function.
double distance(std::vector<double> samples, const std::function<double(double)>& below) {
  std::sort(samples.begin(), samples.end());
  double most = 0;
  const auto n = static_cast<double>(samples.size());
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const double at = below(samples[i]), rank = static_cast<double>(i);
    most = std::max({most, at - rank / n, (rank + 1) / n - at});
  }
  return most;
}
double mean_of(const std::vector<double>& x) {
  return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
}
double variance_of(const std::vector<double>& x) {
  const double mean = mean_of(x);
  double sum = 0;
  for (const double each : x) sum += (each - mean) * (each - mean);
  return sum / static_cast<double>(x.size());
}
double normal_below(double x) {
  return std::erfc(-x / std::sqrt(2.0)) / 2;
}
Var wide(Tape tape, double value, Dtype dtype = Dtype::float64, const Shape& shape = {many}) {
  return full(tape, shape, value, dtype);
}
xt::xarray<double> full_of(double value, std::size_t count) {
  return value * xt::ones<double>({count});
}
/// Samples have the same bits for any number of threads, others for another step and another call, and finite ones in
/// float32.
void check_draws(const std::function<Var(Tape)>& sample) {
  Tape tape;
  const Var first = sample(tape), second = sample(tape);
  const auto bytes = [](const Array& x) { return std::string(static_cast<const char*>(x.data()), x.bytes()); };
  CHECK(bytes(fast(first, 1)) == bytes(fast(first, 3)));
  CHECK(bytes(fast(first)) == bytes(evaluate(first)));
  CHECK(bytes(fast(first, 2, 0)) != bytes(fast(first, 2, 1)));
  CHECK(bytes(fast(first)) != bytes(fast(second)));
}
/// Under vmap each example gets numbers of its own.
void check_differ(const std::function<Var(const Var&)>& sample) {
  Tape tape;
  const Var x = full(tape, {2, 3}, 0.7, Dtype::float64);
  const Array y = fast(vmap([&](const Vars& v) { return Vars{sample(v[0])}; }, {x})[0]);
  const std::size_t half = y.bytes() / 2;
  CHECK(std::memcmp(static_cast<const char*>(y.data()), static_cast<const char*>(y.data()) + half, half) != 0);
}
void check_parameters(Var (*sample)(const Operand&, const Operand&)) {
  check_gradients([&](const Vars& x) { return Vars{sample(x[0], x[1])}; },
                  {xt::xarray<double>{{0.6, 1.7, 3.2}, {2.2, 0.4, 12.0}}, listed<double>({0.5, 1.3, 2.1})});
  check_differ([&](const Var& x) { return sample(x, 1.5); });
  check_draws([&](Tape tape) { return sample(full(tape, {300}, 1.2), 0.8); });
}
}  // namespace

TEST_CASE("op randn: distribution, moments, tails of float32, draws") {
  Tape tape;
  const auto x = numbers_of(randn(tape, {many}, Dtype::float64));
  CHECK(distance(x, normal_below) < bound);
  const auto y = numbers_of(randn(tape, {10 * many}));
  CHECK(std::abs(mean_of(y)) < 4 / std::sqrt(10.0 * many));
  CHECK(std::abs(variance_of(y) - 1) < 4 * std::sqrt(2.0 / 10 / many));
  CHECK(*std::max_element(y.begin(), y.end()) < 5.9);
  CHECK(*std::max_element(y.begin(), y.end()) > 4);
  check_draws([](Tape on) { return randn(on, {300}); });
  const Array inside =
      fast(vmap([](const Vars& v) { return Vars{v[0] + randn(v[0].tape(), {3})}; }, {zeros(tape, {4, 3})})[0]);
  CHECK(inside.as<float>()[0] != inside.as<float>()[3]);
  CHECK_THROWS_AS(randn(tape, {3}, Dtype::int32), DtypeError);
}
TEST_CASE("op normal: distribution, gradients by mean and deviation, draws") {
  Tape tape;
  const auto x = numbers_of(normal(wide(tape, 1.5), 0.3));
  CHECK(distance(x, [](double v) { return normal_below((v - 1.5) / 0.3); }) < bound);
  check_parameters(normal);
  const Var mean = tape.input("mean", {3}), y = normal(mean, 1.0);
  CHECK(grad(sum(y), {mean})[0].shape() == Shape{3});
}
TEST_CASE("op truncated_normal: distribution, gradients, bounds, draws") {
  Tape tape;
  const double low = normal_below(-0.75), high = normal_below(1.25);
  const auto x = numbers_of(truncated_normal(wide(tape, 1), 2.0, -0.5, 3.5));
  CHECK(distance(x, [&](double v) { return (normal_below((v - 1) / 2) - low) / (high - low); }) < bound);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto above = numbers_of(truncated_normal(wide(tape, 0, Dtype::float32), 1.0, 0.5, infinity));
  CHECK(distance(above, [](double v) { return 1 - normal_below(-v) / normal_below(-0.5); }) < bound);
  CHECK(*std::min_element(above.begin(), above.end()) >= 0.5);
  const auto far = numbers_of(truncated_normal(wide(tape, 0, Dtype::float32), 1.0, 7, infinity));
  CHECK(std::all_of(far.begin(), far.end(), [](double v) { return v >= 7 && v < infinity; }));
  check_gradients([](const Vars& v) { return Vars{truncated_normal(v[0], v[1], -1, 2)}; },
                  {listed<double>({0.2, 1.1, -0.4}), listed<double>({0.7, 1.4, 1.0})});
  check_gradients([](const Vars& v) { return Vars{truncated_normal(v[0], v[1], -infinity, 2)}; },
                  {listed<double>({0.2, 1.1}), listed<double>({0.7, 1.4})});
  check_draws([](Tape on) { return truncated_normal(zeros(on, {300}), 1.0); });
  CHECK_THROWS_WITH_AS(truncated_normal(zeros(tape, {2}), 1.0, 2, 2),
                       "truncated_normal: low must be below high, got low 2 and high 2", Error);
}
TEST_CASE("op exponential: distribution, gradients, draws, finite in float32") {
  Tape tape;
  const auto x = numbers_of(exponential(wide(tape, 2.5)));
  CHECK(distance(x, [](double v) { return -std::expm1(-2.5 * v); }) < bound);
  const auto y = numbers_of(exponential(wide(tape, 1, Dtype::float32, {10 * many})));
  CHECK(*std::min_element(y.begin(), y.end()) > 0);
  CHECK(*std::max_element(y.begin(), y.end()) < 16.7);
  check_gradients([](const Vars& v) { return Vars{exponential(v[0])}; }, {listed<double>({0.2, 1.1, 3})});
  check_draws([](Tape on) { return exponential(ones(on, {300})); });
  // In bfloat16 one uniform number of 512 would be rounded to 1, in float16 one of 4096.
  for (const Dtype half : {Dtype::bfloat16, Dtype::float16}) {
    const auto narrow = numbers_of(cast(exponential(cast(ones(tape, {20000}, Dtype::float32), half)), Dtype::float32));
    CHECK(*std::max_element(narrow.begin(), narrow.end()) < 17);
  }
}
TEST_CASE("op laplace: distribution, gradients, draws") {
  Tape tape;
  const auto x = numbers_of(laplace(wide(tape, 1), 0.5));
  const auto below = [](double v) { return v < 1 ? std::exp(2 * (v - 1)) / 2 : 1 - std::exp(-2 * (v - 1)) / 2; };
  CHECK(distance(x, below) < bound);
  check_parameters(laplace);
}
TEST_CASE("op gamma: distribution and moments for small and large shapes, gradients, draws") {
  Tape tape;
  for (const double a : {0.3, 1.0, 4.0, 300.0}) {
    const auto x = numbers_of(gamma(wide(tape, a), 2.0));
    CHECK(std::abs(mean_of(x) - a / 2) < 4 * std::sqrt(a / 4 / many));
    CHECK(std::abs(variance_of(x) / (a / 4) - 1) < 0.2);
  }
  const auto x = numbers_of(gamma(wide(tape, 3, Dtype::float32), 1.0));
  CHECK(distance(x, [](double v) { return 1 - std::exp(-v) * (1 + v + v * v / 2); }) < bound);
  check_parameters(gamma);
}
TEST_CASE("op beta: distribution, gradients, tiny parameters, draws") {
  Tape tape;
  const auto x = numbers_of(beta(wide(tape, 2), 3.0));
  CHECK(distance(x, [](double v) { return v * v * (6 - 8 * v + 3 * v * v); }) < bound);
  for (const double each : numbers_of(beta(wide(tape, 1e-3, Dtype::float32), 1e-3))) REQUIRE((each >= 0 && each <= 1));
  for (const Dtype dtype : {Dtype::float32, Dtype::float64, Dtype::float16, Dtype::bfloat16})
    for (const double a : {0.003, 1e-3, 1e-4, 1e-6}) {
      const auto drawn = numbers_of(beta(wide(tape, a, dtype), wide(tape, 3 * a, dtype)));
      CHECK(std::count(drawn.begin(), drawn.end(), 0.5) < 0.001 * many);
      CHECK(std::abs(mean_of(drawn) - 0.25) < 4 * std::sqrt(0.1875 / many));
    }
  // For small y, the distribution function is y ** a / (a B(a, a)).
  const auto tiny = numbers_of(beta(wide(tape, 0.01), 0.01));
  for (const double y : {1e-200, 1e-100, 1e-30}) {
    const double below = std::exp(0.01 * std::log(y) - std::log(0.01) + std::lgamma(0.02) - 2 * std::lgamma(0.01));
    const auto seen = std::count_if(tiny.begin(), tiny.end(), [y](double each) { return each < y; });
    CHECK(std::abs(static_cast<double>(seen) / many - below) < 4 * std::sqrt(below / many));
  }
  check_gradients([](const Vars& x) { return Vars{beta(x[0], x[1])}; }, {full_of(0.02, 40), full_of(0.03, 40)}, false);
  check_parameters(beta);
}
TEST_CASE("op poisson: frequencies of small rates, moments of large ones, draws") {
  Tape tape;
  const auto x = numbers_of(poisson(wide(tape, 1.2, Dtype::float32)));
  double probability = std::exp(-1.2);
  for (int k = 0; k < 5; ++k, probability *= 1.2 / k) {
    const auto seen = static_cast<double>(std::count(x.begin(), x.end(), k)) / many;
    CHECK(std::abs(seen - probability) < 4 * std::sqrt(probability / many));
  }
  const auto y = numbers_of(poisson(wide(tape, 5e4)));
  CHECK(std::abs(mean_of(y) - 5e4) < 4 * std::sqrt(5e4 / many));
  CHECK(std::abs(variance_of(y) / 5e4 - 1) < 0.05);
  check_draws([](Tape on) { return poisson(full(on, {300}, 7)); });
  check_differ([](const Var& rate) { return poisson(rate * 100); });
}
TEST_CASE("op multivariate_normal: covariance, gradients, batches, errors") {
  Tape tape;
  const Var mean = tape.constant(xt::xarray<double>{1, -2});
  const Var covariance = tape.constant(xt::xarray<double>{{2, 0.9}, {0.9, 1}});
  const auto x = numbers_of(multivariate_normal(broadcast_to(mean, {many, 2}), covariance));
  double both = 0;
  for (std::size_t i = 0; i < many; ++i) both += (x[2 * i] - 1) * (x[2 * i + 1] + 2) / many;
  CHECK(std::abs(both - 0.9) < 0.06);
  check_gradients(
      [](const Vars& v) {
        const Var l = tril(v[1]);
        return Vars{multivariate_normal(v[0], matmul(l, transpose(l)))};
      },
      {xt::xarray<double>{{0.2, 1.1}, {-0.4, 0.3}}, xt::xarray<double>{{1.2, 0}, {0.4, 0.8}}});
  check_draws([](Tape on) { return multivariate_normal(zeros(on, {9, 2}), eye(on, 2, 2)); });
  CHECK_THROWS_WITH_AS(
      multivariate_normal(mean, tape.input("c", {3, 3}, Dtype::float64)),
      "multivariate_normal: the mean must be [..., n] and the covariance [..., n, n], got (2,) and (3, 3)", ShapeError);
}
TEST_CASE("op randint: frequencies, wide ranges, draws, errors") {
  Tape tape;
  const auto x = numbers_of(randint(tape, {many}, -2, 3));
  for (int k = -2; k < 3; ++k)
    CHECK(std::abs(static_cast<double>(std::count(x.begin(), x.end(), k)) / many - 0.2) < 4 * std::sqrt(0.2 / many));
  CHECK(std::count_if(x.begin(), x.end(), [](double v) { return v < -2 || v > 2; }) == 0);
  constexpr auto top = std::int64_t{1} << 53;
  const Array wider = fast(randint(tape, {1000}, 0, top));
  CHECK(*std::max_element(wider.as<std::int64_t>(), wider.as<std::int64_t>() + 1000) > top / 2);
  check_draws([](Tape on) { return randint(on, {300}, 0, 1000); });
  CHECK_THROWS_WITH_AS(randint(tape, {2}, 3, 3),
                       "randint: low must be below high, by at most 2^53, got low 3 and high 3", Error);
  CHECK_THROWS_AS(randint(tape, {2}, -top, top), Error);
}
TEST_CASE("op randperm: every number once, equal frequencies, draws") {
  Tape tape;
  std::vector<double> first(4, 0);
  const Var order = randperm(tape, 4);
  Player player(tape, {order});
  for (std::uint64_t step = 0; step < 4000; ++step) {
    player.play({}, step);
    const Array drawn(player.view(order));
    const auto* p = drawn.as<std::int64_t>();
    REQUIRE(((1 << p[0]) | (1 << p[1]) | (1 << p[2]) | (1 << p[3])) == 15);
    first[static_cast<std::size_t>(p[0])] += 1;
  }
  for (const double each : first) CHECK(std::abs(each / 4000 - 0.25) < 4 * std::sqrt(0.25 / 4000));
  CHECK(randperm(tape, 0).shape() == Shape{0});
  check_draws([](Tape on) { return randperm(on, 300); });
  CHECK_THROWS_WITH_AS(randperm(tape, -1), "randperm: n must not be negative, got -1", ShapeError);
}
TEST_CASE("op permutation: the slices of x in another order, gradients, batches") {
  Tape tape;
  auto x = numbers_of(permutation(iota(tape, {100})));
  CHECK_FALSE(std::is_sorted(x.begin(), x.end()));
  std::sort(x.begin(), x.end());
  for (std::size_t i = 0; i < 100; ++i) REQUIRE(x[i] == static_cast<double>(i));
  check_gradients_on([](const Var& v) { return square(permutation(v, 1)); }, {{0.3, 1.2, -0.7}, {2.1, -1.4, 0.9}});
  check_differ([](const Var& v) { return permutation(v + iota(v.tape(), {3}, 0, Dtype::float64) * 100.0); });
}
TEST_CASE("op multinomial: frequencies with and without replacement, weights of 0, draws, errors") {
  Tape tape;
  const Var weights = tape.constant(xt::xarray<float>{1, 0, 3, 6});
  const std::vector<double> p{0.1, 0, 0.3, 0.6};
  const auto with = numbers_of(multinomial(weights, many, true));
  const auto without = numbers_of(multinomial(broadcast_to(weights, {many, 4}), 3));
  std::vector<double> first, second;
  for (std::size_t i = 0; i < many; ++i) {
    first.push_back(without[3 * i]);
    second.push_back(without[3 * i + 1]);
    REQUIRE(without[3 * i] + without[3 * i + 1] + without[3 * i + 2] == 5);  // 0, 2 and 3
  }
  for (int k = 0; k < 4; ++k) {
    const auto at = static_cast<std::size_t>(k);
    double then = 0;
    for (std::size_t j = 0; j < 4; ++j)
      if (j != at) then += p[j] * p[at] / (1 - p[j]);
    const auto seen = [k](const std::vector<double>& x) {
      return static_cast<double>(std::count(x.begin(), x.end(), k)) / many;
    };
    CHECK(std::abs(seen(with) - p[at]) <= 4 * std::sqrt(p[at] / many));
    CHECK(std::abs(seen(first) - p[at]) <= 4 * std::sqrt(p[at] / many));
    CHECK(std::abs(seen(second) - then) <= 4 * std::sqrt(then / many));
  }
  check_draws([](Tape on) { return multinomial(ones(on, {50}), 20); });
  check_differ([](const Var& w) { return multinomial(w, 60, true); });
  CHECK_THROWS_WITH_AS(multinomial(weights, 5),
                       "multinomial: num_samples must be at least 0 and, without replacement, at most 4, got 5",
                       ShapeError);
}
TEST_CASE("op checked_weights: weights that are no distribution are refused") {
  const auto refused = [](const xt::xarray<double>& weights, const std::string& why) {
    for (const bool replacement : {false, true})
      for (const Dtype dtype : {Dtype::float64, Dtype::float32, Dtype::bfloat16}) {
        Tape tape;
        const Var given = cast(tape.parameter("w", weights), dtype);
        std::string message;
        try {
          fast(multinomial(given, 1, replacement));
        } catch (const Error& error) {
          message = error.what();
        }
        CAPTURE(message);
        CHECK(message.find("samples_test.cpp, line") != std::string::npos);
        CHECK(message.find("multinomial: " + why) != std::string::npos);
      }
  };
  refused({1, -1, 3}, "weight 1 is -1: weights must be finite and not negative");
  refused({{1, 2}, {not_a_number, 2}}, "weight 0 of row (1,) is nan: weights must be finite and not negative");
  refused({{{1, 2}, {2, inf}}}, "weight 1 of row (0, 1) is inf: weights must be finite and not negative");
  refused({0, 0}, "the weights sum to 0: the sum must be positive and finite");
  refused({{1, 2}, {0, 0}}, "the weights of row (1,) sum to 0: the sum must be positive and finite");
  Tape tape;
  const Var w = tape.constant(xt::xarray<double>{0, 5e-324, 0});
  for (const double each : numbers_of(multinomial(w, 100, true))) CHECK((each == 1 || each == 2));
  CHECK(fast(multinomial(zeros(tape, {0, 3}), 2)).count() == 0);
  CHECK_THROWS_AS(fast(choice(w, tape.constant(xt::xarray<double>{1, -1, 1}), 2)), Error);
  CHECK_THROWS_AS(fast(multinomial(tape.constant(xt::xarray<double>{1e308, 1e308}), 1)), Error);
  check_gradients_at([](const Var& x) { return square(apply(builtin_ops().at("checked_weights"), {x})[0]); }, {0.5, 2});
}
TEST_CASE("op choice: slices of x with equal and with other probabilities, gradients, errors") {
  Tape tape;
  const Var x = tape.constant(xt::xarray<std::int64_t>{10, 20, 30});
  const auto drawn = numbers_of(choice(x, tape.constant(xt::xarray<double>{1, 0, 3}), many));
  CHECK(std::abs(mean_of(drawn) - 25) < 0.3);
  CHECK(std::count(drawn.begin(), drawn.end(), 20) == 0);
  CHECK(choice(x, 2).dtype() == Dtype::int64);
  auto all = numbers_of(choice(x, 3, false));
  std::sort(all.begin(), all.end());
  CHECK(all == std::vector<double>{10, 20, 30});
  check_gradients_on([](const Var& v) { return square(choice(v, 4, true, 1)); }, {{0.3, 1.2, -0.7}, {2.1, -1.4, 0.9}});
  CHECK_THROWS_AS(choice(x, 4, false), ShapeError);
  CHECK_THROWS_AS(choice(x, tape.input("w", {2}), 1), ShapeError);
}
