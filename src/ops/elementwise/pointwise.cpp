// Elementwise functions that are compositions of other elementwise ops and fuse like them.
#include <cfloat>
#include <limits>

#include "ops/elementwise/arithmetic.hpp"
#include "ops/recording/composed.hpp"
#include "xtape/ops.hpp"
#include "xtape/ops/elementwise.hpp"

namespace xtape {

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
  Var y = masked_fill(x, x != x, number_of(call, "nan"));
  y = masked_fill(y, x == inf, or_finite(number_of(call, "posinf")));
  return {masked_fill(y, x == -inf, or_finite(number_of(call, "neginf")))};
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
     [](const ExpandCall& call) { return Vars{call.inputs[0] != call.inputs[0]}; },
     {},
     false},
    {"isinf",
     "x",
     "Whether x is inf or -inf.",
     [](const ExpandCall& call) { return Vars{abs(call.inputs[0]) == inf}; },
     {},
     false},
    {"isfinite",
     "x",
     "Whether x is neither NaN, inf nor -inf.",
     [](const ExpandCall& call) { return Vars{abs(call.inputs[0]) < inf}; },
     {},
     false},
    {"logical_xor",
     "!a !b",
     "True where exactly one of a and b is true.",
     [](const ExpandCall& call) { return Vars{call.inputs[0] != call.inputs[1]}; },
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

void list_pointwise(OpTable& table) {
  static const std::vector<Op> ops = composed(pointwise_rows, same_dtype);
  static const std::vector<Op> tests = composed(test_rows, [](const OpCall& call) {
    return std::vector<ValueType>{{Dtype::boolean, broadcast_inputs(call)}};
  });
  for (const Op& op : ops) table.add(op);
  for (const Op& op : tests) table.add(op);
}

}  // namespace xtape
