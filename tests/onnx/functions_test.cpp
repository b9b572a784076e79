// Functions of a model: calls, attributes of calls, functions inside functions, and those that cannot be recorded.
#include <doctest/doctest.h>

#include "written.hpp"
#include "xtape/ops.hpp"

using namespace xtape;

namespace {
struct Function {
  std::string name;
  std::vector<std::string> inputs, outputs, nodes;
  std::vector<std::string> defaults = {};
  std::int64_t opset = 13;
};

std::string bytes_of(const Function& function) {
  return message([&](pbf_writer& to) {
    to.add_string(1, function.name);
    for (const std::string& each : function.inputs) to.add_string(4, each);
    for (const std::string& each : function.outputs) to.add_string(5, each);
    for (const std::string& each : function.nodes) to.add_message(7, each);
    to.add_message(9, message([&](pbf_writer& version) { version.add_int64(2, function.opset); }));
    to.add_string(10, "own");
    for (const std::string& each : function.defaults) to.add_message(11, each);
  });
}

std::string with(const Written& written, const std::vector<Function>& functions) {
  return written.bytes() + message([&](pbf_writer& to) {
           for (const Function& each : functions) to.add_message(25, bytes_of(each));
         });
}

/// A call of a function.
std::string call(const std::string& function, const std::vector<std::string>& inputs,
                 const std::vector<std::string>& outputs, const std::vector<std::string>& attributes = {},
                 const std::string& name = "") {
  return node(function, inputs, outputs, attributes, name) + message([](pbf_writer& to) { to.add_string(7, "own"); });
}

/// An attribute that stands for one of the call, a float.
std::string reference(const std::string& name, const std::string& to_name) {
  return message([&](pbf_writer& to) {
    to.add_string(1, name);
    to.add_int64(20, 1);
    to.add_string(21, to_name);
  });
}

std::string real(const std::string& name, float number) {
  return message([&](pbf_writer& to) {
    to.add_string(1, name);
    to.add_float(2, number);
    to.add_int64(20, 1);
  });
}

/// y = b + leaky(a), with `slope` of the call, else 0.5, for negative numbers.
const Function leaky = {
    "leaky_sum",
    {"a", "b"},
    {"y"},
    {node("LeakyRelu", {"a"}, {"h"}, {reference("alpha", "slope")}), node("Add", {"h", "b"}, {"y"})},
    {real("slope", 0.5F)}};
}  // namespace

TEST_CASE("calls of functions record their nodes, with the attributes of the call") {
  const Scratch scratch;
  const xt::xarray<float> x = {-4, 6};
  // h is a value of the model and another one inside the function.
  const Written written{13,
                        {node("Neg", {"x"}, {"h"}), call("leaky_sum", {"h", "x"}, {"first"}, {real("slope", 0.25F)}),
                         call("leaky_sum", {"h", "x"}, {"second"}), node("Sub", {"first", "second"}, {"y"})}};
  // h = (4, -6): first (4 - 4, -1.5 + 6), second (4 - 4, -3 + 6)
  CHECK(played<float>(scratch.open(with(written, {leaky})), x) == xt::xarray<float>{0, 1.5});
}

TEST_CASE("functions call functions, and their nodes have the names of the calls as sites") {
  const Scratch scratch;
  const Function outer = {"outer", {"x"}, {"y"}, {call("leaky_sum", {"x", "x"}, {"y"}, {}, "inner")}};
  const OnnxModel model = scratch.open(with({13, {call("outer", {"x"}, {"y"}, {}, "first")}}, {outer, leaky}));
  CHECK(played<float>(model, {-4, 6}) == xt::xarray<float>{-6, 12});
  Tape tape;
  const Var y = model.record(tape, {tape.input("x", {2})})[0];
  CHECK(to_string(y.node().site) == "first/inner/y (model.onnx, Add)");
}

TEST_CASE("the graph of a node inside a function refers to the attributes of the call") {
  const Scratch scratch;
  const auto branch = [](const std::vector<std::string>& attributes) {
    return Written{13, {node("LeakyRelu", {"x"}, {"r"}, attributes)}, {}, {}, {value("r")}};
  };
  const Function choose = {
      "choose",
      {"x", "c"},
      {"y"},
      {node("If", {"c"}, {"y"},
            {attribute("then_branch", branch({reference("alpha", "slope")})), attribute("else_branch", branch({}))})}};
  const auto result = [&](std::int64_t condition) {
    return played<float>(
        scratch.open(with(
            {13, {call("choose", {"x", "c"}, {"y"}, {real("slope", 0.25F)})}, {integers("c", {condition})}}, {choose})),
        {-100});
  };
  CHECK(result(1) == xt::xarray<float>{-25});
  CHECK(result(0)(0) == doctest::Approx(-1));
}

