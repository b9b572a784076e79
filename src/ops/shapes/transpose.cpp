// transpose: a view with the axes in another order.
#include "ops/recording/batching.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"

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
  for (const std::size_t axis : order_of(call.attributes().get<std::vector<std::int64_t>>("axes"), call.rank()))
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
          [](const OpCall& call) {
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
          [](const GradientCall& call) {
            const std::size_t rank = call.inputs[0].rank();
            const std::vector<std::size_t> order =
                order_of(call.attributes().get<std::vector<std::int64_t>>("axes"), rank);
            std::vector<std::int64_t> inverse(rank);
            for (std::size_t i = 0; i < rank; ++i) inverse[order[i]] = static_cast<std::int64_t>(i);
            return Vars{transpose(call.cotangent(), inverse)};
          },
      .batch = batch_transposed,
      .lowering = {.view =
                       [](const OpCall& call, const Layout& layout) {
                         Layout result{{}, {}, layout.offset};
                         for (std::size_t axis : order_of(call.integers("axes"), layout.shape.size())) {
                           result.shape.push_back(layout.shape[axis]);
                           result.strides.push_back(layout.strides[axis]);
                         }
                         return std::optional<Layout>(result);
                       },
                   .unview =
                       [](const OpCall& call, const Layout& layout) {
                         const auto order = order_of(call.integers("axes"), layout.shape.size());
                         Layout result{layout.shape, layout.strides, layout.offset};
                         for (std::size_t i = 0; i < layout.shape.size(); ++i) {
                           result.shape[order[i]] = layout.shape[i];
                           result.strides[order[i]] = layout.strides[i];
                         }
                         return std::optional<Layout>(result);
                       }}};
  return entry;
}
}  // namespace

Var transpose(const Argument& x, const Axes& axes) {
  return apply(transpose_op(), {x}, {{"axes", axes}})[0];
}

void list_transpose(OpTable& table) {
  table.add(transpose_op());
}

}  // namespace xtape
