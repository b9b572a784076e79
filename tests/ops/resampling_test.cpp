#include "xtape/ops/resampling.hpp"

#include "golden.hpp"
#include "indexed.hpp"

using namespace xtape;

namespace {
const char* const resampling_file = "ops_resampling.json";
}

TEST_CASE("op interpolate: gives PyTorch's values and gradients; batches") {
  check_golden(resampling_file, "interpolate", 1e-11);
  const Doubles x = numbers({1, 2, 3, 4});
  for (const char* mode : {"nearest", "bilinear", "bicubic"})
    check_gradient([&](const Vars& v) { return square(interpolate(v[0], {5, 3}, {}, mode)); }, {x});
  check_vmap([](const Vars& v) { return interpolate(v[0], {}, 1.5, "linear", true); }, {numbers({3, 2, 1, 5})});
  check_jvp([](const Vars& v) { return square(interpolate(v[0], 7, {}, "linear")); }, {numbers({2, 1, 3})},
            {numbers({2, 1, 3}, 1)});
}
TEST_CASE("op interpolate: elements at the quotients of sizes are exact") {
  for (std::int64_t n = 1; n < 60; ++n) {
    Tape tape;
    const Var y = interpolate(cast(iota(tape, {1, 1, n}, 2), Dtype::float64), n * n);
    const Doubles repeated = value<double>(y);
    CAPTURE(n);
    REQUIRE(
        near(repeated, made_from({1, 1, n * n}, [n](const Shape& at) { return static_cast<double>(at[2] / n); }), 0));
  }
}
TEST_CASE("op interpolate: nearest by a scale_factor takes PyTorch's elements for one, two and three spatial axes") {
  const auto taken = [](std::size_t axes, double factor, const char* mode) {
    Tape tape;
    Shape shape = Shape::filled(axes + 2, 1);
    shape[axes + 1] = 3;
    const Doubles y = value<double>(interpolate(reshape(iota(tape, {3}, 0, Dtype::float64), shape), {}, factor, mode));
    return std::vector<double>(y.begin(), y.end());
  };
  using Taken = std::vector<double>;
  for (const std::size_t axes : {1, 3}) {
    CHECK(taken(axes, 1.3, "nearest") == Taken{0, 0, 1});
    CHECK(taken(axes, 2.1, "nearest") ==
          (axes == 1 ? Taken{0, 0, 0, 1, 1, 2}
                     : Taken{0, 0, 0, 1, 1, 2, 0, 0, 0, 1, 1, 2, 0, 0, 0, 1, 1, 2, 0, 0, 0, 1, 1, 2}));
  }
  CHECK(taken(2, 1.3, "nearest") == Taken{0, 1, 2});
  CHECK(taken(2, 2.1, "nearest") == Taken{0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2});
  CHECK(taken(2, 1.7, "nearest") == Taken{0, 0, 1, 1, 2});
  for (const std::size_t axes : {1, 2, 3}) CHECK(taken(axes, 1.3, "nearest-exact") == Taken{0, 1, 1});
}
TEST_CASE("op interpolate: sizes that do not fit are refused") {
  Tape tape;
  const Var x = tape.input("x", {1, 2, 3});
  CHECK_THROWS_WITH_AS(interpolate(x, {}), "interpolate: give either a size or a scale_factor", ShapeError);
  CHECK_THROWS_AS(interpolate(x, 3, 2.0), ShapeError);
  CHECK_THROWS_AS(interpolate(x, {3, 4}), ShapeError);
  CHECK_THROWS_AS(interpolate(x, 0), ShapeError);
  CHECK_THROWS_AS(interpolate(x, {}, -1.0), ShapeError);
  CHECK_THROWS_AS(interpolate(x, {}, 1e300), ShapeError);
  CHECK_THROWS_AS(interpolate(tape.input("empty", {1, 2, 0}), 3), ShapeError);
  CHECK_THROWS_WITH_AS(interpolate(x, 3, {}, "bilinear"),
                       "interpolate: x of shape (1, 2, 3) must be [b, c] with 2 spatial axes for mode \"bilinear\"",
                       ShapeError);
  CHECK_THROWS_AS(interpolate(x, 3, {}, "cubic"), Error);
  CHECK(interpolate(tape.input("none", {0, 2, 3}), 5).shape() == Shape{0, 2, 5});
}

TEST_CASE("op grid_sample: gives PyTorch's values and gradients; batches") {
  check_golden(resampling_file, "grid_sample", 1e-10, 2e-4);
  const Doubles x = numbers({1, 2, 3, 4}), grid = 1.3 * numbers({1, 2, 3, 2}, 5);
  for (const char* padding : {"zeros", "border", "reflection"})
    check_gradient([&](const Vars& v) { return grid_sample(v[0], v[1], "bilinear", padding); }, {x, grid});
  check_vmap([](const Vars& v) { return grid_sample(v[0], v[1]); },
             {numbers({2, 1, 2, 3, 4}), 1.3 * numbers({2, 1, 2, 3, 2}, 5)});
  check_jvp([](const Vars& v) { return grid_sample(v[0], v[1]); }, {x, grid},
            {numbers({1, 2, 3, 4}, 1), numbers({1, 2, 3, 2}, 2)});
}
TEST_CASE("op interpolate: a tenth of a hundred elements is every tenth") {
  Tape tape;
  const Var x = reshape(iota(tape, {100}, 0, Dtype::float64), {1, 1, 100});
  const Doubles found = value<double>(interpolate(x, {}, 0.1));
  for (std::size_t i = 0; i < 10; ++i) CHECK(found(0, 0, i) == 10.0 * static_cast<double>(i));
}
TEST_CASE("op grid_sample: at the last element, a border has no slope") {
  Tape tape;
  const Var x = tape.constant(Doubles{{{{5, 7}}}}), grid = tape.constant(Doubles{{{{1, 0}}}});
  const Var y = grid_sample(x, grid, "bilinear", "border", true);
  CHECK(value<double>(y)(0, 0, 0, 0) == 7);
  CHECK(value<double>(grad(sum(y), {grid})[0])(0, 0, 0, 0) == 0);
}
TEST_CASE("op grid_sample: points far away and NaN read nothing; shapes and words that do not fit are refused") {
  Tape tape;
  const Var x = tape.constant(numbers({1, 1, 2, 2}));
  const Var far = tape.constant(Doubles{{{{1e300, 0}, {-1e30, -1e300}}}});
  CHECK(value<double>(grid_sample(x, far)) == Doubles{{{{0, 0}}}});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const char* padding : {"zeros", "border", "reflection"})
    CHECK(value<double>(grid_sample(x, tape.constant(Doubles{{{{nan, 0}}}}), "bilinear", padding)).size() == 1);
  const Var grid = tape.input("grid", {1, 3, 3, 2}, Dtype::float64);
  CHECK_THROWS_WITH_AS(
      grid_sample(x, tape.input("three", {1, 3, 3, 3}, Dtype::float64)),
      "grid_sample: x of shape (1, 1, 2, 2) must be [b, c, h, w] with elements, and the grid, of shape (1, 3, 3, 3), "
      "[b, i, j, 2]",
      ShapeError);
  CHECK_THROWS_AS(grid_sample(tape.input("flat", {1, 1, 0, 2}, Dtype::float64), grid), ShapeError);
  CHECK_THROWS_AS(grid_sample(x, grid, "bicubic"), Error);
  CHECK_THROWS_AS(grid_sample(x, grid, "nearest", "wrap"), Error);
}
