// Comparisons and logic, whose results are bool and have no gradient, and a few compositions of elementwise ops.
#include <cfloat>
#include <limits>

#include "ops/elementwise/arithmetic.hpp"
#include "xtape/ops/elementwise.hpp"

namespace xtape {

namespace {
std::vector<ValueType> bool_type(const OpCall& call) {
  return {{Dtype::boolean, broadcast_inputs(call)}};
}

/// Defines an elementwise op that compares two inputs of the same dtype, which may be bool.
Op comparison(const char* name, const char* doc) {
  Op op;
  op.name = name;
  op.doc = doc;
  op.inputs = {{"a"}, {"b"}};
  op.shape = bool_type;
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

// Elementwise functions that are compositions of other elementwise ops and fuse like them.

namespace {
constexpr double inf = std::numeric_limits<double>::infinity();

/// Returns the greatest finite number of a float dtype.
double greatest(Dtype dtype) {
  return dtype == Dtype::float64    ? DBL_MAX
         : dtype == Dtype::bfloat16 ? 0x1.FEp127
         : dtype == Dtype::float16  ? 65504
                                    : FLT_MAX;
}

Vars expand_nan_to_num(const ExpandCall& call) {
  const Var& x = call.inputs[0];
  const double most = greatest(call.node.outputs[0].dtype);
  const auto or_finite = [&](double value) { return std::min(std::max(value, -most), most); };
  Var y = masked_fill(x, x != x, call.number("nan"));
  y = masked_fill(y, x == inf, or_finite(call.number("posinf")));
  return {masked_fill(y, x == -inf, or_finite(call.number("neginf")))};
}

/// Interpolates from the nearer end, so that the result is exact at both ends.
Vars expand_lerp(const ExpandCall& call) {
  const Var &start = call.inputs[0], &end = call.inputs[1], &weight = call.inputs[2];
  const Var way = end - start;
  return {where(abs(weight) < 0.5, start + weight * way, end - way * (1 - weight))};
}

const ComposedRow pointwise_rows[] = {
    {"nan_to_num",
     "x",
     "x with NaN replaced by `nan`, inf by `posinf` and -inf by `neginf`. `posinf` and `neginf` are clipped to the "
     "finite range of the dtype. No gradient flows to replaced elements.",
     expand_nan_to_num,
     {{{"nan", "The replacement for NaN.", 0},
       {"posinf", "The replacement for inf. inf means the greatest finite number.", inf},
       {"neginf", "The replacement for -inf. -inf means the least finite number.", -inf}}}},
    {"lerp", "start end weight", "start + weight * (end - start), computed from the nearer end.", expand_lerp},
};

const ComposedRow test_rows[] = {
    {"isnan",
     "x",
     "Whether x is NaN.",
     +[](const ExpandCall& call) { return Vars{call.inputs[0] != call.inputs[0]}; },
     {},
     false},
    {"isinf",
     "x",
     "Whether x is inf or -inf.",
     +[](const ExpandCall& call) { return Vars{abs(call.inputs[0]) == inf}; },
     {},
     false},
    {"isfinite",
     "x",
     "Whether x is neither NaN, inf nor -inf.",
     +[](const ExpandCall& call) { return Vars{abs(call.inputs[0]) < inf}; },
     {},
     false},
    {"logical_xor",
     "!a !b",
     "True where exactly one of a and b is true.",
     +[](const ExpandCall& call) { return Vars{call.inputs[0] != call.inputs[1]}; },
     {},
     false},
};
}  // namespace

XTAPE_UNARY(isnan)
XTAPE_UNARY(isinf)
XTAPE_UNARY(isfinite)
Var logical_xor(const Argument& a, const Var& b) {
  return call_op("logical_xor", {a, b});
}
Var nan_to_num(const Argument& x, double nan, double posinf, double neginf) {
  return call_op("nan_to_num", {x}, {{"nan", nan}, {"posinf", posinf}, {"neginf", neginf}});
}
Var lerp(const Operand& start, const Operand& end, const Operand& weight) {
  return call_op("lerp", {start, end, weight});
}

void list_comparison(OpTable& table) {
  static const Op comparisons[] = {comparison("equal", "Whether a == b."),
                                   comparison("not_equal", "Whether a != b."),
                                   comparison("less", "Whether a < b."),
                                   comparison("less_equal", "Whether a <= b."),
                                   comparison("greater", "Whether a > b."),
                                   comparison("greater_equal", "Whether a >= b."),
                                   logic("logical_and", "True where both a and b are true.", "!a !b"),
                                   logic("logical_or", "True where a or b is true, or both are.", "!a !b"),
                                   logic("logical_not", "True where x is false.", "!x")};
  static const std::vector<std::vector<Op>> compositions{composed(pointwise_rows, same_dtype),
                                                         composed(test_rows, bool_type)};
  for (const Op& op : comparisons) table.add(op);
  add_all(table, compositions);
}

}  // namespace xtape
