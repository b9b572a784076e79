#include <doctest/doctest.h>

#include "expansion.hpp"
#include "xtape/ops/convolution.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

TEST_CASE("op batch_norm_training: the kernels of the op and its gradient agree with the expansions") {
  for (const std::vector<std::size_t>& shape : {std::vector<std::size_t>{7, 5},
                                                {3, 70, 2},
                                                {2, 3, 40},
                                                {4, 5, 3, 6},
                                                {33, 3, 7, 9},
                                                {5, 0, 4},
                                                {6, 3, 2, 1100}})
    for (std::size_t count : {1u, 2u, 3u}) {
      Tape tape;
      Vars wide, narrow;
      for (std::size_t i = 0; i < count; ++i) {
        const xt::xarray<double> values =
            normal_array(i == 0 ? shape : std::vector<std::size_t>{shape[1]}, static_cast<unsigned>(i), 1);
        wide.push_back(tape.parameter("wide" + std::to_string(i), values));
        narrow.push_back(tape.parameter("narrow" + std::to_string(i), single(values)));
      }
      const xt::xarray<double> dy = normal_array(shape, 5);
      const auto all = [&](const Vars& v, const Var& cotangent) {
        const BatchNorm norm = batch_norm_training(v[0], count > 1 ? v[1] : Var(), count > 2 ? v[2] : Var(), 1e-3);
        Vars outputs = grad({norm.y}, v, {cotangent});
        for (const Var& each : {norm.y, norm.mean, norm.variance}) outputs.push_back(each);
        return outputs;
      };
      check_expansion(all(wide, tape.parameter("dy wide", dy)), 1e-11);
      check_expansion(all(narrow, tape.parameter("dy narrow", single(dy))), 2e-4);
    }
}

TEST_CASE("op batch_norm_grad: its own gradients, for each input separately") {
  const Op& op = builtin_ops().at("batch_norm_grad");
  const std::vector<xt::xarray<double>> points = {normal_array({3, 2, 2}, 1), normal_array({3, 2, 2}, 2),
                                                  normal_array({2}, 3), normal_array({2}, 4, 2), normal_array({2}, 5)};
  check_gradients([&](const Vars& v) { return apply(op, {v[0], v[1], v[2], v[3], v[4]}, {{"bias", true}}); }, points);
  check_gradients(
      [&](const Vars& v) {
        return apply(op, {v[0], v[1], v[2], v[3]});
      },
      {points[0], points[1], points[2], points[3]});
}
