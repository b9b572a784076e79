#include <cmath>

#include "constants.hpp"
#include "golden.hpp"
#include "mapped_rows.hpp"
#include "play.hpp"
#include "xtape/ops/order.hpp"

using namespace xtape;

TEST_CASE("op searchsorted: values, NaN, integers, batches of rows and of values, errors") {
  check_golden("ops_order.json", "searchsorted");
  CHECK(played<double>([](const Vars& x) { return searchsorted(x[0], x[1], true); },
                       {{-inf, 0, inf, not_a_number}, {not_a_number, -0.0, inf, -inf}})
            .to<std::int64_t>() == xt::xarray<std::int64_t>{4, 2, 3, 1});
  CHECK(played<std::int32_t>([](const Vars& x) { return searchsorted(x[0], x[1]); }, {{-5, 2, 2, 9}, {2, 3, -9, 10}})
            .to<std::int64_t>() == xt::xarray<std::int64_t>{1, 3, 0, 4});
  const xt::xarray<double> rows{{-1, 0, 2}, {0.5, 0.5, 0.75}}, values{{0.3, 2}, {0.5, 0.6}};
  check_mapped_rows([](const Vars& x) { return searchsorted(x[0], x[1]); }, {rows, values});
  Tape tape;
  const Var x = tape.input("x", {2, 3});
  CHECK(searchsorted(tape.input("none", {0}), x).shape() == Shape{2, 3});
  CHECK_THROWS_WITH_AS(
      searchsorted(x, tape.input("y", {3, 3})),
      "searchsorted: the sorted rows must be [n], or [..., n] for values [..., m], got (2, 3) for (3, 3)", ShapeError);
  CHECK_THROWS_AS(searchsorted(x, 1.0), ShapeError);
}
TEST_CASE("op bucketize: values, errors") {
  check_golden("ops_order.json", "bucketize");
  Tape tape;
  CHECK_THROWS_AS(bucketize(tape.input("x", {2}), tape.input("y", {2, 2})), ShapeError);
}
TEST_CASE("op bincount: values, gradients of weights, nothing, errors") {
  check_golden("ops_order.json", "bincount");
  Tape tape;
  const Var bins = tape.constant(xt::xarray<std::int64_t>{{2, 0, 2}, {1, 4, 2}});
  CHECK(fast(bincount(bins, 6)).to<std::int64_t>() == xt::xarray<std::int64_t>{1, 1, 3, 0, 1, 0});
  check_gradients(
      [](const Vars& v) {
        Tape on = v[0].tape();
        return Vars{square(bincount(on.constant(xt::xarray<std::int64_t>{2, 0, 2, 1}), 4, v[0]))};
      },
      {listed<double>({0.3, 1.2, -0.7, 2.1})});
  CHECK(fast(bincount(tape.constant(xt::xarray<std::int64_t>::from_shape({0})), 2)).to<std::int64_t>() ==
        xt::xarray<std::int64_t>{0, 0});
  CHECK_THROWS_AS(fast(bincount(bins, 4)), Error);
  CHECK_THROWS_WITH_AS(bincount(bins, -1), "bincount: length must not be negative, got -1", ShapeError);
  CHECK_THROWS_AS(bincount(bins, 6, tape.input("w", {3})), ShapeError);
}
TEST_CASE("op histogram: values, gradients of weights, errors") {
  check_golden("ops_order.json", "histogram");
  check_gradients(
      [](const Vars& v) {
        Tape on = v[0].tape();
        return Vars{square(histogram(stop_gradient(v[0]), on.constant(xt::xarray<double>{-1, 0, 2}), v[0]))};
      },
      {listed<double>({0.3, 1.2, -0.7, 2.1})});
  Tape tape;
  CHECK_THROWS_AS(histogram(tape.input("x", {2}), tape.input("y", {0})), ShapeError);
}
