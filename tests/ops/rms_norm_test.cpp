#include <doctest/doctest.h>

#include "expansion.hpp"
#include "golden.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
Var rms_norm_of(const Vars& v, double epsilon) {
  return v.size() == 1 ? rms_norm(v[0], epsilon) : rms_norm(v[0], v[1], epsilon);
}
}  // namespace

TEST_CASE("op rms_norm: gives PyTorch's values for any epsilon, with and without weight") {
  check_golden("ops_norms.json", "rms_norm", 1e-11, 5e-5);
}

TEST_CASE("op rms_norm: the kernels of the op and its gradient agree with the expansions") {
  for (const std::vector<std::size_t>& shape : {std::vector<std::size_t>{9}, {40, 33}, {2, 3, 64}, {0, 4}, {3, 1}})
    for (bool weighted : {false, true}) {
      Tape tape;
      Vars wide = {tape.parameter("x", normal_array(shape, 1, 1))};
      Vars narrow = {tape.parameter("x narrow", single(normal_array(shape, 1, 1)))};
      if (weighted) {
        wide.push_back(tape.parameter("w", normal_array({shape.back()}, 2)));
        narrow.push_back(tape.parameter("w narrow", single(normal_array({shape.back()}, 2))));
      }
      const xt::xarray<double> dy = normal_array(shape, 5);
      const auto all = [&](const Vars& inputs, const Var& cotangent) {
        const Var y = rms_norm_of(inputs, 1e-3);
        Vars outputs = grad({y}, inputs, {cotangent});
        outputs.push_back(y);
        return outputs;
      };
      check_expansion(all(wide, tape.parameter("dy wide", dy)), 1e-12);
      check_expansion(all(narrow, tape.parameter("dy narrow", single(dy))), 5e-5);
    }
}

TEST_CASE("op rms_norm: gradients; second derivatives also through rstd") {
  check_gradients([](const Vars& v) { return Vars{rms_norm_of(v, 0.1)}; }, {normal_array({3, 5}, 1)});
  check_gradients([](const Vars& v) { return Vars{rms_norm_of(v, 0.1)}; },
                  {normal_array({3, 5}, 1), normal_array({5}, 2)});
}

TEST_CASE("op rms_norm_grad: its own gradients, for each input separately") {
  const Op& row = builtin_ops().at("rms_norm_grad");
  const std::vector<xt::xarray<double>> points = {normal_array({3, 5}, 1), normal_array({3, 5}, 2),
                                                  normal_array({3}, 4, 2), normal_array({5}, 5)};
  check_gradients([&](const Vars& v) { return apply(row, {v[0], v[1], v[2], v[3]}, {}); }, points);
  check_gradients([&](const Vars& v) { return apply(row, {v[0], v[1], v[2]}); }, {points[0], points[1], points[2]});
}

TEST_CASE("op rms_norm: mistakes") {
  Tape tape;
  const Var x = tape.input("x", {2, 3});
  CHECK_THROWS_WITH_AS(
      rms_norm(x, tape.input("w", {1})),
      "rms_norm: 'weight' of shape (1,) must have shape (3,), one number for each index of the last axis of x",
      ShapeError);
}
