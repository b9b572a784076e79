// apply's handling of operands and attributes, and the op table.
#include <doctest/doctest.h>

#include "xtape/grad.hpp"
#include "xtape/gradcheck.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
/// y = scale * x: an op that is in no table, or in a table of the test's own.
Op scaling(const std::string& name) {
  Op op;
  op.name = name;
  op.doc = "scale * x.";
  op.inputs = {{"x", Accept::floating}, {"bias", Accept::floating, Arity::optional}};
  op.attributes = {{"scale", AttributeType::number, "The factor.", std::nullopt},
                   {"axes", AttributeType::integers, "Nothing.", std::vector<std::int64_t>{0}},
                   {"kind", AttributeType::dtype, "Nothing.", Dtype::float32},
                   {"name", AttributeType::text, "Nothing.", std::string("plain")},
                   {"flag", AttributeType::boolean, "Nothing.", false}};
  op.shape = [](const OpCall& call) { return std::vector<ValueType>{call.inputs[0]}; };
  op.expand = [](const ExpandCall& call) { return Vars{call.inputs[0] * call.number("scale")}; };
  return op;
}

const Op& scale_op() {
  static const Op entry = scaling("scale");
  return entry;
}

Dtype promoted(Dtype a, Dtype b, Caller caller = Caller::here()) {
  Tape tape;
  return add(Operand(tape.input("a", {2}, a), caller), tape.input("b", {2}, b)).dtype();
}
template <class Literal>
Dtype promoted(Dtype a, Literal literal) {
  Tape tape;
  return add(tape.input("a", {2}, a), literal).dtype();
}
}  // namespace

TEST_CASE("mixed operands promote: bool, int32, int64, float") {
  CHECK(promoted(Dtype::boolean, Dtype::int32) == Dtype::int32);
  CHECK(promoted(Dtype::int32, Dtype::int64) == Dtype::int64);
  CHECK(promoted(Dtype::int64, Dtype::float32) == Dtype::float32);
  CHECK(promoted(Dtype::float64, Dtype::int32) == Dtype::float64);
  CHECK(promoted(Dtype::float64, Dtype::boolean) == Dtype::float64);
  CHECK_THROWS_WITH_AS(promoted(Dtype::float32, Dtype::float64), "add: mixes float32 and float64: cast one of them",
                       DtypeError);
}

TEST_CASE("literals take the dtype of the vars that they are used with") {
  CHECK(promoted(Dtype::float64, 1) == Dtype::float64);
  CHECK(promoted(Dtype::float64, 0.5) == Dtype::float64);
  CHECK(promoted(Dtype::float32, 0.1) == Dtype::float32);
  CHECK(promoted(Dtype::int32, 3) == Dtype::int32);
  CHECK(promoted(Dtype::int64, true) == Dtype::int64);
  CHECK(promoted(Dtype::int64, 0.5) == Dtype::float32);
  CHECK(promoted(Dtype::boolean, 2) == Dtype::int64);
  Tape tape;
  const Var x = tape.input("x", {2}, Dtype::int32);
  CHECK(div(x, 2).dtype() == Dtype::float32);
  CHECK(sqrt(x).dtype() == Dtype::float32);
  CHECK((3 - x).dtype() == Dtype::int32);
}

TEST_CASE("a literal that does not fit its integer dtype is an error") {
  Tape tape;
  const Var x = tape.input("x", {2}, Dtype::int32);
  CHECK_THROWS_WITH_AS(x + 3000000000LL,
                       "add: the literal 3000000000 does not fit int32, which holds the integers from -2147483648 to "
                       "2147483647: use int64",
                       DtypeError);
  const Var y = tape.input("y", {2}, Dtype::int64);
  CHECK((y + (1LL << 60)).dtype() == Dtype::int64);
  CHECK((y + 3000000000LL).dtype() == Dtype::int64);
  CHECK((x + (-2147483647 - 1)).dtype() == Dtype::int32);
}

TEST_CASE("operands: their number and dtypes are checked") {
  Tape tape;
  const Var x = tape.input("x", {2});
  const Var n = tape.input("n", {2}, Dtype::int32);
  CHECK_THROWS_WITH_AS(apply(builtin_ops().at("add"), {x}), "add: takes (a, b), got 1 operand", Error);
  CHECK_THROWS_WITH_AS(apply(scale_op(), {x, x, x}, {{"scale", 2.0}}), "scale: takes (x, bias?), got 3 operands",
                       Error);
  CHECK_THROWS_WITH_AS(logical_and(n, n), "logical_and: 'a' must be a bool array, got int32 (2,)", DtypeError);
  CHECK_THROWS_WITH_AS(apply(builtin_ops().at("add"), {1.0, 2.0}),
                       "add: at least one operand must be a var; to record a call of literals, pass the tape",
                       HandleError);
  CHECK(apply(tape, builtin_ops().at("add"), {1.0, 2})[0].shape() == Shape{});
}

