#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

#include "constants.hpp"
#include "golden.hpp"
#include "play.hpp"
#include "xtape/grad.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
using ReducingOp = Var (*)(const Argument&, const Axes&, bool);

Array random_array(const Shape& shape, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  Array result(Dtype::float64, shape);
  for (std::int64_t i = 0; i < result.count(); ++i) result.as<double>()[i] = normal(random);
  return result;
}

/// A sequential reduction: combine(result so far, element), starting with `start`.
Array naive_reduction(const Array& x, const std::vector<bool>& reduced, double start,
                      const std::function<double(double, double)>& combine) {
  Shape kept = x.shape();
  for (std::size_t i = 0; i < kept.size(); ++i)
    if (reduced[i]) kept[i] = 1;
  Array y(Dtype::float64, kept);
  for (std::int64_t i = 0; i < y.count(); ++i) y.as<double>()[i] = start;
  const Strides to = Layout::dense(kept).broadcast_to(x.shape()).strides;
  for (std::int64_t flat = 0; flat < x.count(); ++flat) {
    std::int64_t rest = flat, at = 0;
    for (std::size_t i = kept.size(); i-- > 0; rest /= x.shape()[i])
      if (kept[i] != 1) at += rest % x.shape()[i] * to[i];
    y.as<double>()[at] = combine(y.as<double>()[at], x.as<double>()[flat]);
  }
  return y;
}

/// All sets of axes of several shapes: short and long rows, narrow and wide columns, axes that are not adjacent.
void check_all_axes(ReducingOp op, double start, const std::function<double(double, double)>& combine,
                    bool mean = false) {
  for (const Shape& shape : {Shape{3, 4, 5}, Shape{2, 3, 1, 4, 2}, Shape{300, 7}, Shape{7, 300}, Shape{4, 70, 130},
                             Shape{2, 40000}, Shape{40000, 2}, Shape{5}, Shape{9, 1, 200, 3}}) {
    const Array x = random_array(shape, 5);
    for (unsigned set = 1; set < (1u << shape.size()); ++set) {
      Axes axes;
      std::vector<bool> reduced(shape.size());
      double count = 1;
      for (std::size_t i = 0; i < shape.size(); ++i) {
        reduced[i] = (set >> i & 1) != 0;
        if (!reduced[i]) continue;
        axes.push_back(static_cast<std::int64_t>(i) - (i % 2 ? static_cast<std::int64_t>(shape.size()) : 0));
        count *= static_cast<double>(shape[i]);
      }
      Tape tape;
      const Var v = tape.parameter("x", x);
      const Array wanted = naive_reduction(x, reduced, start, combine);
      const Array wide = fast(op(v, axes, true));
      const Array narrow = fast(op(cast(v, Dtype::float32), axes, true), 3);
      INFO(shape << " over " << to_string(Attribute{axes}));
      REQUIRE(wide.shape() == wanted.shape());
      REQUIRE(op(v, axes, false).rank() == shape.size() - axes.size());
      bool same = true;
      for (std::int64_t i = 0; i < wanted.count(); ++i) {
        const double each = wanted.as<double>()[i] / (mean ? count : 1);
        same = same && close(wide.as<double>()[i], each, 1e-11) && close(narrow.as<float>()[i], each, 1e-4);
      }
      CHECK(same);
    }
  }
}

void check_reduction_gradients(ReducingOp op) {
  const xt::xarray<double> x{{{0.3, 1.2, -0.7}, {2.1, -1.4, 0.9}}, {{-0.2, 0.6, 1.7}, {-2.2, 0.1, 1.3}}};
  for (const Axes& axes : {Axes{}, Axes{0}, Axes{-1}, Axes{0, 2}})
    for (bool keepdims : {false, true})
      check_gradients_on([&](const Var& v) { return op(v * v, axes, keepdims); }, x, !keepdims);
}
}  // namespace

TEST_CASE("op sum: any axes, gradients, golden values") {
  check_all_axes(sum, 0, std::plus<double>());
  check_reduction_gradients(sum);
  check_golden("ops_pointwise.json", "sum");
}

TEST_CASE("op sum: integers and bool are summed as int64; the sum of no elements is 0") {
  CHECK(
      played<std::int32_t>([](const Vars& x) { return sum(x[0]); }, {{2000000000, 2000000000}}).to<std::int64_t>()() ==
      4000000000);
  CHECK(played_on<bool>([](const Vars& x) { return sum(x[0], {0}); }, {xt::xarray<bool>{{true, false}, {true, true}}})
            .to<std::int64_t>() == xt::xarray<std::int64_t>{2, 1});
  const xt::xarray<float> none = xt::xarray<float>::from_shape({0, 2});
  CHECK(played_on<float>([](const Vars& x) { return sum(x[0], {0}); }, {none}).to<float>() == xt::xarray<float>{0, 0});
  CHECK(played_on<float>([](const Vars& x) { return sum(x[0], {1}); }, {none}).shape() == Shape{0});
  CHECK(played_on<float>([](const Vars& x) { return sum(x[0]); }, {none}).to<float>()() == 0);
}

