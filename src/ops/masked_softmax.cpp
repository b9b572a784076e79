// masked_softmax: scale, mask and softmax in one kernel, which the player puts in where it finds the three; its
// gradient.
#include <limits>

#include "floating.hpp"
#include "softmax.hpp"
#include "xtape/ops.hpp"

namespace xtape {

namespace {
const Op& masked_softmax_grad_op() {
  static const Op row = [] {
    Op op;
    op.name = "masked_softmax_grad";
    op.doc =
        "The gradient of masked_softmax for x, from its output: dx = y * (dy - sum(dy * y)) / divisor, the sum along "
        "the "
        "last axis. Zero where the mask was true, as y is.";
    op.inputs = {{"y", Accept::floating}, {"dy", Accept::floating}, {"divisor", Accept::floating}};
    op.outputs = {"dx"};
    op.shape = [](const Call& call) {
      without_last(call.shape(0));
      require_shape(call, 1, call.shape(0), "that of y");
      require_shape(call, 2, {}, "a single number");
      return std::vector<ValueType>{call.inputs[0]};
    };
    op.kernel = [](const KernelCall& call) {
      const AxisExtent extent = AxisExtent::of(call.shape(0), call.shape(0).size() - 1);
      const int threads = call.threads;
      return with_floating(call.dtype(0), [&](auto scalar) {
        using T = decltype(scalar);
        return Kernel{[extent, threads](const Frame& frame) {
          softmax_grad<T>(in<T>(frame, 0), in<T>(frame, 1), out<T>(frame, 0), T{1} / *in<T>(frame, 2), extent, nullptr,
                          threads);
        }};
      });
    };
    op.expand = [](const ExpandCall& call) {
      const Var& y = call.inputs[0];
      const Var& dy = call.inputs[1];
      return Vars{y * (dy - sum(dy * y, {-1}, true)) / call.inputs[2]};
    };
    op.overwrites = {1, 0};
    return op;
  }();
  return row;
}

const Op& masked_softmax_op() {
  static const Op row = [] {
    Op op;
    op.name = "masked_softmax";
    op.doc =
        "y = softmax(masked_fill(x / divisor, mask, -inf)) along the last axis, in one kernel: attention's scale, mask "
        "and "
        "softmax. The mask broadcasts to x. The player puts it in for the three; write those.";
    op.inputs = {{"x", Accept::floating}, {"divisor", Accept::floating}, {"mask", Accept::mask}};
    op.shape = [](const Call& call) {
      without_last(call.shape(0));
      require_shape(call, 1, {}, "a single number");
      if (broadcast_shapes({call.shape(0), call.shape(2)}) != call.shape(0))
        throw ShapeError("a mask of shape " + to_string(call.shape(2)) + " does not broadcast to " +
                         to_string(call.shape(0)) + ", the shape of x");
      return std::vector<ValueType>{call.inputs[0]};
    };
    op.kernel = [](const KernelCall& call) {
      const Layout x = call.in[0];
      const Layout mask = call.in[2].broadcast_to(call.shape(0));
      const int threads = call.threads;
      return with_floating(call.dtype(0), [&](auto scalar) {
        using T = decltype(scalar);
        return Kernel{[x, mask, threads](const Frame& frame) {
          masked_softmax<T>(in<T>(frame, 0), x, *in<T>(frame, 1), in<bool>(frame, 2), mask, out<T>(frame, 0), threads);
        }};
      });
    };
    op.expand = [](const ExpandCall& call) {
      const Var scaled = call.inputs[0] / call.inputs[1];
      return Vars{softmax(masked_fill(scaled, call.inputs[2], -std::numeric_limits<double>::infinity()))};
    };
    op.gradient = [](const GradientCall& call) {
      if (call.needs[1]) return Vars{};
      return Vars{apply(masked_softmax_grad_op(), {call.outputs[0], call.cotangent(), call.inputs[1]})[0], Var(),
                  Var()};
    };
    op.fuses = {{{{Dtype::float32, {2, 3, 4}}, {Dtype::float32, {}}, {Dtype::boolean, {3, 4}}}}};
    op.overwrites = {0};
    op.strided_in = true;
    return op;
  }();
  return row;
}
}  // namespace

void list_masked_softmax(OpTable& table) {
  table.add(masked_softmax_op());
  table.add(masked_softmax_grad_op());
}

}  // namespace xtape