TEST_CASE("an op's own recording cannot mix dtypes, since a kernel reads operands as one dtype") {
  Tape tape;
  const Var narrow = tape.input("narrow", {2}, Dtype::int32), wide = tape.input("wide", {2}, Dtype::int64);
  const std::size_t size = tape.size();
  CHECK_THROWS_WITH_AS(record_call(tape, builtin_ops().at("add"), {narrow, wide}, {}),
                       "operands int32 (2,) and int64 (2,) must have one dtype", DtypeError);
  CHECK(tape.size() == size);
}

TEST_CASE("errors name shapes that do not fit") {
  Tape tape;
  const Var a = tape.input("a", {2, 3});
  const Var b = tape.input("b", {4});
  const Caller at = Caller::here();
  try {
    static_cast<void>(add(Operand(a, at), b));
    FAIL("no error");
  } catch (const ShapeError& error) {
    const std::string text = error.what();
    CHECK(text.find(to_string(at) + ": add: ") == 0);
    CHECK(text.find("(2, 3)") != std::string::npos);
    CHECK(text.find("(4") != std::string::npos);
  }
}

TEST_CASE("attributes are completed, converted and checked") {
  Tape tape;
  const Var x = tape.input("x", {2});
  const Node& node = apply(scale_op(), {x}, {{"scale", std::int64_t{3}}, {"axes", std::int64_t{1}}})[0].node();
  CHECK(node.attributes.get<double>("scale") == 3.0);
  CHECK(node.attributes.get<std::vector<std::int64_t>>("axes") == std::vector<std::int64_t>{1});
  CHECK(node.attributes.get<std::string>("name") == "plain");
  CHECK(apply(scale_op(), {x}, {{"scale", 1.0}, {"kind", std::string("int64")}})[0].node().attributes.get<Dtype>(
            "kind") == Dtype::int64);
  CHECK_THROWS_WITH_AS(apply(scale_op(), {x}), "scale: attribute 'scale' must be given: The factor.", Error);
  CHECK_THROWS_WITH_AS(apply(scale_op(), {x}, {{"scal", 1.0}}), "scale: has no attribute 'scal'; did you mean 'scale'?",
                       Error);
  CHECK_THROWS_WITH_AS(apply(scale_op(), {x}, {{"scale", std::string("much")}}),
                       "scale: attribute 'scale' takes a number, got 'much'", Error);
  CHECK_THROWS_WITH_AS(apply(scale_op(), {x}, {{"scale", 1.0}, {"flag", std::int64_t{1}}}),
                       "scale: attribute 'flag' takes true or false, got 1", Error);
  CHECK_THROWS_AS(node.attributes.get<bool>("scale"), Error);
  CHECK_THROWS_AS(node.attributes.get<bool>("none"), Error);
}

TEST_CASE("an op whose default has the wrong type gives an error, not a crash") {
  static const Op wrong = [] {
    Op op = scaling("wrong");
    op.attributes = {{"scale", AttributeType::number, "The factor.", std::string("two")}};
    return op;
  }();
  Tape tape;
  CHECK_THROWS_WITH_AS(apply(wrong, {tape.input("x", {2})}), "wrong: attribute 'scale' takes a number, got 'two'",
                       Error);
}

TEST_CASE("a user's op works without a table: recording, playing and its gradient") {
  Tape tape;
  const Var x = tape.input("x", {2});
  const Var y = apply(scale_op(), {x}, {{"scale", 3.0}})[0];
  const Var dx = grad(sum(y), {x})[0];
  Player player(tape, {y, dx});
  const xt::xarray<float> values = {1.f, -2.f};
  player.play({{x, values}});
  CHECK(player.value<float>(y)(1) == -6.f);
  CHECK(player.value<float>(dx)(0) == 3.f);
  const auto function = [](const Vars& in) { return apply(scale_op(), {in[0]}, {{"scale", 0.5}}); };
  CHECK(gradcheck(function, {xt::xarray<double>{1.0, 2.0}}).passed);
}

TEST_CASE("the op table: finding, adding, refusing") {
  OpTable table = builtin_ops();
  CHECK(table.find("add") != nullptr);
  CHECK(table.find("scale") == nullptr);
  CHECK_THROWS_WITH_AS(table.at("sofmax"), "unknown op 'sofmax'; did you mean 'softmax'?", Error);
  table.add(scale_op());
  CHECK(&table.at("scale") == &scale_op());
  CHECK(builtin_ops().find("scale") == nullptr);
  CHECK_THROWS_WITH_AS(table.add(scale_op()), "op 'scale' is already in the table", Error);
  Op op;
  CHECK_THROWS_WITH_AS(table.add(op), "an op needs a name", Error);
  op.name = "new";
  CHECK_THROWS_WITH_AS(table.add(op), "op 'new' needs a doc", Error);
  op.doc = "Something.";
  CHECK_THROWS_WITH_AS(table.add(op), "op 'new' needs a shape rule", Error);
  op.shape = scale_op().shape;
  CHECK_THROWS_WITH_AS(table.add(op), "op 'new' needs a kernel, a tile, a view or an expand", Error);
}
