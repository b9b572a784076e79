// Comparisons and logic. The results are bool and have no gradient.
#include "ops/elementwise/arithmetic.hpp"
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
Op logic(const char* name, const char* doc, const char* inputs) {
  Op op;
  op.name = name;
  op.doc = doc;
  op.inputs = inputs_of(inputs);
  op.shape = same_dtype;
  op.lowering.tile = tile_by_name;
  op.differentiable = false;
  for (std::size_t i = 0; i < op.inputs.size(); ++i) op.lowering.overwrites.push_back(static_cast<int>(i));
  return op;
}

}  // namespace

XTAPE_BINARY(equal)
XTAPE_BINARY(not_equal)
XTAPE_BINARY(less)
XTAPE_BINARY(less_equal)
XTAPE_BINARY(greater)
XTAPE_BINARY(greater_equal)
XTAPE_UNARY(logical_not)
Var logical_and(const Argument& a, const Var& b) {
  return call_op("logical_and", {a, b});
}
Var logical_or(const Argument& a, const Var& b) {
  return call_op("logical_or", {a, b});
}

void list_comparison(OpTable& table) {
  static const Op ops[] = {comparison("equal", "Whether a == b."),
                           comparison("not_equal", "Whether a != b."),
                           comparison("less", "Whether a < b."),
                           comparison("less_equal", "Whether a <= b."),
                           comparison("greater", "Whether a > b."),
                           comparison("greater_equal", "Whether a >= b."),
                           logic("logical_and", "True where both a and b are true.", "!a !b"),
                           logic("logical_or", "True where a or b is true, or both are.", "!a !b"),
                           logic("logical_not", "True where x is false.", "!x")};
  for (const Op& op : ops) table.add(op);
}

}  // namespace xtape
