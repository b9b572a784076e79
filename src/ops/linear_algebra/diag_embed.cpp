// Diagonals and triangles of matrices: diag_embed writes vectors to diagonals, and diagonal reads them back; tril and
// triu.
#include <algorithm>

#include "ops/recording/op_helpers.hpp"

namespace xtape {

namespace {
/// Returns the two axes of a diagonal, counted from the front. Throws ShapeError if they are equal or have different
/// sizes.
std::pair<std::size_t, std::size_t> diagonal_axes(const OpCall& call) {
  const Shape& from = call.shape(0);
  const std::size_t first = normal_axis(call.integer("axis1"), from.size());
  const std::size_t second = normal_axis(call.integer("axis2"), from.size());
  if (first == second || from[first] != from[second])
    throw ShapeError("needs two axes of one size, got axes " + std::to_string(first) + " and " +
                     std::to_string(second) + " of " + to_string(from));
  return {first, second};
}

Vars batch_diagonal(const BatchCall& call) {
  const auto behind_batch = [&](const char* name) {
    return static_cast<std::int64_t>(normal_axis(call.integer(name), call.rank())) + 1;
  };
  return {diagonal(call.inputs[0], behind_batch("axis1"), behind_batch("axis2"))};
}

const Op& diagonal_op() {
  static const Op entry{
      .name = "diagonal",
      .doc = R"(The diagonal along two axes of equal size: y[..., i] is the element of x with index i along both. The
           other axes come first, in their order. A view: nothing is copied.)",
      .inputs = {{"x", Accept::any}},
      .attributes = {{"axis1", AttributeType::integer, "The first axis of the diagonal.", std::nullopt},
                     {"axis2", AttributeType::integer, "The second axis of the diagonal.", std::nullopt}},
      .shape =
          +[](const OpCall& call) {
            const auto [first, second] = diagonal_axes(call);
            Shape shape;
            for (std::size_t i = 0; i < call.shape(0).size(); ++i)
              if (i != first && i != second) shape.push_back(call.shape(0)[i]);
            shape.push_back(call.shape(0)[first]);
            return std::vector<ValueType>{{call.dtype(0), shape}};
          },
      .gradient =
          +[](const GradientCall& call) {
            const auto rank = static_cast<std::int64_t>(call.inputs[0].rank());
            const auto first =
                static_cast<std::int64_t>(normal_axis(call.integer("axis1"), static_cast<std::size_t>(rank)));
            const auto second =
                static_cast<std::int64_t>(normal_axis(call.integer("axis2"), static_cast<std::size_t>(rank)));
            Axes order;  // moves the last two axes of the embedded cotangent to axis1 and axis2
            for (std::int64_t axis = 0, next = 0; axis < rank; ++axis)
              order.push_back(axis == first ? rank - 2 : axis == second ? rank - 1 : next++);
            return Vars{transpose(diag_embed(call.cotangent()), order)};
          },
      .batch = batch_diagonal,
      .lowering = {.view = {.output = +[](const OpCall& call, const Layout& layout) {
                     const auto [first, second] = diagonal_axes(call);
                     Layout result{call.outputs[0].shape, {}, layout.offset};
                     for (std::size_t i = 0; i < layout.shape.size(); ++i)
                       if (i != first && i != second) result.strides.push_back(layout.strides[i]);
                     result.strides.push_back(layout.strides[first] + layout.strides[second]);
                     return std::optional<Layout>(result);
                   }}}};
  return entry;
}

const Op& diag_embed_op() {
  static const Op entry{
      .name = "diag_embed",
      .doc =
          R"(Square matrices with the vectors along the last axis of x as diagonals: y[..., i, j] is x[..., i] where i
           = j, else 0.)",
      .inputs = {{"x", Accept::any}},
      .shape =
          +[](const OpCall& call) {
            Shape shape = call.shape(0);
            if (shape.empty()) throw ShapeError("needs at least one axis, got an array of shape ()");
            shape.push_back(shape.back());
            return std::vector<ValueType>{{call.dtype(0), shape}};
          },
      .gradient = +[](const GradientCall& call) { return Vars{diagonal(call.cotangent(), -2, -1)}; },
      .batch = batch_leading,
      .expand =
          +[](const ExpandCall& call) {
            const Var& x = call.inputs[0];
            const Var on_diagonal = eye(call.tape, x.size(-1), x.size(-1), Dtype::boolean);
            return Vars{where(on_diagonal, expand_dims(x, -1), zeros(call.tape, {}, x.dtype()))};
          },
      .lowering = {.kernel = kernel_by_name, .layouts = {.any_in = true, .any_out = true}}};
  return entry;
}
}  // namespace

