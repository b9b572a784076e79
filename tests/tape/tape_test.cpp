// Recording: handles, rollback, sites, scopes, bodies.
#include "xtape/tape.hpp"

#include <doctest/doctest.h>

#include <utility>

#include "xtape/grad.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
/// An op whose recording fails after it has recorded some nodes.
const Op& half_recorded_op() {
  static const Op entry = [] {
    Op op;
    op.name = "half_recorded";
    op.doc = "Fails when it is recorded.";
    op.inputs = {{"x"}};
    op.shape = [](const OpCall& call) { return std::vector<ValueType>{call.inputs[0]}; };
    op.expand = [](const ExpandCall& call) { return Vars{call.inputs[0]}; };
    op.record = [](Tape&, const Op&, const Vars& inputs, const Attributes&) -> Vars {
      return {inputs[0] + 1.0, inputs[0] + dropout(inputs[0], 0.5) + transpose(inputs[0], {0, 0})};
    };
    return op;
  }();
  return entry;
}

std::uint64_t key_of(const Var& var) {
  return var.node().site.key;
}
}  // namespace

TEST_CASE("recording appends nodes and computes their types") {
  Tape tape;
  const Var x = tape.input("x", {2, 3});
  const Var y = tape.input("y", {3}, Dtype::float32);
  const Var z = x + y;
  CHECK(tape.size() == 3);
  CHECK(z.shape() == Shape{2, 3});
  CHECK(z.dtype() == Dtype::float32);
  CHECK(z.rank() == 2);
  CHECK(z.size(-1) == 3);
  CHECK(z.id().node == 2);
  CHECK(z.node().inputs == std::vector<ValueId>{x.id(), y.id()});
  CHECK(z.tape() == tape);
}

TEST_CASE("names of inputs are unique, and an array has one parameter node") {
  Tape tape;
  tape.input("x", {2});
  CHECK_THROWS_WITH_AS(tape.input("x", {3}), "the tape already has an input named 'x'", Error);
  CHECK_THROWS_WITH_AS(tape.input("n", {2, -1}), "input 'n': sizes must not be negative, got (2, -1)", ShapeError);
  Store store;
  store.add("w", Array(Dtype::float32, {2, 2}));
  const Var w = tape.parameter(store, "w");
  CHECK(tape.parameter(store, "w").id() == w.id());
  CHECK_THROWS_WITH_AS(tape.parameter("none", Array()), "parameter 'none': the array is empty", Error);
  CHECK(tape.size() == 2);
}

TEST_CASE("inputs, parameters and constants of impossible sizes are refused and leave the tape unchanged") {
  Tape tape;
  constexpr std::int64_t large = std::int64_t{1} << 40;
  CHECK_THROWS_WITH_AS(tape.input("x", {large, large}),
                       "input 'x': no array can have shape (1099511627776, 1099511627776): its elements, 4 bytes each, "
                       "must take less than 2^63 bytes",
                       ShapeError);
  CHECK_THROWS_AS(tape.input("x", {large, 0, large}), ShapeError);
  CHECK_THROWS_AS(tape.parameter("w", Array(Dtype::float32, {large, large})), ShapeError);
  const float one = 1;
  CHECK_THROWS_AS(tape.constant(ArrayView(&one, Dtype::float32, {{large, large}, {0, 0}, 0})), ShapeError);
  CHECK_THROWS_AS(tape.constant(ArrayView(&one, Dtype::float32, {{large * 1024}, {0}, 0})), Error);  // no such memory
  CHECK(tape.size() == 0);
  CHECK(tape.input("x", {large, 4}).shape() == Shape{large, 4});  // the name is free
}

TEST_CASE("a node whose output cannot be an array is not appended") {
  Tape tape;
  const Var x = tape.input("x", {2});
  Node node = tanh(x).node();
  const std::size_t size = tape.size();
  node.outputs.own()[0].shape = {std::int64_t{1} << 62};
  CHECK_THROWS_WITH_AS(tape.append(node),
                       "tanh: no array can have shape (4611686018427387904,): its elements, 4 bytes each, must take "
                       "less than 2^63 bytes; its operands are float32 (2,)",
                       ShapeError);
  node.outputs.own()[0].shape = {2, -1};
  CHECK_THROWS_AS(tape.append(node), ShapeError);
  CHECK(tape.size() == size);
}

TEST_CASE("a parameter may have no elements") {
  Tape tape;
  const Var w = tape.parameter("w", Array(Dtype::float32, {0, 4}));
  CHECK(w.shape() == Shape{0, 4});
}

