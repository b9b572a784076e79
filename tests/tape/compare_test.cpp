// The first difference of two tapes.
#include <doctest/doctest.h>

#include <cmath>

#include "tape/node_text.hpp"
#include "xtape/ops.hpp"

using namespace xtape;

namespace {
/// A part of a model with one thing changed.
struct Changes {
  std::int64_t axis = -1;
  double epsilon = 1e-5, scale = 0.5, rate = 0.1;
  bool mask = true, bias = true, swapped = false, second_dropout = true;
};

Tape recorded(const Changes& changes) {
  Tape tape;
  const auto guard = tape.in_scope(std::make_shared<const Scope>(Scope{"h.0", "net.json, block 'layer'"}), 3);
  const Var x = tape.input("x", {2, 4, 4}), b = tape.input("b", {4});
  Var y = x * changes.scale;
  if (changes.mask) y = masked_fill(y, causal_mask(x), -HUGE_VAL);
  y = softmax(y, changes.axis);
  if (changes.bias) y = y + b;
  y = changes.swapped ? x - y : y - x;
  y = y / sqrt(mean(y * y, {-1}, true) + changes.epsilon);
  y = dropout(y, changes.rate);
  if (changes.second_dropout) dropout(tanh(y), 0.5);
  return tape;
}

std::string difference(const Changes& changes) {
  return first_difference(recorded({}), recorded(changes));
}

bool has(const std::string& text, const std::string& part) {
  CAPTURE(text);
  CAPTURE(part);
  CHECK(text.find(part) != std::string::npos);
  return true;
}
}  // namespace

TEST_CASE("equal tapes have no difference") {
  CHECK(difference({}).empty());
}

TEST_CASE("the first difference names both nodes and what differs") {
  has(difference({.axis = 1}), "axis is -1 and 1");
  has(difference({.axis = 1}), "softmax(");
  has(difference({.axis = 1}), "at h.0 (net.json, block 'layer', line 3)");
  has(difference({.epsilon = 1e-6}), "the constants have different elements");
  has(difference({.scale = 0.25}), "the constants have different elements");
  has(difference({.rate = 0.2}), "rate is 0.1 and 0.2");
  has(difference({.bias = false}), "only the first has it, and 0 nodes after it");
  has(difference({.bias = false}), "first : #");
  has(difference({.swapped = true}), "the operands are different nodes");
  has(difference({.second_dropout = false}), "second: no more nodes");
  has(difference({.mask = false}), "only the first has it");
  has(first_difference(recorded({.bias = false}), recorded({})), "only the second has it, and 0 nodes after it");
}

TEST_CASE("differences inside bodies, and draws of other random numbers") {
  const auto with_body = [](double slope, int earlier) {
    Tape tape;
    const Var x = tape.input("x", {3});
    for (int i = 0; i < earlier; ++i) dropout(x, 0.5);
    tape.truncate(1);
    checkpoint([&](const Vars& in) { return Vars{clip(in[0], -slope, slope)}; }, {x});
    return tape;
  };
  const std::string found = first_difference(with_body(0.1, 0), with_body(0.2, 0));
  has(found, "in the body:\n");
  CHECK(first_difference(with_body(0.1, 0), with_body(0.1, 3)).empty());
  Tape a, b;
  dropout(a.input("x", {3}), 0.5);
  const auto guard = b.in_scope(std::make_shared<const Scope>(Scope{"h", ""}), 3);
  dropout(b.input("x", {3}), 0.5);
  has(first_difference(a, b), "they draw different random numbers");
}
