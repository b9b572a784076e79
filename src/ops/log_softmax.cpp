// log_softmax and its gradient.
#include "floating.hpp"
#include "rows.hpp"
#include "softmax.hpp"
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
  static const Op row = [] {
    Op op;
    op.name = "log_softmax_grad";
    op.doc = "The gradient of log_softmax from its output: dx = dy - exp(y) * sum(dy), the sum along `axis`.";
    op.inputs = {{"y", Accept::floating}, {"dy", Accept::floating}};
    op.outputs = {"dx"};
    op.attributes = {{"axis", AttributeType::integer, "The axis along which exp(y) sums to 1.", std::int64_t{-1}}};
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
                        log_softmax_grad<T>(in<T>(frame, 0), in<T>(frame, 1), out<T>(frame, 0), extent, frame.scratch,
                                            threads);
                      },
                      softmax_scratch(extent, 2, sizeof(T), threads)};
      });
    };
    op.expand = [](const ExpandCall& call) {
      const Var& y = call.inputs[0];
      const Var& dy = call.inputs[1];
      return Vars{dy - exp(y) * sum(dy, {call.attributes().get<std::int64_t>("axis")}, true)};
    };
    op.overwrites = {1, 0};
    return op;
  }();
  return row;
}

const Op& log_softmax_op() {
  static const Op row = [] {
    Op op;
    op.name = "log_softmax";
    op.doc =
        "y = x - max x - log sum exp(x - max x) along `axis`: the logarithm of softmax, without its loss of digits. A "
        "row "
        "of -inf gives -inf, and passes its cotangent on.";
    op.inputs = {{"x", Accept::floating}};
    op.attributes = {{"axis", AttributeType::integer, "The axis along which exp(y) sums to 1.", std::int64_t{-1}}};
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
                        log_softmax<T>(in<T>(frame, 0), out<T>(frame, 0), extent, frame.scratch, threads);
                      },
                      softmax_scratch(extent, 1, sizeof(T), threads)};
      });
    };
    op.expand = [](const ExpandCall& call) {
      const Var& x = call.inputs[0];
      const auto axis = call.attributes().get<std::int64_t>("axis");
      return Vars{x.size(axis) == 0 ? zeros_like(x) : log_softmax_parts(x, axis).first};
    };
    op.gradient = [](const GradientCall& call) {
      return apply(log_softmax_grad_op(), {call.outputs[0], call.cotangent()}, call.attributes());
    };
    op.overwrites = {0};
    return op;
  }();
  return row;
}
}  // namespace

Var log_softmax(const Var& x, std::int64_t axis) {
  return apply(log_softmax_op(), {x}, {{"axis", axis}})[0];
}

void list_log_softmax(OpTable& table) {
  table.add(log_softmax_op());
  table.add(log_softmax_grad_op());
}

}  // namespace xtape
