#include <doctest/doctest.h>

#include <limits>

#include "expansion.hpp"
#include "golden.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

TEST_CASE("op log_softmax: gives PyTorch's values along every axis") {
  check_golden("ops_norms.json", "log_softmax");
}

TEST_CASE("op log_softmax: the kernel agrees with the expansion for many shapes") {
  const std::vector<std::vector<std::size_t>> shapes = {{7}, {5, 64}, {2, 3, 17}, {0, 4}, {4, 0}, {2, 33, 20}};
  for (const auto& shape : shapes)
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      Tape tape;
      const Var x = tape.parameter("x", normal_array(shape, 1, 50, 5));
      const Var small = tape.parameter("small", single(normal_array(shape, 1, 50, 5)));
      const auto along = static_cast<std::int64_t>(axis);
      check_expansion({log_softmax(x, along)}, 1e-14);
      check_expansion({log_softmax(small, along)}, 1e-6);
    }
}

TEST_CASE("op log_softmax: a row of -inf gives -inf, and its gradient is the cotangent") {
  const float hidden = -std::numeric_limits<float>::infinity();
  Tape tape;
  const Var x = tape.parameter("x", xt::xarray<float>{{hidden, hidden}, {hidden, 3}});
  const Var y = log_softmax(x);
  const Var dx = grad({y}, {x}, {tape.parameter("dy", xt::xarray<float>{{1, 2}, {3, 4}})})[0];
  const xt::xarray<float> expected_y{{hidden, hidden}, {hidden, 0}};
  const xt::xarray<float> expected_dx{{1, 2}, {3, -3}};
  CHECK(fast(y).to<float>() == expected_y);
  CHECK(value<float>(y) == expected_y);
  CHECK(fast(dx).to<float>() == expected_dx);
  CHECK(value<float>(dx) == expected_dx);
}

TEST_CASE("op log_softmax: gradients") {
  for (std::int64_t axis : {0, 1, 2})
    check_gradients([&](const Vars& x) { return Vars{log_softmax(x[0], axis)}; }, {normal_array({2, 3, 4}, 3)});
}

TEST_CASE("op log_softmax_grad: the kernel agrees with the expansion and passes a gradient check") {
  for (std::int64_t axis : {0, 1}) {
    Tape tape;
    const Var x = tape.parameter("x", normal_array({18, 35}, 4));
    const Var dy = tape.parameter("dy", normal_array({18, 35}, 5));
    check_expansion(grad({log_softmax(x, axis)}, {x}, {dy}), 1e-14);
    check_gradients(
        [&](const Vars& v) {
          return apply(builtin_ops().at("log_softmax_grad"), {v[0], v[1]}, {{"axis", axis}});
        },
        {normal_array({3, 4}, 6), normal_array({3, 4}, 7)});
  }
}

TEST_CASE("op log_softmax: mistakes") {
  Tape tape;
  CHECK_THROWS_WITH_AS(log_softmax(tape.input("x", {2, 3}), -3),
                       "log_softmax: axis -3 is out of range for an array of 2 axes", ShapeError);
}
