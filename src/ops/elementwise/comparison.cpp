// Comparisons and logic. The results are bool and have no gradient.
#include "ops/elementwise/arithmetic.hpp"
#include "ops/recording/op_helpers.hpp"
#include "xtape/ops.hpp"

namespace xtape {

namespace {
/// Defines an elementwise op that compares two inputs of the same dtype, which may be bool.
Op comparison(const char* name, const char* doc) {
  Op op;
  op.name = name;
  op.doc = doc;
  op.inputs = {{"a"}, {"b"}};
  op.shape = [](const OpCall& call) -> std::vector<ValueType> { return {{Dtype::boolean, broadcast_inputs(call)}}; };
  op.lowering.tile = tile_by_name;
  op.differentiable = false;
  return op;
}

/// Defines an elementwise op on bool inputs.
Op logic(const char* name, const char* doc, const std::vector<InputSpec>& inputs) {
  Op op;
  op.name = name;
  op.doc = doc;
  op.inputs = inputs;
  op.shape = same_dtype;
  op.lowering.tile = tile_by_name;
  op.differentiable = false;
  for (std::size_t i = 0; i < inputs.size(); ++i) op.lowering.overwrites.push_back(static_cast<int>(i));
  return op;
}

const Op& equal_op() {
  static const Op entry = comparison("equal", "Whether a == b.");
  return entry;
}
const Op& not_equal_op() {
  static const Op entry = comparison("not_equal", "Whether a != b.");
  return entry;
}
const Op& less_op() {
  static const Op entry = comparison("less", "Whether a < b.");
  return entry;
}
const Op& less_equal_op() {
  static const Op entry = comparison("less_equal", "Whether a <= b.");
  return entry;
}
const Op& greater_op() {
  static const Op entry = comparison("greater", "Whether a > b.");
  return entry;
}
const Op& greater_equal_op() {
  static const Op entry = comparison("greater_equal", "Whether a >= b.");
  return entry;
}

const Op& logical_and_op() {
  static const Op entry =
      logic("logical_and", "True where both a and b are true.", {{"a", Accept::mask}, {"b", Accept::mask}});
  return entry;
}
const Op& logical_or_op() {
  static const Op entry =
      logic("logical_or", "True where a or b is true, or both are.", {{"a", Accept::mask}, {"b", Accept::mask}});
  return entry;
}

const Op& logical_not_op() {
  static const Op entry = logic("logical_not", "True where x is false.", {{"x", Accept::mask}});
  return entry;
}
}  // namespace

Var equal(const Operand& a, const Operand& b) {
  return apply(equal_op(), {a, b})[0];
}
Var not_equal(const Operand& a, const Operand& b) {
  return apply(not_equal_op(), {a, b})[0];
}
Var less(const Operand& a, const Operand& b) {
  return apply(less_op(), {a, b})[0];
}
Var less_equal(const Operand& a, const Operand& b) {
  return apply(less_equal_op(), {a, b})[0];
}
Var greater(const Operand& a, const Operand& b) {
  return apply(greater_op(), {a, b})[0];
}
Var greater_equal(const Operand& a, const Operand& b) {
  return apply(greater_equal_op(), {a, b})[0];
}
Var logical_and(const Argument& a, const Var& b) {
  return apply(logical_and_op(), {a, b})[0];
}
Var logical_or(const Argument& a, const Var& b) {
  return apply(logical_or_op(), {a, b})[0];
}
Var logical_not(const Argument& x) {
  return apply(logical_not_op(), {x})[0];
}

void list_comparison(OpTable& table) {
  for (const Op* op : {&equal_op(), &not_equal_op(), &less_op(), &less_equal_op(), &greater_op(), &greater_equal_op(),
                       &logical_and_op(), &logical_or_op(), &logical_not_op()})
    table.add(*op);
}

}  // namespace xtape
