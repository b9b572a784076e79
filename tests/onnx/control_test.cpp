// Nodes of ONNX files with graphs inside.
#include <doctest/doctest.h>

#include "written.hpp"

using namespace xtape;

TEST_CASE("graphs inside nodes see the values outside, and their own names hide those") {
  const Scratch scratch;
  const auto branch = [](const std::string& op) {
    return Written{
        13, {node(op, {"x", "w"}, {"h"}), node("Neg", {"h"}, {"r"})}, {floats("w", {1}, {2})}, {}, {value("r")}};
  };
  const std::string choose =
      node("If", {"c"}, {"y"}, {attribute("then_branch", branch("Add")), attribute("else_branch", branch("Mul"))});
  const auto model = [&](std::int64_t condition) {
    return scratch.open({13, {node("Exp", {"x"}, {"h"}), choose}, {integers("c", {condition})}});
  };
  CHECK(played<float>(model(1), {3}) == xt::xarray<float>{-5});
  CHECK(played<float>(model(0), {3}) == xt::xarray<float>{-6});
  CHECK(model(0).weights().empty());  // only floats outside are weights
  Tape tape;
  CHECK_THROWS_WITH_AS(
      scratch
          .open({13,
                 {node("If", {"x"}, {"y"},
                       {attribute("then_branch", branch("Add")), attribute("else_branch", branch("Add"))})}})
          .record(tape, {tape.input("x", {1})}),
      "y (model.onnx, If): If: input 0 ('x') must be known while recording, but depends on the values "
      "of the model's inputs",
      Error);
  CHECK(scratch.error(Written{13, {node("If", {"c"}, {"y"}, {attribute("then_branch", branch("Foo"))})}}.bytes()) ==
        "xtape lacks the operators of these nodes: Foo (node 'h')");
  Written nested{13, {node("Exp", {"x"}, {"y"})}};
  for (int i = 0; i < 40; ++i) nested.nodes = {node("If", {"c"}, {"y"}, {attribute("then_branch", Written(nested))})};
  CHECK(scratch.error(nested.bytes()) == "graphs are nested more than 32 deep");
}

TEST_CASE("loops are recorded as often as they are known to run") {
  const Scratch scratch;
  // (step, condition, state) to (step < 2, state * 3, state)
  const Written body{13,
                     {node("Less", {"step", "two"}, {"on"}), node("Mul", {"state", "three"}, {"next"}),
                      node("Identity", {"state"}, {"out"})},
                     {integers("two", {2}), floats("three", {}, {3})},
                     {value("step"), value("condition"), value("state")},
                     {value("on"), value("next"), value("out")}};
  const auto model = [&](std::int64_t steps) {
    return scratch.open(
        {13, {node("Loop", {"n", "", "x"}, {"last", "y"}, {attribute("body", body)})}, {integers("n", {steps})}});
  };
  const auto outputs = [&](std::int64_t steps) {
    const xt::xarray<float> y = played<float>(model(steps), {5});
    return std::vector<float>(y.begin(), y.end());
  };
  CHECK(outputs(2) == std::vector<float>{5, 15});
  CHECK(outputs(9) == std::vector<float>{5, 15, 45});  // the condition of step 2 ends it
  CHECK(outputs(0).empty());
}
