// Parts applied along an axis by `scan` in a definition.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "definitions.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;
using xtape::test::error_of;
using xtape::test::same;
using Array2 = xt::xarray<double>;

namespace {
/// A recurrence of width 3 over x [b, t, 2], with function `f` of the given lines.
std::string recurrent(const std::vector<std::string>& lines, const std::string& result) {
  std::string list;
  for (const std::string& line : lines) list += (list.empty() ? "\"" : ", \"") + line + "\"";
  return R"json({
    "xtape": 2,
    "name": "recurrent",
    "hyper": {"width": 3},
    "blocks": {
      "simple": {
        "weights": {
          "in": {"shape": [2, "width"], "init": "normal", "std": 0.5},
          "across": {"shape": ["width", "width"], "init": "normal", "std": 0.5}
        },
        "inputs": ["x", "h"],
        "do": ["h = tanh(matmul(x, in) + matmul(h, across))"],
        "result": "h, h"
      },
      "two": {
        "weights": {"rate": {"shape": ["width"], "init": "uniform"}},
        "inputs": ["x", "y", "a", "c"],
        "do": ["a = a * rate + sum(x, axis=1, keepdims=true)", "c = c + a * y"],
        "result": "a - c, a, c"
      },
      "looks": {
        "inputs": ["x", "h", "keys", "factor"],
        "do": ["h = h + factor * sum(keys * h[:, none], axis=1)"],
        "result": "h, h"
      },
      "wide": {"inputs": ["x", "h"], "result": "x, concat(h, x, axis=1)"}
    },
    "model": {
      "modules": {
        "cell": {"block": "simple"},
        "cells": {"block": "simple", "repeat": 2},
        "pair": {"block": "two"},
        "looker": {"block": "looks"},
        "grows": {"block": "wide"}
      },
      "functions": {
        "all": {"inputs": {"x": "float [b, t, 2]", "y": "float [b, t, width]", "h": "float [b, width]"},
                "result": "cell(x[:, 0], h)[0], cells[0](x[:, 0], h)[0], cells[1](x[:, 0], h)[0], pair(x[:, 0], h, h, h)[0], looker(x, h, y, 1)[0], grows(h, h)[0]"},
        "f": {"inputs": {"x": "float [b, t, 2]", "y": "float [b, t, width]", "h": "float [b, width]"},
              "do": [)json" +
         list + R"json(], "result": ")json" + result + R"json("}
      }
    }
  })json";
}

Array2 filled(const std::vector<std::size_t>& shape, double scale) {
  Array2 array = Array2::from_shape(shape);
  for (std::size_t i = 0; i < array.size(); ++i) array.flat(i) = std::sin(scale * static_cast<double>(i + 1));
  return array;
}
const Array2 x = filled({2, 4, 2}, 0.7), y = filled({2, 4, 3}, 1.3), h = filled({2, 3}, 2.1);

std::vector<Array2> f(const std::vector<std::string>& lines, const std::string& result) {
  const Model model = Model::parse(recurrent(lines, result), test::in_float64());
  return test::play(model, "f", {{"b", 2}, {"t", 4}}, {x, y, h}, Mode::train);
}

std::string error(const std::string& line) {
  return error_of([&] { f({line}, "out"); });
}
}  // namespace

TEST_CASE("scan in a definition is the module at every step") {
  const std::vector<Array2> scanned = f({"ys, last = scan(cell, x, init=h)"}, "ys, last");
  const std::vector<Array2> steps =
      f({"a = cell(x[:, 0], h)[0]", "c = cell(x[:, 1], a)[0]", "d = cell(x[:, 2], c)[0]", "e = cell(x[:, 3], d)[0]"},
        "stack(a, c, d, e, axis=1), e");
  CHECK(same(scanned[0], steps[0]));
  CHECK(same(scanned[1], steps[1]));
}

TEST_CASE("scan in a definition: the gradients of the weights of its module") {
  const auto gradients = [](const std::vector<std::string>& lines, const std::string& result) {
    Model model = Model::parse(recurrent(lines, result), test::in_float64());
    Tape tape(Mode::train);
    const NamedVars inputs = model.inputs(tape, "f", {{"b", 2}, {"t", 3}});
    const Var loss = sum(square(model.record(tape, "f", inputs)[0].value));
    Vars weights;
    for (const char* name : {"cell.in", "cell.across"}) weights.push_back(model.weights(tape).at(name));
    const Vars found = grad(loss, weights);
    Player player(tape, found);
    const Array2 shorter = filled({2, 3, 2}, 0.7), beside = filled({2, 3, 3}, 1.3);
    player.play({{inputs[0].value, shorter}, {inputs[1].value, beside}, {inputs[2].value, h}});
    return std::vector<Array2>{player.value<double>(found[0]), player.value<double>(found[1])};
  };
  const std::vector<Array2> scanned = gradients({"ys, last = scan(cell, x, init=h)"}, "ys");
  const std::vector<Array2> steps = gradients(
      {"a = cell(x[:, 0], h)[0]", "c = cell(x[:, 1], a)[0]", "d = cell(x[:, 2], c)[0]"}, "stack(a, c, d, axis=1)");
  for (std::size_t i = 0; i < 2; ++i) CHECK(same(scanned[i], steps[i]));
}

