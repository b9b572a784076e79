#include <doctest/doctest.h>

#include <limits>

#include "expansion.hpp"

using namespace xtape;

namespace {
const Op& row() {
  return builtin_ops().at("masked_softmax");
}

xt::xarray<bool> mask_of(const std::vector<std::size_t>& shape, std::size_t every) {
  xt::xarray<bool> mask = xt::xarray<bool>::from_shape(shape);
  for (std::size_t i = 0; i < mask.size(); ++i) mask.data()[i] = i % every == 0;
  return mask;
}
}  // namespace

TEST_CASE("op masked_softmax: the kernel and that of its gradient agree with scale, mask and softmax") {
  for (const std::vector<std::size_t>& mask_shape :
       {std::vector<std::size_t>{}, {1}, {35}, {3, 35}, {3, 1}, {2, 1, 1, 35}, {2, 4, 3, 35}})
    for (std::size_t every : {1u, 2u, 100u}) {
      Tape tape;
      const Var mask = tape.parameter("mask", mask_of(mask_shape, every));
      const xt::xarray<double> x = normal_array({2, 4, 3, 35}, 1, 0, 5);
      const xt::xarray<double> dy = normal_array({2, 4, 3, 35}, 2);
      const Var wide = tape.parameter("x", x);
      const Var y = apply(row(), {wide, tape.constant(2.5, Dtype::float64), mask})[0];
      check_expansion({y, grad({y}, {wide}, {tape.parameter("dy", dy)})[0]}, 1e-14);
      const Var narrow = tape.parameter("narrow", single(x));
      const Var small = apply(row(), {narrow, tape.constant(2.5, Dtype::float32), mask})[0];
      check_expansion({small, grad({small}, {narrow}, {tape.parameter("dy narrow", single(dy))})[0]}, 1e-6);
    }
}

TEST_CASE("op masked_softmax: reads transposed scores") {
  Tape tape;
  const Var x = transpose(tape.parameter("x", normal_array({9, 5}, 1)), {1, 0});
  const Var mask = tape.parameter("mask", mask_of({9, 5}, 3));
  check_expansion({apply(row(), {x, 3.0, transpose(mask, {1, 0})})[0]}, 1e-14);
}

TEST_CASE("op masked_softmax: a fully masked row gives zeros, and zero gradients") {
  Tape tape;
  const Var x = tape.parameter("x", xt::xarray<float>{{1, 2}, {3, 3}});
  const Var mask = tape.parameter("mask", xt::xarray<bool>{{true, true}, {false, false}});
  const Var y = apply(row(), {x, 2.0, mask})[0];
  const Var dx = grad({y}, {x}, {tape.parameter("dy", xt::xarray<float>{{5, 6}, {1, 2}})})[0];
  CHECK(fast(y).to<float>() == xt::xarray<float>{{0, 0}, {0.5f, 0.5f}});
  CHECK(fast(dx).to<float>() == xt::xarray<float>{{0, 0}, {-0.125f, 0.125f}});
}

TEST_CASE("op masked_softmax: gradients, with and without one for the divisor") {
  const auto masked = [](const Var& x, const Operand& divisor) {
    const Var mask = x.tape().constant(mask_of({3, 4}, 3));
    return apply(row(), {x, divisor, mask});
  };
  check_gradients([&](const Vars& v) { return masked(v[0], 1.7); }, {normal_array({2, 3, 4}, 1)});
  check_gradients([&](const Vars& v) { return masked(v[0], v[1]); },
                  {normal_array({2, 3, 4}, 1), xt::xarray<double>(1.7)});
}

TEST_CASE("op masked_softmax_grad: gradients of its own, each input by itself") {
  check_gradients(
      [](const Vars& v) {
        return apply(builtin_ops().at("masked_softmax_grad"), {v[0], v[1], v[2]});
      },
      {normal_array({3, 4}, 1), normal_array({3, 4}, 2), xt::xarray<double>(1.7)});
}

TEST_CASE("op masked_softmax: mistakes") {
  Tape tape;
  const Var x = tape.input("x", {2, 3});
  const Var mask = tape.input("mask", {4, 2, 3}, Dtype::boolean);
  CHECK_THROWS_WITH_AS(apply(row(), {x, 2.0, mask}),
                       "masked_softmax: a mask of shape (4, 2, 3) does not broadcast to (2, 3), the shape of x",
                       ShapeError);
  CHECK_THROWS_WITH_AS(apply(row(), {x, x, tape.input("m", {3}, Dtype::boolean)}),
                       "masked_softmax: 'divisor' of shape (2, 3) should be (), a single number", ShapeError);
}