TEST_CASE(
    "op sum: 20 million float32 ones give 20 million along rows and columns, and any number of threads the same bits") {
  Array ones_array(Dtype::float32, {20000000});
  std::fill_n(ones_array.as<float>(), 20000000, 1.0f);
  Tape tape;
  const Var x = tape.parameter("x", ones_array);
  CHECK(fast(sum(x)).as<float>()[0] == 2e7f);
  CHECK(fast(sum(reshape(x, {10000000, 2}), {0})).to<float>() == xt::xarray<float>{1e7f, 1e7f});
  const Array noise = random_array({300000}, 3);
  const Var y = cast(tape.parameter("y", noise), Dtype::float32);
  const Var table = reshape(y, {3000, 100});
  for (const Var& each : {sum(y), sum(table, {0}), mean(table, {1})}) {
    const Array one = fast(each, 1), two = fast(each, 2), four = fast(each, 4);
    for (std::int64_t i = 0; i < one.count(); ++i) {
      CHECK(one.as<float>()[i] == two.as<float>()[i]);
      CHECK(one.as<float>()[i] == four.as<float>()[i]);
    }
  }
}

TEST_CASE("op sum: refuses axes that are out of range or given twice") {
  Tape tape;
  const Var x = tape.input("x", {2, 3});
  CHECK_THROWS_WITH_AS(sum(x, {2}), "sum: axis 2 is out of range for an array of 2 axes", ShapeError);
  CHECK_THROWS_WITH_AS(sum(x, {1, -1}), "sum: axis -1 is named twice in (1, -1)", ShapeError);
}

TEST_CASE("op mean: any axes, gradients, golden values; the mean of no elements is NaN") {
  check_all_axes(mean, 0, std::plus<double>(), true);
  check_reduction_gradients(mean);
  check_golden("ops_pointwise.json", "mean");
  const xt::xarray<float> none = xt::xarray<float>::from_shape({0});
  CHECK(std::isnan(played_on<float>([](const Vars& x) { return mean(x[0]); }, {none}).as<float>()[0]));
  CHECK(played<std::int32_t>([](const Vars& x) { return mean(x[0]); }, {{1, 2}}).to<float>()() == 1.5f);
}

TEST_CASE("op max: any axes, shared ties, NaN, golden values; an error for no elements") {
  check_all_axes(max, -inf, [](double a, double b) { return std::max(a, b); });
  check_reduction_gradients(max);
  check_golden("ops_pointwise.json", "max");
  Tape tape;
  const Var ties = tape.parameter("x", xt::xarray<float>{{1, 3, 3}, {2, 2, 2}});
  CHECK(fast(grad(sum(max(ties, {1})), {ties})[0]).to<float>() ==
        xt::xarray<float>{{0, 0.5f, 0.5f}, {1 / 3.f, 1 / 3.f, 1 / 3.f}});
  for (std::size_t length : {3u, 1000u})
    for (std::size_t at : {std::size_t{0}, length - 1}) {
      xt::xarray<float> row = xt::xarray<float>::from_shape({length});
      row.fill(2);
      row(at) = std::nanf("");
      CHECK(std::isnan(played_on<float>([](const Vars& x) { return max(x[0]); }, {row}).as<float>()[0]));
    }
  CHECK(played<std::int64_t>([](const Vars& x) { return max(x[0]); }, {{-5, -3}}).to<std::int64_t>()() == -3);
  CHECK_THROWS_WITH_AS(max(tape.input("none", {2, 0})),
                       "max: needs at least one element: axis 1 of shape (2, 0) is empty", ShapeError);
  CHECK(max(tape.input("rows", {0, 2}), {1}).shape() == Shape{0});
}

TEST_CASE("op min: any axes, shared ties, golden values; an error for no elements") {
  check_all_axes(min, inf, [](double a, double b) { return std::min(a, b); });
  check_reduction_gradients(min);
  check_golden("ops_pointwise.json", "min");
  Tape tape;
  CHECK_THROWS_AS(min(tape.input("none", {0})), ShapeError);
  CHECK_THROWS_WITH_AS(min(tape.input("mask", {2}, Dtype::boolean)),
                       "min: takes numbers, received bool: use 'any' or 'all' instead", DtypeError);
}

TEST_CASE("op any: false over no elements, golden values") {
  check_golden("ops_pointwise.json", "any");
  const xt::xarray<bool> none = xt::xarray<bool>::from_shape({0});
  CHECK(played_on<bool>([](const Vars& x) { return any(x[0]); }, {none}).to<bool>()() == false);
  xt::xarray<bool> one = xt::xarray<bool>::from_shape({5000});
  one.fill(false);
  CHECK(played_on<bool>([](const Vars& x) { return any(x[0]); }, {one}).to<bool>()() == false);
  one(4321) = true;
  CHECK(played_on<bool>([](const Vars& x) { return any(x[0]); }, {one}).to<bool>()() == true);
}

