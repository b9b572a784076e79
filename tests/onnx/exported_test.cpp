// Networks that PyTorch exported (tests/golden/onnx_models.py).
#include <doctest/doctest.h>

#include <cmath>

#include "source_root.hpp"
#include "xtape/grad.hpp"
#include "xtape/onnx.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"
#include "xtape/safetensors.hpp"

using namespace xtape;

namespace {
/// The largest difference of two arrays; infinite for other shapes.
double distance(const Array& is, const Array& should) {
  if (is.shape() != should.shape()) return INFINITY;
  double most = 0;
  for (std::int64_t i = 0; i < is.count(); ++i)
    most = std::max(most, std::abs(static_cast<double>(is.as<float>()[i]) - should.as<float>()[i]));
  return most;
}

struct Exported {
  explicit Exported(const std::string& name)
      : place(source_root() + "/tests/golden/onnx/" + name),
        model(open_onnx(place + ".onnx")),
        arrays(load_arrays(place + ".safetensors")) {}
  std::string place;
  OnnxModel model;
  Store arrays;
};
}  // namespace

TEST_CASE("networks that PyTorch exported have PyTorch's results and gradients") {
  for (const std::string name : {"encoder", "convolutional", "causal"}) {
    CAPTURE(name);
    const Exported exported(name);
    Tape tape;
    const Var x = tape.input("x", exported.arrays.at("x").shape());
    const Var y = exported.model.record(tape, {x})[0];
    const Var x_grad = grad(sum(square(y)), {x})[0];
    Player player(tape, {y, x_grad});
    player.play({{x, exported.arrays.at("x")}});
    CHECK(distance(Array(player.view(y)), exported.arrays.at("y")) < 1e-6);
    CHECK(distance(Array(player.view(x_grad)), exported.arrays.at("x_grad")) < 1e-5);
  }
}

TEST_CASE("an exported network plays other sizes, and rows do not depend on each other") {
  const Exported exported("causal");
  const Array& x = exported.arrays.at("x");
  Tape tape;
  const Var one = tape.input("one", {1, 5, 4}), longer = tape.input("longer", {1, 7, 4});
  const Var y = exported.model.record(tape, {one})[0];
  CHECK(exported.model.record(tape, {longer})[0].shape() == Shape{1, 6, 16});
  Array row(Dtype::float32, {1, 5, 4}), expected(Dtype::float32, {1, 4, 16});
  std::copy_n(x.as<float>() + 20, 20, row.as<float>());
  std::copy_n(exported.arrays.at("y").as<float>() + 64, 64, expected.as<float>());
  Player player(tape, {y});
  player.play({{one, row}});
  CHECK(distance(Array(player.view(y)), expected) < 1e-6);
}
