// broadcast_to, a view that repeats axes of size 1, and its adjoint.
#include "ops/recording/batching.hpp"
#include "ops/recording/op_helpers.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"

namespace xtape {

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
          [](const OpCall& call) {
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
      .gradient = [](const GradientCall& call) { return Vars{sum_to(call.cotangent(), call.inputs[0].shape())}; },
      .batch =
          [](const BatchCall& call) {
            Shape shape = call.node.outputs[0].shape;
            Var x = call.inputs[0];  // mapped, because it is the only input
            Shape aligned = x.shape();
            while (aligned.size() <= shape.size()) aligned.insert(1, 1);
            shape.insert(0, call.size);
            return Vars{broadcast_to(reshape(x, aligned), shape)};
          },
      .lowering = {.view = [](const OpCall& call, const Layout& layout) {
        return std::optional<Layout>(layout.broadcast_to(call.outputs[0].shape));
      }}};
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

void list_broadcast_to(OpTable& table) {
  table.add(broadcast_to_op());
}

}  // namespace xtape
