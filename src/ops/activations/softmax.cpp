// softmax and its gradient.
#include <limits>

#include "ops/activations/softmax_op.hpp"
#include "ops/recording/op_helpers.hpp"
#include "xtape/ops.hpp"

namespace xtape {

Var finite_max(const Var& x, std::int64_t axis) {
  const Var largest = stop_gradient(max(x, {axis}, true));
  return where(largest == -std::numeric_limits<double>::infinity(), 0, largest);
}

namespace {
Var expanded_softmax(const Var& x, std::int64_t axis) {
  if (x.size(axis) == 0) return zeros_like(x);
  const Var e = exp(x - finite_max(x, axis));
  const Var total = sum(e, {axis}, true);
  return e / where(total == 0, 1, total);
}

const Op& softmax_grad_op() {
  static const Op entry = [] {
    Op op = along_axis_op("softmax_grad",
                          "The gradient of softmax, given its output y: dx = y * (dy - sum(dy * y)), with the sum "
                          "along `axis`. A row of zeros in y (a fully masked row of x) gives zeros.",
                          {{"y", Accept::floating}, {"dy", Accept::floating}});
    op.outputs = {"dx"};
    op.expand = [](const ExpandCall& call) {
      const Var& y = call.inputs[0];
      const Var& dy = call.inputs[1];
      return Vars{y * (dy - sum(dy * y, {call.attributes().get<std::int64_t>("axis")}, true))};
    };
    return op;
  }();
  return entry;
}

const Op& softmax_op() {
  static const Op entry = [] {
    Op op = along_axis_op("softmax",
                          "y = exp(x - max x) / sum exp(x - max x) along `axis`: numbers that are not negative and "
                          "sum to 1. A row of -inf (a fully masked row) gives zeros, and its gradient is 0.",
                          {{"x", Accept::floating}});
    op.expand = [](const ExpandCall& call) {
      return Vars{expanded_softmax(call.inputs[0], call.attributes().get<std::int64_t>("axis"))};
    };
    op.gradient = [](const GradientCall& call) {
      return apply(softmax_grad_op(), {call.outputs[0], call.cotangent()}, call.attributes());
    };
    return op;
  }();
  return entry;
}
}  // namespace

Var softmax(const Argument& x, std::int64_t axis) {
  return apply(softmax_op(), {x}, {{"axis", axis}})[0];
}

void list_softmax(OpTable& table) {
  table.add(softmax_op());
  table.add(softmax_grad_op());
}

}  // namespace xtape