TEST_CASE("handles: empty, stale, and of another tape") {
  Var empty;
  CHECK(empty.empty());
  CHECK_THROWS_WITH_AS(empty.shape(), "an empty var: it was never recorded", HandleError);
  Var orphan;
  {
    Tape gone;
    orphan = gone.input("x", {1});
  }
  CHECK_THROWS_WITH_AS(orphan.shape(), "a stale var: its tape is gone", HandleError);
  Tape tape;
  const Var x = tape.input("x", {2});
  const std::size_t size = tape.size();
  const Var y = x + 1.0;
  tape.truncate(size);
  CHECK_THROWS_AS(y.shape(), HandleError);
  const Var a = x * 2.0;  // reuses the indices of the literal and of y
  CHECK(a.id().node == 2);
  CHECK_THROWS_AS(y.shape(), HandleError);
  Tape other;
  const Var foreign = other.input("x", {2});
  CHECK_THROWS_WITH_AS(x + foreign, "add: its operands belong to different tapes", HandleError);
  CHECK_THROWS_WITH_AS(x + empty, "add: an empty var: it was never recorded", HandleError);
  CHECK(other.size() == 1);
}

TEST_CASE("a tape may be moved and copied: its vars belong to the list of nodes") {
  Tape tape;
  const Var x = tape.input("x", {2});
  Tape moved = std::move(tape);
  CHECK(x.tape() == moved);
  const Tape copy = moved;
  const Var y = x + 1.0;
  CHECK(copy.size() == 3);
  moved = Tape();
  CHECK(y.tape() == copy);
}

TEST_CASE("a failed call leaves the tape unchanged") {
  Tape tape;
  const Var x = tape.input("x", {2, 3});
  const Var n = tape.input("n", {2, 3}, Dtype::int32);
  const std::size_t size = tape.size();
  CHECK_THROWS_AS(x + tape.input("y", {4}), ShapeError);  // the input itself stays
  CHECK(tape.size() == size + 1);
  CHECK_THROWS_AS(add(n, broadcast_to(x, {7, 2, 3})) + tape.var({2, 0}), ShapeError);
  const std::size_t after = tape.size();
  CHECK_THROWS_AS(apply(half_recorded_op(), {x}), ShapeError);
  CHECK(tape.size() == after);
  CHECK_THROWS_AS(masked_fill(x, n, 0.0), DtypeError);
  CHECK(tape.size() == after);
}

TEST_CASE("a failed call does not change the sites of later calls") {
  const auto keys = [](bool with_failures) {
    Tape tape;
    const Var x = tape.input("x", {2, 3});
    if (with_failures) {
      CHECK_THROWS(apply(half_recorded_op(), {x}));
      CHECK_THROWS(grad(Vars{x * 1.0}, {tape.parameter("w", Array(Dtype::int32, {2}))}));
      const auto fails_late = [&](const Vars& in) -> Vars {
        const Vars inner = checkpoint([](const Vars& v) { return Vars{dropout(v[0], 0.5) + 1.0}; }, in);
        throw Error("no");
        return inner;
      };
      CHECK_THROWS_WITH_AS(checkpoint(fails_late, {x}), "no", Error);
    }
    return std::vector<std::uint64_t>{key_of(x + x), key_of(dropout(x, 0.5)), key_of(x + 1.0)};
  };
  const auto clean = keys(false);
  auto after = keys(true);
  CHECK(clean[1] == after[1]);
  CHECK(clean[2] == after[2]);
}

TEST_CASE("sites count the calls of one op, whatever the shapes") {
  const auto record = [](std::int64_t batch) {
    Tape tape;
    const Var x = tape.input("x", {batch, 3});
    const Var a = x + x;
    const Var b = x * x;
    const Var c = a + b;
    return std::vector<Site>{a.node().site, b.node().site, c.node().site};
  };
  const auto small = record(2);
  const auto large = record(64);
  for (std::size_t i = 0; i < small.size(); ++i) CHECK(small[i].key == large[i].key);
  CHECK(small[0].occurrence == 0);
  CHECK(small[1].occurrence == 0);
  CHECK(small[2].occurrence == 1);
  CHECK(small[0].key != small[1].key);
  CHECK(small[0].key != small[2].key);
}