TEST_CASE("functions that cannot be recorded are errors of opening") {
  const Scratch scratch;
  const Function self = {"self", {"x"}, {"y"}, {call("self", {"x"}, {"y"})}};
  const Written calls{13, {call("self", {"x"}, {"y"})}};
  CHECK(scratch.error(with(calls, {self})) == "function 'self' calls itself");
  CHECK(scratch.error(with(calls, {self, self})) == "there are two functions 'own.self'");
  CHECK(scratch.error(calls.bytes()) == "xtape lacks the operators of these nodes: own.self (node 'y')");
  CHECK(scratch.error(with(calls, {{"self", {"x"}, {"y"}, {node("Foo", {"x"}, {"y"})}}})) ==
        "xtape lacks the operators of these nodes: Foo (node 'y')");
  CHECK(scratch.error(with(calls, {{"self", {"x"}, {"y"}, {node("Exp", {"x"}, {"y"})}, {}, 99}})) ==
        "function 'self' uses version 99 of ONNX's operators; xtape reads 1 to 23");
  // What nobody calls does not matter.
  CHECK(scratch.error(with({13, {node("Exp", {"x"}, {"y"})}}, {self})) == "");

  std::vector<Function> chain;
  for (int i = 0; i < 40; ++i)
    chain.push_back({"f" + std::to_string(i), {"x"}, {"y"}, {call("f" + std::to_string(i + 1), {"x"}, {"y"})}});
  chain.push_back({"f40", {"x"}, {"y"}, {node("Exp", {"x"}, {"y"})}});
  // In either order: the depth of a function that was seen before counts, too.
  const Written from_front{13, {call("f0", {"x"}, {"y"})}},
      from_back{13, {call("f20", {"x"}, {"h"}), call("f0", {"h"}, {"y"})}};
  for (const Written& each : {from_front, from_back})
    CHECK(scratch.error(with(each, chain)).find("functions call each other more than 32 deep") == 0);
}

TEST_CASE("an attribute that stands for one of a call is an error outside of functions") {
  const Scratch scratch;
  const OnnxModel model = scratch.open({13, {node("LeakyRelu", {"x"}, {"y"}, {reference("alpha", "slope")})}});
  Tape tape;
  CHECK_THROWS_WITH_AS(
      model.record(tape, {tape.input("x", {1})}),
      "y (model.onnx, LeakyRelu): LeakyRelu: attribute 'alpha' stands for 'slope' of a call, outside of functions",
      Error);
}

TEST_CASE("a call with more inputs than its function, or with an output that nothing gives, is an error") {
  const Scratch scratch;
  const auto error = [&](const std::string& each, const Function& function) {
    Tape tape;
    try {
      scratch.open(with({13, {each}}, {function})).record(tape, {tape.input("x", {1})});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const Function one = {"one", {"a"}, {"b"}, {node("Exp", {"a"}, {"c"})}};
  CHECK(error(call("one", {"x", "x"}, {"y"}), one) ==
        "y (model.onnx, one): one: the function has 1 inputs and 1 outputs, not 2 and 1");
  CHECK(error(call("one", {"x"}, {"y"}), one) == "y (model.onnx, one): there is no value 'b'");
  // The values of the model are not those of the function.
  CHECK(error(call("one", {"x"}, {"y"}), {"one", {"a"}, {"b"}, {node("Exp", {"x"}, {"b"})}}) ==
        "y/b (model.onnx, Exp): Exp: there is no value 'x' at this node");
}

TEST_CASE("functions that multiply end with an error") {
  const Scratch scratch;
  std::vector<Function> twice;
  for (int i = 0; i < 30; ++i) {
    const std::string next = "f" + std::to_string(i + 1);
    twice.push_back({"f" + std::to_string(i), {"x"}, {"y"}, {call(next, {"x"}, {"h"}), call(next, {"h"}, {"y"})}});
  }
  twice.push_back({"f30", {"x"}, {"y"}, {node("Identity", {"x"}, {"y"})}});
  const OnnxModel model = scratch.open(with({13, {call("f0", {"x"}, {"y"})}}, twice));
  Tape tape;
  const Var x = tape.input("x", {1});
  try {
    model.record(tape, {x});
    FAIL("recorded");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("the model records more than") != std::string::npos);
  }
  CHECK(tape.size() == 1);
}

TEST_CASE("open sizes keep their names, and those of one name are equal") {
  const Scratch scratch;
  const OnnxModel model = scratch.open({13,
                                        {node("Concat", {"x", "z"}, {"y"}, {attribute("axis", 1)})},
                                        {},
                                        {value("x", Integers{-1, 3}), value("z", Integers{-1, 2})}});
  CHECK(model.inputs()[0].names == std::vector<std::string>{"n", ""});
  Tape tape;
  const Var x = tape.input("x", {4, 3}), z = tape.input("z", {4, 2}), other = tape.input("other", {5, 2});
  CHECK(model.record(tape, {x, z})[0].shape() == Shape{4, 5});
  CHECK_THROWS_WITH_AS(model.record(tape, {x, other}),
                       "model.onnx: input 'z' has 5 for the size 'n', but input 'x' has 4", ShapeError);
}

TEST_CASE("a model is cut at any value") {
  const Scratch scratch;
  const OnnxModel model =
      scratch.open({13, {node("Exp", {"x"}, {"h"}), node("Mul", {"h", "w"}, {"y"})}, {floats("w", {1}, {3})}});
  Tape tape;
  const Var x = tape.input("x", {1});
  const Vars cut = model.record(tape, {x}, {"h", "y", "w", "x"});
  REQUIRE(cut.size() == 4);
  CHECK(cut[3].id() == x.id());
  Player player(tape, {cut[0], cut[1], cut[2]});
  player.play({{x, xt::xarray<float>{0}}});
  CHECK(player.scalar(cut[0]) == 1);
  CHECK(player.scalar(cut[1]) == 3);
  CHECK(player.scalar(cut[2]) == 3);
  const std::size_t size = tape.size();
  CHECK_THROWS_WITH_AS(model.record(tape, {x}, {"h", "z"}), "model.onnx: there is no value 'z'", Error);
  CHECK(tape.size() == size);
}
