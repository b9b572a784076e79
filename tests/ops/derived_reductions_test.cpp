#include <cmath>

#include "constants.hpp"
#include "golden.hpp"
#include "play.hpp"
#include "xtape/grad.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

TEST_CASE("op var: both corrections, gradients, golden values") {
  check_golden("ops_pointwise.json", "var", 1e-11);
  for (std::int64_t correction : {0, 1})
    for (const Axes& axes : {Axes{}, Axes{1}, Axes{0, -1}})
      check_gradients_on([&](const Var& x) { return variance(x, axes, false, correction); }, points);
  CHECK(std::isnan(played<float>([](const Vars& x) { return variance(x[0], {}, false, 1); }, {{3}}).as<float>()[0]));
  Tape tape;
  CHECK_THROWS_WITH_AS(variance(tape.input("x", {2}), {}, false, -1), "var: correction must not be negative, got -1",
                       Error);
}

TEST_CASE("op logsumexp: no overflow, gradients, golden values, rows of -inf") {
  check_golden("ops_pointwise.json", "logsumexp");
  for (const Axes& axes : {Axes{}, Axes{1}, Axes{0, -1}})
    check_gradients_on([&](const Var& x) { return logsumexp(x, axes); }, points);
  Tape tape;
  const Var x = tape.parameter("x", xt::xarray<float>{{1000, 1000}, {-inf32, -inf32}, {-inf32, 3}, {inf32, 0}});
  const Var y = logsumexp(x, {1});
  const Array values = fast(y);
  CHECK(close(values.as<float>()[0], 1000 + std::log(2.0), 1e-6));
  CHECK(values.as<float>()[1] == -inf32);
  CHECK(values.as<float>()[2] == 3);
  CHECK(values.as<float>()[3] == inf32);
  const Array g = fast(grad(sum(masked_fill(y, y == inf32, 0)), {x})[0]);
  const xt::xarray<float> wanted{0.5f, 0.5f, 0, 0, 0, 1, 0, 0};
  for (std::size_t i = 0; i < 6; ++i) CHECK(close(g.as<float>()[i], wanted(i), 1e-4));
  const xt::xarray<float> none = xt::xarray<float>::from_shape({2, 0});
  CHECK(played_on<float>([](const Vars& v) { return logsumexp(v[0], {1}); }, {none}).to<float>() ==
        xt::xarray<float>{-inf32, -inf32});
}