TEST_CASE("scopes set path, line and location, and restore them at their end") {
  Tape tape;
  const Var x = tape.input("x", {2});
  const Var before = x + x;
  auto scope = std::make_shared<const Scope>(Scope{"h.0.attn", "gpt2.json, block 'attention'"});
  Var inside, deeper;
  {
    const auto guard = tape.in_scope(scope, 24);
    inside = x + x;
    const auto nested = tape.in_scope(std::make_shared<const Scope>(Scope{"h.0.attn.mix", ""}), 3);
    deeper = x + x;
  }
  const Var after = x + x;
  CHECK(to_string(before.node().site) == to_string(before.node().site.caller));
  CHECK(to_string(inside.node().site) == "h.0.attn (gpt2.json, block 'attention', line 24)");
  CHECK(to_string(deeper.node().site) == "h.0.attn.mix (" + to_string(deeper.node().site.caller) + ")");
  CHECK(inside.node().site.occurrence == 0);
  CHECK(deeper.node().site.occurrence == 0);
  CHECK(after.node().site.occurrence == 1);
  CHECK(key_of(inside) != key_of(before));
  CHECK(key_of(inside) != key_of(deeper));
}

TEST_CASE("a checkpoint moves its nodes and literals off the tape; other sources stay") {
  Tape tape;
  const Var x = tape.input("x", {2});
  Var interior;
  const auto body = [&](const Vars& in) {
    interior = in[0] * tape.parameter("w", xt::xarray<float>({2.f, 3.f}));
    return Vars{interior + 1.0};
  };
  const Var y = checkpoint(body, {x})[0];
  CHECK_THROWS_AS(interior.shape(), HandleError);
  CHECK(y.node().op->name == "checkpoint");
  REQUIRE(y.node().body);
  CHECK(y.node().body->inputs().size() == 2);  // x and w; the literal 1 is in the body
  CHECK(y.node().inputs.size() == 2);
  CHECK(value<float>(y, {{x, xt::xarray<float>({1.f, 2.f})}}) == xt::xarray<float>({3.f, 7.f}));
}

TEST_CASE("checkpoint refuses invalid inputs and results") {
  Tape tape;
  Tape other;
  const Var x = tape.input("x", {2});
  const Var foreign = other.input("y", {2});
  const auto identity = [](const Vars& in) { return in; };
  CHECK_THROWS_WITH_AS(checkpoint(identity, {}), "checkpoint: needs at least one input", Error);
  CHECK_THROWS_WITH_AS(checkpoint([](const Vars&) { return Vars(); }, {x}), "checkpoint: the function gives no result",
                       Error);
  CHECK_THROWS_WITH_AS(checkpoint([&](const Vars&) { return Vars{foreign}; }, {x}),
                       "checkpoint: its inputs and results belong to different tapes", HandleError);
  CHECK_THROWS_WITH_AS(checkpoint(identity, {x, foreign}), "checkpoint: its inputs belong to different tapes",
                       HandleError);
  CHECK(tape.size() == 1);
}

TEST_CASE("modes by name") {
  for (const Mode mode : {Mode::train, Mode::eval, Mode::predict}) CHECK(mode_named(name_of(mode)) == mode);
  CHECK_THROWS_WITH_AS(mode_named("test"), "unknown mode 'test': use train, eval or predict", Error);
  CHECK(Tape(Mode::eval).mode() == Mode::eval);
  CHECK(Tape().mode() == Mode::train);
}

TEST_CASE("values computed from the tokens have a past") {
  Tape tape(Mode::predict);
  const Var tokens = tape.input("tokens", {2, 3}, Dtype::int64);
  const Var source = tape.input("source", {2, 3}, Dtype::int64);
  const Var past = tape.input("past", {2}, Dtype::int64);
  CHECK(tape.past_of(tokens).empty());
  CHECK(tape.capacity() == 0);
  CHECK_THROWS_WITH_AS(tape.set_past(tokens, source, 4),
                       "the past of tokens int64 (2, 3) must be int64, one number for each row, not int64 (2, 3)",
                       ShapeError);
  CHECK_THROWS_WITH_AS(tape.set_past(tokens, past, 0), "the capacity of caches must be at least 1, got 0", Error);
  tape.set_past(tokens, past, 4);
  CHECK(tape.capacity() == 4);
  CHECK_THROWS_WITH_AS(tape.set_past(tokens, past, 4), "the tape already has a past", Error);
  CHECK(tape.past_of(tokens).id() == past.id());
  CHECK(tape.past_of(source + tokens * 2).id() == past.id());
  CHECK(tape.past_of(past + 1).id() == past.id());
  CHECK(tape.past_of(source * 2).empty());
  tape.truncate(2);
  CHECK(tape.capacity() == 0);
  CHECK(tape.past_of(tokens).empty());
  Tape training(Mode::train);
  const Var row = training.input("row", {1}, Dtype::int64);
  CHECK_THROWS_WITH_AS(training.set_past(row, row, 4), "only a tape in mode predict has a past, not one in mode train",
                       Error);
}
