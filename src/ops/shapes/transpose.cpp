// Views: broadcast_to, and transpose with the axes in another order.
#include "ops/recording/op_helpers.hpp"

namespace xtape {

namespace {
/// Returns for each axis of the output the axis of the input. Empty `axes` reverse the order.
std::vector<std::size_t> order_of(const std::vector<std::int64_t>& axes, std::size_t rank) {
  std::vector<std::size_t> order;
  order.reserve(rank);
  if (axes.empty())
    for (std::size_t i = rank; i-- > 0;) order.push_back(i);
  for (std::int64_t axis : axes) order.push_back(normal_axis(axis, rank));
  return order;
}

Vars batch_transposed(const BatchCall& call) {
  Axes order{0};
  for (const std::size_t axis : order_of(call.integers("axes"), call.rank()))
    order.push_back(static_cast<std::int64_t>(axis) + 1);
  return {transpose(call.inputs[0], order)};
}

const Op& transpose_op() {
  static const Op entry{
      .name = "transpose",
      .doc =
          R"(x with its axes in another order: axis i of the result is axis axes[i] of x. A view: nothing is copied.)",
      .inputs = {{"x", Accept::any}},
      .attributes = {{"axes", AttributeType::integers,
                      "Every axis of x once, in the new order. An empty list reverses the axes.",
                      std::vector<std::int64_t>{}}},
      .shape =
          +[](const OpCall& call) {
            const Shape& from = call.shape(0);
            const std::vector<std::size_t> order = order_of(call.integers("axes"), from.size());
            std::vector<bool> seen(from.size(), false);
            for (std::size_t axis : order) seen[axis] = true;
            for (bool each : seen)
              if (!each || order.size() != from.size())
                throw ShapeError("axes " + to_string(Attribute(call.integers("axes"))) + " must name each of the " +
                                 std::to_string(from.size()) + " axes of " + to_string(from) + " once");
            Shape shape;
            for (std::size_t axis : order) shape.push_back(from[axis]);
            return std::vector<ValueType>{{call.dtype(0), shape}};
          },
      .gradient =
          +[](const GradientCall& call) {
            const std::size_t rank = call.inputs[0].rank();
            const std::vector<std::size_t> order = order_of(call.integers("axes"), rank);
            std::vector<std::int64_t> inverse(rank);
            for (std::size_t i = 0; i < rank; ++i) inverse[order[i]] = static_cast<std::int64_t>(i);
            return Vars{transpose(call.cotangent(), inverse)};
          },
      .batch = batch_transposed,
      .lowering = {.view = {.output =
                                +[](const OpCall& call, const Layout& layout) {
                                  Layout result{{}, {}, layout.offset};
                                  for (std::size_t axis : order_of(call.integers("axes"), layout.shape.size())) {
                                    result.shape.push_back(layout.shape[axis]);
                                    result.strides.push_back(layout.strides[axis]);
                                  }
                                  return std::optional<Layout>(result);
                                },
                            .input =
                                +[](const OpCall& call, const Layout& layout) {
                                  const auto order = order_of(call.integers("axes"), layout.shape.size());
                                  Layout result{layout.shape, layout.strides, layout.offset};
                                  for (std::size_t i = 0; i < layout.shape.size(); ++i) {
                                    result.shape[order[i]] = layout.shape[i];
                                    result.strides[order[i]] = layout.strides[i];
                                  }
                                  return std::optional<Layout>(result);
                                }}}};
  return entry;
}
}  // namespace

Var transpose(const Argument& x, const Axes& axes) {
  return apply(transpose_op(), {x}, {{"axes", axes}})[0];
}

// broadcast_to, a view that repeats axes of size 1, and its adjoint.

namespace {
const Op& broadcast_to_op() {
  static const Op entry{
      .name = "broadcast_to",
      .doc =
          R"(x broadcast to `shape` as in NumPy. Axes are aligned from the last one; axes of size 1 and missing axes are
           repeated to the size in `shape`. A view: nothing is copied.)",
      .inputs = {{"x", Accept::any}},
      .attributes = {{"shape", AttributeType::integers, "The shape of the result.", std::nullopt}},
      .shape =
          +[](const OpCall& call) {
            const auto& sizes = call.integers("shape");
            const Shape shape(sizes.begin(), sizes.end());
            const Shape& from = call.shape(0);
            bool fits = from.size() <= shape.size();
            for (std::size_t i = 0; fits && i < from.size(); ++i)
              fits = from[i] == 1 || from[i] == shape[shape.size() - from.size() + i];
            for (std::int64_t size : shape) fits = fits && size >= 0;
            if (!fits)
              throw ShapeError("an array of shape " + to_string(from) + " does not broadcast to " + to_string(shape) +
                               ": counted from the back, its sizes must be 1 or those of that shape");
            return std::vector<ValueType>{{call.dtype(0), shape}};
          },
      .gradient = +[](const GradientCall& call) { return Vars{sum_to(call.cotangent(), call.inputs[0].shape())}; },
      .batch =
          +[](const BatchCall& call) {
            Shape shape = call.node.outputs[0].shape;
            Var x = call.inputs[0];  // mapped, because it is the only input
            Shape aligned = x.shape();
            while (aligned.size() <= shape.size()) aligned.insert(1, 1);
            shape.insert(0, call.size);
            return Vars{broadcast_to(reshape(x, aligned), shape)};
          },
      .lowering = {.view = {.output = +[](const OpCall& call, const Layout& layout) {
                     return std::optional<Layout>(layout.broadcast_to(call.outputs[0].shape));
                   }}}};
  return entry;
}
}  // namespace

Var broadcast_to(const Argument& x, const Shape& shape) {
  return apply(broadcast_to_op(), {x}, {{"shape", std::vector<std::int64_t>(shape.begin(), shape.end())}})[0];
}

Var sum_to(const Var& x, const Shape& shape) {
  const Shape from = x.shape();
  if (from == shape) return x;
  const std::size_t lead = from.size() - shape.size();
  Axes axes;
  for (std::size_t i = 0; i < from.size(); ++i)
    if (i < lead || (shape[i - lead] == 1 && from[i] != 1)) axes.push_back(static_cast<std::int64_t>(i));
  const Var total = sum(x, axes);
  return total.shape() == shape ? total : reshape(total, shape);
}

void list_transpose(OpTable& table) {
  table.add(transpose_op());
  table.add(broadcast_to_op());
}

}  // namespace xtape
