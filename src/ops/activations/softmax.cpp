// softmax and log_softmax along an axis, and their gradients.
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "ops/recording/op_helpers.hpp"

namespace xtape {

namespace {
/// The output has the type of the first input and may overwrite any input.
Op along_axis_op(const std::string& name, const std::string& doc, std::vector<InputSpec> inputs) {
  Op op;
  op.name = name;
  op.doc = doc;
  const std::size_t operands = inputs.size();
  op.inputs = std::move(inputs);
  op.attributes = {{"axis", AttributeType::integer, "The axis along which softmax sums to 1.", std::int64_t{-1}}};
  op.shape = +[](const OpCall& call) {
    axis_of(call);
    for (std::size_t i = 1; i < call.inputs.size(); ++i) require_shape(call, i, call.shape(0), "that of y");
    return std::vector<ValueType>{call.inputs[0]};
  };
  op.batch = batch_along();
  op.lowering.kernel = kernel_by_name;
  for (std::size_t i = operands; i-- > 0;) op.lowering.overwrites.push_back(static_cast<int>(i));
  return op;
}
}  // namespace

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
    op.expand = +[](const ExpandCall& call) {
      const Var& y = call.inputs[0];
      const Var& dy = call.inputs[1];
      return Vars{y * (dy - sum(dy * y, {call.integer("axis")}, true))};
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
    op.expand = +[](const ExpandCall& call) { return Vars{expanded_softmax(call.inputs[0], call.integer("axis"))}; };
    op.gradient = +[](const GradientCall& call) {
      return apply(softmax_grad_op(), {call.outputs[0], call.cotangent()}, call.attributes);
    };
    return op;
  }();
  return entry;
}
}  // namespace

Var softmax(const Argument& x, std::int64_t axis) {
  return apply(softmax_op(), {x}, {{"axis", axis}})[0];
}

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
    op.expand = +[](const ExpandCall& call) {
      const Var& y = call.inputs[0];
      const Var& dy = call.inputs[1];
      return Vars{dy - exp(y) * sum(dy, {call.integer("axis")}, true)};
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
    op.expand = +[](const ExpandCall& call) {
      const Var& x = call.inputs[0];
      const auto axis = call.integer("axis");
      return Vars{x.size(axis) == 0 ? zeros_like(x) : log_softmax_parts(x, axis).first};
    };
    op.gradient = +[](const GradientCall& call) {
      return apply(log_softmax_grad_op(), {call.outputs[0], call.cotangent()}, call.attributes);
    };
    return op;
  }();
  return entry;
}
}  // namespace

Var log_softmax(const Argument& x, std::int64_t axis) {
  return apply(log_softmax_op(), {x}, {{"axis", axis}})[0];
}

void list_softmax(OpTable& table) {
  table.add(softmax_op());
  table.add(softmax_grad_op());
  table.add(log_softmax_op());
  table.add(log_softmax_grad_op());
}

}  // namespace xtape
