#include "play.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
const xt::xarray<std::int8_t> narrow{{1, -2, 127}, {-128, 0, 5}};
}

TEST_CASE("op dequantize: values, broadcasting, the reference, zero sizes") {
  Tape tape;
  const Var q = tape.parameter("q", ArrayView(narrow));
  const Var of_rows = reshape(tape.parameter("s", xt::xarray<float>{0.5f, 2}), {2, 1});
  CHECK(fast(dequantize(q, of_rows)).to<float>() == xt::xarray<float>{{0.5f, -1, 63.5f}, {-256, 0, 10}});
  CHECK(evaluate(dequantize(q, of_rows)).to<float>() == fast(dequantize(q, of_rows)).to<float>());
  const Var one = tape.parameter("one", xt::xarray<double>{0.25, 1, -1});
  CHECK(fast(dequantize(q, one)).to<double>() == xt::xarray<double>{{0.25, -2, -127}, {-32, 0, -5}});
  const Var none = tape.input("none", {0, 3}, Dtype::int8);
  CHECK(dequantize(none, one).shape() == Shape{0, 3});
}

TEST_CASE("op dequantize: the gradient reaches the scale") {
  check_gradients(
      [](const Vars& x) {
        return Vars{square(dequantize(x[0].tape().constant(ArrayView(narrow)), reshape(x[0], {2, 1})))};
      },
      {listed<double>({0.5, 0.01})});
}

TEST_CASE("op dequantize: errors") {
  Tape tape;
  const Var q = tape.parameter("q", ArrayView(narrow));
  const Var s = tape.parameter("s", xt::xarray<float>{1, 2});
  CHECK_THROWS_WITH_AS(dequantize(s, s), "dequantize: x must be int8, got float32 (2,)", DtypeError);
  CHECK_THROWS_WITH_AS(dequantize(q, q), "dequantize: the scale must be float32 or float64, got int8 (2, 3)",
                       DtypeError);
  CHECK_THROWS_AS(dequantize(q, s), ShapeError);
  const Var large = tape.input("large", {2, 1, 1});
  CHECK_THROWS_WITH_AS(dequantize(q, large),
                       "dequantize: a scale of shape (2, 1, 1) does not broadcast to x of shape (2, 3)", ShapeError);
}
