#include <doctest/doctest.h>

#include "expansion.hpp"
#include "golden.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
/// layer_norm of one to three vars.
Var norm_of(const Vars& v, double epsilon = 1e-5) {
  return v.size() == 1   ? layer_norm(v[0], epsilon)
         : v.size() == 2 ? layer_norm(v[0], v[1], epsilon)
                         : layer_norm(v[0], v[1], v[2], epsilon);
}
}  // namespace

TEST_CASE("op layer_norm: gives PyTorch's values for any epsilon, with and without weight and bias") {
  check_golden("ops_norms.json", "layer_norm", 1e-11, 5e-5);
}

TEST_CASE("op layer_norm: the kernels of the op and its gradient agree with the expansions") {
  for (const std::vector<std::size_t>& shape : {std::vector<std::size_t>{9}, {40, 33}, {2, 3, 64}, {0, 4}, {3, 1}})
    for (std::size_t count : {1u, 2u, 3u}) {
      Tape tape;
      const std::vector<std::size_t> places = {shape.back()};
      Vars wide, narrow;
      for (std::size_t i = 0; i < count; ++i) {
        const xt::xarray<double> values = normal_array(i == 0 ? shape : places, static_cast<unsigned>(i), 1);
        wide.push_back(tape.parameter("wide" + std::to_string(i), values));
        narrow.push_back(tape.parameter("narrow" + std::to_string(i), single(values)));
      }
      const xt::xarray<double> dy = normal_array(shape, 5);
      const auto all = [&](const Vars& inputs, const Var& cotangent) {
        const Var y = norm_of(inputs, 1e-3);
        Vars outputs = grad({y}, inputs, {cotangent});
        outputs.push_back(y);
        return outputs;
      };
      check_expansion(all(wide, tape.parameter("dy wide", dy)), 1e-12);
      check_expansion(all(narrow, tape.parameter("dy narrow", single(dy))), 5e-5);
    }
}

TEST_CASE("op layer_norm: gradients; second derivatives also through mean and rstd") {
  for (std::size_t count : {1u, 2u, 3u}) {
    std::vector<xt::xarray<double>> points = {normal_array({3, 5}, 1), normal_array({5}, 2, 1), normal_array({5}, 3)};
    points.resize(count);
    check_gradients([](const Vars& v) { return Vars{norm_of(v, 0.1)}; }, points);
  }
}

TEST_CASE("op layer_norm_grad: its own gradients, for each input separately") {
  const Op& row = builtin_ops().at("layer_norm_grad");
  const std::vector<xt::xarray<double>> points = {normal_array({3, 5}, 1), normal_array({3, 5}, 2),
                                                  normal_array({3}, 3), normal_array({3}, 4, 2), normal_array({5}, 5)};
  check_gradients([&](const Vars& v) { return apply(row, {v[0], v[1], v[2], v[3], v[4]}, {{"bias", true}}); }, points);
  check_gradients(
      [&](const Vars& v) {
        return apply(row, {v[0], v[1], v[2], v[3]});
      },
      {points[0], points[1], points[2], points[3]});
}

TEST_CASE("op layer_norm: mistakes") {
  Tape tape;
  const Var x = tape.input("x", {2, 3});
  CHECK_THROWS_WITH_AS(
      layer_norm(x, tape.input("w", {2})),
      "layer_norm: 'weight' of shape (2,) must have shape (3,), one number for each index of the last axis of x",
      ShapeError);
  CHECK_THROWS_WITH_AS(layer_norm(tape.input("s", {})),
                       "layer_norm: needs at least one axis, received an array of shape ()", ShapeError);
  CHECK_THROWS_AS(layer_norm(x, tape.input("w64", {3}, Dtype::float64)), DtypeError);
}