TEST_CASE("op all: true over no elements, golden values") {
  check_golden("ops_pointwise.json", "all");
  const xt::xarray<bool> none = xt::xarray<bool>::from_shape({0});
  CHECK(played_on<bool>([](const Vars& x) { return all(x[0]); }, {none}).to<bool>()() == true);
  Tape tape;
  CHECK_THROWS_WITH_AS(all(tape.input("x", {2})), "all: 'x' must be a bool array, got float32 (2,)", DtypeError);
}

namespace {
/// The error bound of NumPy's pairwise sum of n numbers: 16 additions in each of 8 lanes, 3 to join the lanes, and a
/// tree over blocks of 128. Each addition has an error of half a unit, relative to the sum of the absolute values.
double numpy_bound(std::int64_t n) {
  const double blocks = std::max(1.0, static_cast<double>(n) / 128);
  return (16 + 3 + std::ceil(std::log2(blocks))) * 0x1p-24;
}

/// Compares sums and means of float32 numbers with a loop in long double, relative to the sum of the absolute values.
void check_exactness(const Shape& shape, const Axes& axes, const std::function<float(std::int64_t)>& number) {
  CAPTURE(to_string(shape));
  CAPTURE(to_string(Attribute(axes)));
  Array x(Dtype::float32, shape);
  Shape kept = shape;
  for (std::size_t axis = 0; axis < kept.size(); ++axis)
    if (axes.empty() || std::count(axes.begin(), axes.end(), static_cast<std::int64_t>(axis)) > 0) kept[axis] = 1;
  const Strides to = Layout::dense(kept).broadcast_to(shape).strides;
  std::vector<long double> truth(static_cast<std::size_t>(count_of(kept)), 0), sizes = truth;
  for (std::int64_t flat = 0; flat < x.count(); ++flat) {
    x.as<float>()[flat] = number(flat);
    std::int64_t rest = flat, at = 0;
    for (std::size_t i = shape.size(); i-- > 0; rest /= shape[i]) at += rest % shape[i] * to[i];
    truth[static_cast<std::size_t>(at)] += static_cast<long double>(x.as<float>()[flat]);
    sizes[static_cast<std::size_t>(at)] += std::abs(static_cast<long double>(x.as<float>()[flat]));
  }
  Tape tape;
  const Var v = tape.parameter("x", x);
  const Array total = fast(sum(v, axes)), average = fast(mean(v, axes));
  REQUIRE(total.count() == static_cast<std::int64_t>(truth.size()));
  REQUIRE(average.count() == total.count());
  const double count = static_cast<double>(x.count()) / static_cast<double>(truth.size());
  const double bound = numpy_bound(static_cast<std::int64_t>(count));
  for (std::size_t i = 0; i < truth.size(); ++i) {
    const auto right = static_cast<double>(truth[i]), scale = static_cast<double>(sizes[i]);
    CHECK(std::abs(total.as<float>()[i] - right) <= bound * scale);
    CHECK(std::abs(average.as<float>()[i] * count - right) <= (bound + 0x1p-24) * scale);
  }
  for (int threads : {1, 3}) {
    const Array again = fast(sum(v, axes), threads);
    CHECK(std::equal(again.as<float>(), again.as<float>() + again.count(), total.as<float>()));
  }
}
}  // namespace

TEST_CASE("op sum: a million equal float32 numbers are summed as exactly as by NumPy's pairwise sum, along all axes") {
  const auto tenth = [](std::int64_t) { return 0.1f; };
  const auto drawn = [](std::int64_t i) { return static_cast<float>(std::sin(static_cast<double>(i) * 12.9898)); };
  for (const std::function<float(std::int64_t)>& number :
       {std::function<float(std::int64_t)>(tenth), std::function<float(std::int64_t)>(drawn)}) {
    check_exactness({1000000}, {0}, number);
    check_exactness({3, 333333}, {1}, number);
    check_exactness({333333, 3}, {0}, number);
    check_exactness({1000, 1000}, {}, number);
    check_exactness({1000, 1000}, {0}, number);
    check_exactness({100, 100, 100}, {0, 2}, number);
    check_exactness({1000, 31, 31}, {0, 2}, number);
  }
}

TEST_CASE("op mean: the mean of a million equal numbers is that number within a few units in the last place") {
  Array x(Dtype::float32, {1000000});
  std::fill_n(x.as<float>(), x.count(), 0.1f);
  Tape tape;
  const Var v = tape.parameter("x", x);
  CHECK(std::abs(*fast(mean(v)).as<float>() - 0.1f) <= 2 * 0x1p-27f);
  CHECK(*fast(variance(v)).as<float>() <= 0x1p-52f);  // the square of that error
  CHECK(std::abs(*fast(logsumexp(v)).as<float>() - (0.1f + std::log(1e6f))) <= 2 * 0x1p-20f);
}