TEST_CASE("scan in a definition: segments that the gradient computes again") {
  const std::vector<std::string> names = {"2", "(3, 2)", "9", "none"};
  const std::vector<Array2> plain = f({"ys, last = scan(cell, x, init=h)"}, "ys, last");
  std::vector<std::size_t> scans;
  for (const std::string& every : names) {
    CAPTURE(every);
    const std::string line = "ys, last = scan(cell, x, init=h, checkpoint_every=" + every + ")";
    const std::vector<Array2> found = f({line}, "ys, last");
    for (std::size_t i = 0; i < 2; ++i) CHECK(same(found[i], plain[i]));
    const Model model = Model::parse(recurrent({line}, "ys, last"), test::in_float64());
    Tape tape(Mode::train);
    model.record(tape, "f", model.inputs(tape, "f", {{"b", 2}, {"t", 4}}));
    scans.push_back(0);
    for (std::size_t i = 0; i < tape.size(); ++i) {
      const Node& node = tape.node(i);
      scans.back() += node.op->name == "scan" && node.body->node(node.body->size() - 1).op->name == "checkpoint";
    }
  }
  CHECK(scans == std::vector<std::size_t>{1, 1, 0, 0});
}

TEST_CASE("scan in a definition: several inputs and states, in reverse, with a mask") {
  const std::vector<Array2> scanned =
      f({"ys, a, c = scan(pair, x, y, init=(h, 2 * h), axis=1, reverse=true, valid=y[..., 0] > 0.2)"}, "ys, a, c");
  const std::vector<Array2> turned =
      f({"ys, a, c = scan(pair, (flip(x, 1), flip(y, 1)), init=(h, 2 * h), valid=flip(y[..., 0] > 0.2, 1))"},
        "flip(ys, 1), a, c");
  for (std::size_t i = 0; i < 3; ++i) CHECK(same(scanned[i], turned[i]));
  for (std::size_t row = 0; row < 2; ++row)
    for (std::size_t step = 0; step < 4; ++step) CHECK((scanned[0](row, step, 0) != 0) == (y(row, step, 0) > 0.2));
}

TEST_CASE("scan in a definition: one repeat of a part, and no state at all") {
  const std::vector<Array2> chosen = f({"ys, last = scan(cells[1], x, init=h)"}, "ys[:, 0], cells[1](x[:, 0], h)[0]");
  CHECK(same(chosen[0], chosen[1]));
  const std::vector<Array2> stateless = f({"a, c = scan(grows, y, y)"}, "a, c");
  CHECK(same(stateless[0], y));
  CHECK(stateless[1].shape() == Array2::shape_type{2, 4, 6});
}

TEST_CASE("scan in a definition: what every step is given as it is") {
  const std::vector<Array2> scanned = f({"ys, last = scan(looker, x, init=h, non_sequences=(y, 0.5))"}, "ys, last");
  const std::vector<Array2> steps = f({"a = looker(x[:, 0], h, y, 0.5)[0]", "c = looker(x[:, 1], a, y, 0.5)[0]",
                                       "d = looker(x[:, 2], c, y, 0.5)[0]", "e = looker(x[:, 3], d, y, 0.5)[0]"},
                                      "stack(a, c, d, e, axis=1), e");
  for (std::size_t i = 0; i < 2; ++i) CHECK(same(scanned[i], steps[i]));
}

TEST_CASE("scan in a definition: what is wrong is said where it stands") {
  CHECK(error("out = scan(cell, x, init=h, checkpoint_every=0)").find("at least 1, got 0") != std::string::npos);
  CHECK(error("out = scan(cell, x, init=h, checkpoint_every=true)")
            .find("scan: 'checkpoint_every' must be an integer or a tuple of integers, not") != std::string::npos);
  CHECK(error("out = scan(cell, x, init=h, axs=1)").find("scan has no 'axs'; did you mean 'axis'?") !=
        std::string::npos);
  CHECK(error("out = scan(x, x, init=h)").find("its first argument must be a module or a function") !=
        std::string::npos);
  CHECK(error("out = scan(cells, x, init=h)").find("choose a repeat, cells[0]") != std::string::npos);
  CHECK(error("out = scan(cell, 3, init=h)").find("a sequence must be an array or a tuple of arrays, not 3") !=
        std::string::npos);
  CHECK(
      error("out = scan(cell, x, init=(h, 0.5))").find("'init' must be an array or a tuple of arrays, not (float64") !=
      std::string::npos);
  CHECK(error("out = scan(cell, x, init=0)").find("'init' must be an array") != std::string::npos);
  CHECK(error("out = scan(cell, x, init=h, reverse=1)").find("'reverse' must be a flag, not 1") != std::string::npos);
  CHECK(error("out = scan(grows, y, init=h)").find("next state 0 must be float64 (2, 3) like the state") !=
        std::string::npos);
  CHECK(error("out = scan(cel, x, init=h)").find("unknown name 'cel'; did you mean 'cell'?") != std::string::npos);
  const std::string text = error("out = scan(cell, x)");
  CHECK(text.find("function 'f'") != std::string::npos);
  CHECK(text.find("'h' is missing") != std::string::npos);
}