Var diagonal(const Argument& x, std::int64_t axis1, std::int64_t axis2) {
  return apply(diagonal_op(), {x}, {{"axis1", axis1}, {"axis2", axis2}})[0];
}
Var diag_embed(const Argument& x) {
  return apply(diag_embed_op(), {x})[0];
}

// tril and triu: the lower and upper triangles of matrices.

namespace {
/// Returns the diagonal, clamped to [-rows, columns]. Clamping does not change which elements are kept.
std::int64_t diagonal_of(const Attributes& attributes, const Shape& shape) {
  return std::clamp(attributes.get<std::int64_t>("diagonal"), -shape[shape.size() - 2], shape.back());
}

Op triangle(const std::string& name, const std::string& side, const std::string& relation, bool lower) {
  Op op;
  op.name = name;
  op.doc = "The " + side +
           " triangle of the matrices along the last two axes: y[..., i, j] is x[..., i, j] where j - i " + relation +
           " diagonal, else 0.";
  op.inputs = {{"x", Accept::any}};
  op.attributes = {{"diagonal", AttributeType::integer,
                    "The outermost diagonal that is kept: 0 is the main diagonal, positive numbers are above it.",
                    std::int64_t{0}}};
  op.shape = +[](const OpCall& call) {
    if (call.shape(0).size() < 2)
      throw ShapeError("needs at least two axes, got an array of shape " + to_string(call.shape(0)));
    return std::vector<ValueType>{call.inputs[0]};
  };
  op.lowering.kernel = kernel_by_name;
  op.gradient = [lower](const GradientCall& call) {
    const auto diagonal = call.integer("diagonal");
    return Vars{lower ? tril(call.cotangent(), diagonal) : triu(call.cotangent(), diagonal)};
  };
  op.batch = batch_leading;
  op.expand = [lower](const ExpandCall& call) {
    const Var& x = call.inputs[0];
    const std::int64_t diagonal = diagonal_of(call.attributes, x.shape());
    const Var across = iota(call.tape, {1, x.size(-1)}, 1), down = iota(call.tape, {x.size(-2), 1}, 0);
    const Var kept = lower ? across - down <= diagonal : across - down >= diagonal;
    return Vars{where(kept, x, zeros(call.tape, {}, x.dtype()))};
  };
  op.lowering.overwrites = {0};
  return op;
}

const Op& tril_op() {
  static const Op entry = triangle("tril", "lower", "<=", true);
  return entry;
}
const Op& triu_op() {
  static const Op entry = triangle("triu", "upper", ">=", false);
  return entry;
}
}  // namespace

Var tril(const Argument& x, std::int64_t diagonal) {
  return apply(tril_op(), {x}, {{"diagonal", diagonal}})[0];
}
Var triu(const Argument& x, std::int64_t diagonal) {
  return apply(triu_op(), {x}, {{"diagonal", diagonal}})[0];
}

void list_diag_embed(OpTable& table) {
  table.add(diagonal_op());
  table.add(diag_embed_op());
  table.add(tril_op());
  table.add(triu_op());
}

}  // namespace xtape
