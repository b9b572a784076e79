// softmax and its gradient.
#include "softmax.hpp"

#include <limits>

#include "floating.hpp"
#include "rows.hpp"
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
  static const Op row = [] {
    Op op;
    op.name = "softmax_grad";
    op.doc =
        "The gradient of softmax from its output: dx = y * (dy - sum(dy * y)), the sum along `axis`. A row of zeros in "
        "y "
        "(one that was fully masked) gives zeros.";
    op.inputs = {{"y", Accept::floating}, {"dy", Accept::floating}};
    op.outputs = {"dx"};
    op.attributes = {{"axis", AttributeType::integer, "The axis along which y sums to 1.", std::int64_t{-1}}};
    op.shape = [](const Call& call) {
      axis_of(call);
      require_shape(call, 1, call.shape(0), "that of y");
      return std::vector<ValueType>{call.inputs[0]};
    };
    op.kernel = [](const KernelCall& call) {
      const AxisExtent extent = AxisExtent::of(call.shape(0), axis_of(call));
      const int threads = call.threads;
      return with_floating(call.dtype(0), [&](auto scalar) {
        using T = decltype(scalar);
        return Kernel{[extent, threads](const Frame& frame) {
                        softmax_grad<T>(in<T>(frame, 0), in<T>(frame, 1), out<T>(frame, 0), T{1}, extent, frame.scratch,
                                        threads);
                      },
                      softmax_scratch(extent, 2, sizeof(T), threads)};
      });
    };
    op.expand = [](const ExpandCall& call) {
      const Var& y = call.inputs[0];
      const Var& dy = call.inputs[1];
      return Vars{y * (dy - sum(dy * y, {call.attributes().get<std::int64_t>("axis")}, true))};
    };
    op.overwrites = {1, 0};
    return op;
  }();
  return row;
}

const Op& softmax_op() {
  static const Op row = [] {
    Op op;
    op.name = "softmax";
    op.doc =
        "y = exp(x - max x) / sum exp(x - max x) along `axis`: positive numbers that sum to 1. A row of -inf (one that "
        "is "
        "fully masked) gives zeros, and zero gradients.";
    op.inputs = {{"x", Accept::floating}};
    op.attributes = {{"axis", AttributeType::integer, "The axis along which y sums to 1.", std::int64_t{-1}}};
    op.shape = [](const Call& call) {
      axis_of(call);
      return std::vector<ValueType>{call.inputs[0]};
    };
    op.kernel = [](const KernelCall& call) {
      const AxisExtent extent = AxisExtent::of(call.shape(0), axis_of(call));
      const int threads = call.threads;
      return with_floating(call.dtype(0), [&](auto scalar) {
        using T = decltype(scalar);
        return Kernel{[extent, threads](const Frame& frame) {
                        softmax<T>(in<T>(frame, 0), out<T>(frame, 0), extent, frame.scratch, threads);
                      },
                      softmax_scratch(extent, 1, sizeof(T), threads)};
      });
    };
    op.expand = [](const ExpandCall& call) {
      return Vars{expanded_softmax(call.inputs[0], call.attributes().get<std::int64_t>("axis"))};
    };
    op.gradient = [](const GradientCall& call) {
      return apply(softmax_grad_op(), {call.outputs[0], call.cotangent()}, call.attributes());
    };
    op.overwrites = {0};
    return op;
  }();
  return row;
}
}  // namespace

Var softmax(const Var& x, std::int64_t axis) {
  return apply(softmax_op(), {x}, {{"axis", axis}})[0];
}

void list_softmax(OpTable& table) {
  table.add(softmax_op());
  table.add(softmax_grad_op());
}

}  // namespace xtape
