// log_softmax and its gradient.
#include "ops/activations/softmax_op.hpp"
#include "ops/recording/op_helpers.hpp"
#include "xtape/ops.hpp"

namespace xtape {

std::pair<Var, Var> log_softmax_parts(const Var& x, std::int64_t axis) {
  const Var shift = finite_max(x, axis);
  const Var shifted = x - shift;
  const Var total = sum(exp(shifted), {axis}, true);
  const Var logarithm = log(where(total == 0, 1, total));
  return {shifted - logarithm, shift + logarithm};
}

namespace {
const Op& log_softmax_grad_op() {
  static const Op entry = [] {
    Op op = along_axis_op(
        "log_softmax_grad",
        "The gradient of log_softmax, given its output y: dx = dy - exp(y) * sum(dy), with the sum along `axis`.",
        {{"y", Accept::floating}, {"dy", Accept::floating}});
    op.outputs = {"dx"};
    op.expand = [](const ExpandCall& call) {
      const Var& y = call.inputs[0];
      const Var& dy = call.inputs[1];
      return Vars{dy - exp(y) * sum(dy, {call.attributes().get<std::int64_t>("axis")}, true)};
    };
    return op;
  }();
  return entry;
}

const Op& log_softmax_op() {
  static const Op entry = [] {
    Op op =
        along_axis_op("log_softmax",
                      "y = x - max x - log sum exp(x - max x) along `axis`: the logarithm of softmax, more accurate "
                      "than log(softmax(x)). A row of -inf gives -inf, and its gradient is the cotangent.",
                      {{"x", Accept::floating}});
    op.expand = [](const ExpandCall& call) {
      const Var& x = call.inputs[0];
      const auto axis = call.attributes().get<std::int64_t>("axis");
      return Vars{x.size(axis) == 0 ? zeros_like(x) : log_softmax_parts(x, axis).first};
    };
    op.gradient = [](const GradientCall& call) {
      return apply(log_softmax_grad_op(), {call.outputs[0], call.cotangent()}, call.attributes());
    };
    return op;
  }();
  return entry;
}
}  // namespace

Var log_softmax(const Argument& x, std::int64_t axis) {
  return apply(log_softmax_op(), {x}, {{"axis", axis}})[0];
}

void list_log_softmax(OpTable& table) {
  table.add(log_softmax_op());
  table.add(log_softmax_grad_op());
}

}  // namespace xtape
