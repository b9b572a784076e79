// Networks that PyTorch exported (tests/golden/scripts/onnx_models.py and onnx_exports.py).
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

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
  explicit Exported(const std::string& name) : Exported(source_root() + "/tests/golden/data/onnx", name) {}
  Exported(const std::string& folder, const std::string& name)
      : place(folder + "/" + name), model(open_onnx(place + ".onnx")), arrays(load_arrays(place + ".safetensors")) {}
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

namespace {
/// The largest absolute element.
double largest(const Array& array) {
  double most = 0;
  for (std::int64_t i = 0; i < array.count(); ++i)
    most = std::max(most, std::abs(static_cast<double>(array.as<float>()[i])));
  return most;
}

/// Plays an export with its inputs. Its outputs are ONNX Runtime's to 1e-5 of the largest; the gradients of the sum of
/// outputs times cotangents are PyTorch's to 1e-4 of the largest.
void check_export(const Exported& exported) {
  const Store& arrays = exported.arrays;
  Tape tape;
  Vars inputs;
  std::vector<Feed> feeds;
  for (std::size_t i = 0; i < exported.model.inputs().size(); ++i) {
    const Array& array = arrays.at("input." + std::to_string(i));
    inputs.push_back(tape.input("input " + std::to_string(i), array.shape(), array.dtype()));
    feeds.emplace_back(inputs.back(), array);
  }
  const Vars outputs = exported.model.record(tape, inputs);
  Var loss = tape.constant(0, Dtype::float32);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    loss = loss + sum(outputs[i] * tape.constant(arrays.at("cotangent." + std::to_string(i))));
  Vars of;
  std::vector<std::string> names;
  const NamedVars weights = exported.model.weights(tape);
  double scale = 0;  // of all gradients, as some are nothing but rounding
  for (const Store::Entry& each : arrays) {
    const bool input = each.name.rfind("gradient.", 0) == 0;
    if (!input && each.name.rfind("weight.", 0) != 0) continue;
    of.push_back(input ? inputs.at(std::stoul(each.name.substr(9))) : weights.at(each.name.substr(7)));
    names.push_back(each.name);
    scale = std::max(scale, largest(each.value));
  }
  REQUIRE(!of.empty());
  const Vars gradients = grad(loss, of);
  Vars wanted = outputs;
  wanted.insert(wanted.end(), gradients.begin(), gradients.end());
  Player player(tape, wanted);
  player.play(feeds);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    CAPTURE(i);
    const Array& expected = arrays.at("output." + std::to_string(i));
    CHECK(distance(Array(player.view(outputs[i])), expected) <= 1e-5 * largest(expected));
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    CAPTURE(names[i]);
    const Array& expected = arrays.at(names[i]);
    CHECK(distance(Array(player.view(gradients[i])), expected) <= 1e-4 * std::max(largest(expected), 0.01 * scale));
  }
}

/// The exports of a folder, in alphabetical order.
std::vector<std::string> exports_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(folder))
    if (file.path().extension() == ".safetensors") names.push_back(file.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}
}  // namespace

TEST_CASE("exports of both exporters and several versions have ONNX Runtime's outputs and PyTorch's gradients") {
  const char* other = std::getenv("XTAPE_ONNX_EXPORTS");  // all that the script can make
  const std::string folder = other != nullptr ? other : source_root() + "/tests/golden/data/onnx/exports";
  const std::vector<std::string> names = exports_in(folder);
  CHECK(names.size() >= 8);
  for (const std::string& name : names) {
    CAPTURE(name);
    try {
      check_export(Exported(folder, name));
    } catch (const Error& error) {
      FAIL_CHECK(std::string(error.what()));
    }
  }
}
