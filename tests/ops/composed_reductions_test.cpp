#include "xtape/ops/reductions.hpp"

#include <cmath>
#include <limits>

#include "constants.hpp"
#include "golden.hpp"
#include "play.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
/// Gradients for some axes.
void check_axes(const std::function<Var(const Var&, const Axes&)>& function) {
  for (const Axes& axes : {Axes{}, Axes{1}, Axes{0, -1}})
    check_gradients_on([&](const Var& x) { return function(x, axes); }, points);
}
}  // namespace

TEST_CASE("op std: values, gradients, none where all are equal") {
  check_golden("ops_reductions.json", "std", 1e-10);
  check_axes([](const Var& x, const Axes& axes) { return standard_deviation(x, axes, false, 1); });
  Tape tape;
  const Var x = tape.parameter("x", xt::xarray<double>{2, 2, 2});
  CHECK(fast(grad(standard_deviation(x), {x})[0]).to<double>() == xt::xarray<double>{0, 0, 0});
  CHECK_THROWS_WITH_AS(standard_deviation(x, {}, false, -1), "std: correction must not be negative, got -1", Error);
}
TEST_CASE("op vector_norm: all orders, gradients, errors") {
  check_golden("ops_reductions.json", "vector_norm", 1e-10);
  for (double p : {1.0, 2.0, 3.0, 1.5, 0.5, -1.0, inf, -inf})
    check_gradients_on([p](const Var& x) { return vector_norm(x, p, {1}); }, points);
  Tape tape;
  const Var x = tape.parameter("x", xt::xarray<double>{{0, 0}, {0, 4}});
  for (double p : {2.0, 3.0, 0.5}) {
    const Array g = fast(grad(sum(vector_norm(x, p, {1})), {x})[0]);
    for (std::size_t i = 0; i < 4; ++i) CHECK(close(g.as<double>()[i], i == 3 ? 1 : 0, 1e-14));
  }
  const Var norm = vector_norm(x, -1, {1});
  CHECK(fast(norm).to<double>() == xt::xarray<double>{0, 0});
  for (const Var& g : {grad(sum(norm), {x})[0], grad(sum(grad(sum(norm), {x})[0]), {x})[0]})
    CHECK(fast(g).to<double>() == xt::xarray<double>{{0, 0}, {0, 0}});
  CHECK_THROWS_WITH_AS(vector_norm(x, std::nan("")), "vector_norm: p must be a number, got NaN", Error);
  CHECK(vector_norm(tape.input("none", {0, 3}), inf, {1}).shape() == Shape{0});
  CHECK_THROWS_WITH_AS(vector_norm(tape.input("e", {0}), inf),
                       "vector_norm: needs at least one element: axis 0 of shape (0,) is empty", ShapeError);
}
TEST_CASE("op nansum: values, gradients") {
  check_golden("ops_reductions.json", "nansum", 1e-10);
  check_axes([](const Var& x, const Axes& axes) { return nansum(square(x), axes); });
}
TEST_CASE("op nanmean: values, gradients, nothing but NaN") {
  check_golden("ops_reductions.json", "nanmean", 1e-10);
  check_axes([](const Var& x, const Axes& axes) { return nanmean(square(x), axes); });
  const Array y = played<double>([](const Vars& x) { return nanmean(x[0]); }, {{std::nan(""), std::nan("")}});
  CHECK(std::isnan(y.as<double>()[0]));
}
TEST_CASE("op count_nonzero: values, bool, NaN") {
  check_golden("ops_reductions.json", "count_nonzero", 1e-10);
  const Array y = played<double>([](const Vars& x) { return count_nonzero(x[0]); }, {{0, -0.0, 1, std::nan("")}});
  CHECK(y.as<std::int64_t>()[0] == 2);
  Tape tape;
  CHECK(fast(count_nonzero(tape.parameter("b", xt::xarray<bool>{true, false, true}))).as<std::int64_t>()[0] == 2);
}
TEST_CASE("op argmin: values, the least integer, NaN, errors") {
  check_golden("ops_reductions.json", "argmin", 1e-10);
  const auto least = std::numeric_limits<std::int64_t>::min();
  CHECK(played<std::int64_t>([](const Vars& x) { return argmin(x[0]); }, {{-5, least, 3, least}}).as<std::int64_t>()[0] ==
        1);
  CHECK(played<double>([](const Vars& x) { return argmin(x[0]); }, {{-inf, std::nan(""), 3}}).as<std::int64_t>()[0] == 1);
  Tape tape;
  CHECK_THROWS_WITH_AS(argmin(tape.input("x", {2, 0})),
                       "argmin: needs at least one element: axis 1 of shape (2, 0) is empty", ShapeError);
}
