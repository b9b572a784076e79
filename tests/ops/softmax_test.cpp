#include <doctest/doctest.h>

#include <limits>

#include "expansion.hpp"
#include "golden.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
constexpr float hidden = -std::numeric_limits<float>::infinity();
}

TEST_CASE("op softmax: gives PyTorch's values along every axis") {
  check_golden("ops_norms.json", "softmax");
}

TEST_CASE("op softmax: the kernel agrees with the expansion for many shapes") {
  const std::vector<std::vector<std::size_t>> shapes = {{7}, {3, 1}, {5, 64}, {2, 3, 17}, {0, 4}, {4, 0}, {2, 33, 20}};
  for (const auto& shape : shapes)
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      Tape tape;
      const Var x = tape.parameter("x", normal_array(shape, 1, 0, 5));
      const Var small = tape.parameter("small", single(normal_array(shape, 1, 0, 5)));
      const auto along = static_cast<std::int64_t>(axis);
      check_expansion({softmax(x, along)}, 1e-14);
      check_expansion({softmax(small, along)}, 1e-6);
    }
}

TEST_CASE("op softmax: a fully masked row gives zeros, and zero gradients") {
  Tape tape;
  const Var x = tape.parameter("x", xt::xarray<float>{{hidden, hidden, hidden}, {1, hidden, 1}});
  const Var y = softmax(x);
  const Var dy = tape.parameter("dy", xt::xarray<float>{{1, 2, 3}, {4, 5, 6}});
  const Var dx = grad({y}, {x}, {dy})[0];
  const xt::xarray<float> expected_y{{0, 0, 0}, {0.5f, 0, 0.5f}};
  const xt::xarray<float> expected_dx{{0, 0, 0}, {-0.5f, 0, 0.5f}};
  CHECK(fast(y).to<float>() == expected_y);
  CHECK(value<float>(y) == expected_y);
  CHECK(fast(dx).to<float>() == expected_dx);
  CHECK(value<float>(dx) == expected_dx);
}

TEST_CASE("op softmax: gradients") {
  for (std::int64_t axis : {0, 1, 2})
    check_gradients([&](const Vars& x) { return Vars{softmax(x[0], axis)}; }, {normal_array({2, 3, 4}, 3)});
}

TEST_CASE("op softmax_grad: the kernel agrees with the expansion and passes a gradient check") {
  for (std::int64_t axis : {0, 1}) {
    Tape tape;
    const Var x = tape.parameter("x", normal_array({18, 35}, 4));
    const Var dy = tape.parameter("dy", normal_array({18, 35}, 5));
    check_expansion(grad({softmax(x, axis)}, {x}, {dy}), 1e-14);
    check_gradients(
        [&](const Vars& v) {
          return apply(builtin_ops().at("softmax_grad"), {v[0], v[1]}, {{"axis", axis}});
        },
        {normal_array({3, 4}, 6), normal_array({3, 4}, 7)});
  }
}

TEST_CASE("op softmax: mistakes") {
  Tape tape;
  const Var x = tape.input("x", {2, 3});
  CHECK_THROWS_WITH_AS(softmax(x, 2), "softmax: axis 2 is out of range for an array of 2 axes", ShapeError);
  CHECK_THROWS_AS(softmax(tape.input("s", {})), ShapeError);
  CHECK_THROWS_WITH_AS(apply(builtin_ops().at("softmax_grad"), {x, tape.input("dy", {3})}),
                       "softmax_grad: 'dy' of shape (3,) must have shape (2, 3), that of y", ShapeError);
}
