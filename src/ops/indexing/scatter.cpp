// Ops that gather elements from, and scatter elements to, one or several axes. All of them compute indices of the flat
// array, or of its first axis, and then record take, index_add or index_reduce.
#include "ops/indexing/scatter.hpp"

#include <utility>

#include "ops/recording/op_helpers.hpp"
#include "xtape/ops/indexing.hpp"

namespace xtape {

namespace {
/// Merges the first k axes of x into one. Returns row-major indices into the merged axis for the indices [..., k] of
/// these axes.
Var flat_indices(const Var& indices, const Shape& x) {
  Var flat;
  const Vars along = unstack(indices, -1);
  for (std::size_t i = 0; i < along.size(); ++i) {
    const Var each = checked_indices(along[i], x[i]);
    flat = i == 0 ? each : flat * x[i] + each;
  }
  return flat;
}
/// Returns x with its first k axes merged into one.
Var joined_axes(const Var& x, std::int64_t k) {
  Shape shape = x.shape();
  for (; k > 1; --k) {
    shape[0] *= shape[1];
    shape.erase(1);
  }
  return reshape(x, shape);
}

Vars expand_gather_nd(const ExpandCall& call) {
  const Var &x = call.inputs[0], &indices = call.inputs[1];
  return {take(joined_axes(x, indices.size(-1)), flat_indices(indices, x.shape()))};
}
Vars expand_scatter_nd(const ExpandCall& call) {
  const Var &x = call.inputs[0], &indices = call.inputs[1];
  const Var y = combined_at(joined_axes(x, indices.size(-1)), flat_indices(indices, x.shape()), call.inputs[2],
                            call.text("reduce"));
  return {reshape(y, x.shape())};
}

/// Expands the op on the part of x that the indices reach.
Vars expand_scatter_reduce(const ExpandCall& call) {
  const Var &x = call.inputs[0], &indices = call.inputs[1];
  const auto axis = static_cast<std::int64_t>(normal_axis(call.integer("axis"), x.rank()));
  const Shape reached = reached_shape(x.shape(), indices.shape(), axis);
  const bool all = reached == x.shape();
  const std::vector<std::int64_t> from(x.rank(), 0), to(reached.begin(), reached.end());
  const Var y = combined_at(all ? x : slice(x, from, to), checked_indices(indices, x.size(axis)), call.inputs[2],
                            call.text("reduce"), call.flag("include_self"), axis);
  return {all ? y : update_slice(x, y, from)};
}

Vars expand_take_along_axis(const ExpandCall& call) {
  Var x = call.inputs[0], indices = call.inputs[1];
  const std::size_t axis = normal_axis(call.integer("axis"), x.rank());
  const std::int64_t size = x.shape()[axis];
  Shape of_x = call.node.outputs[0].shape, of_indices = of_x;
  of_x[axis] = size;
  of_indices[axis] = indices.shape()[axis];
  indices = checked_indices(indices, size);
  return {gather(broadcast_to(x, of_x), static_cast<std::int64_t>(axis), broadcast_to(indices, of_indices))};
}

Vars expand_index_select(const ExpandCall& call) {
  const Var& x = call.inputs[0];
  const std::int64_t axis = call.integer("axis");
  return {take(x, checked_indices(call.inputs[1], x.size(axis)), axis)};
}

constexpr AttributeRow axis_row{"axis", "The axis of x that is indexed.", 0, AttributeType::integer};

const ComposedRow take_along_rows[] = {
    {"take_along_axis",
     "=x #indices",
     "The elements of x with the given indices along `axis`. The other axes of x and of the indices broadcast. With "
     "axis 1 of two axes, y[a, b] = x[a, indices[a, b]]. Indices below 0 count from the end.",
     expand_take_along_axis,
     {{axis_row}}}};
const ComposedRow select_rows[] = {
    {"index_select",
     "=x #indices",
     "The slices of x with the given indices [k] along `axis`. Indices below 0 count from the end.",
     expand_index_select,
     {{axis_row}}}};
const ComposedRow gather_nd_rows[] = {
    {"gather_nd", "=x #indices",
     "The slices of x at the indices [..., k] of its first k axes, as ONNX's GatherND: y[i…] = x[indices[i…, 0], …, "
     "indices[i…, k - 1]]. Indices below 0 count from the end.",
     expand_gather_nd}};
const ComposedRow scatter_nd_rows[] = {{"scatter_nd", "=x #indices =part",
                                        "Combines the slices of `part` with the slices of x at the indices [..., k] of "
                                        "its first k axes, as ONNX's ScatterND. Indices below 0 count from the end.",
                                        expand_scatter_nd}};
const ComposedRow scatter_rows[] = {
    {"scatter_reduce",
     "=x #indices =part",
     "Combines the elements of `part` with the elements of x at the indices along `axis`, as torch.scatter_reduce. "
     "With axis 1 of two axes, y[a, indices[a, b]] is combined with part[a, b]. Except along `axis`, no axis of the "
     "indices may be longer than the axis of x. Indices below 0 count from the end.",
     expand_scatter_reduce,
     {{axis_row, {"include_self", "If true, the indexed elements of x also count.", 1, AttributeType::boolean}}}}};

/// Returns the attribute "reduce" with the default `initial`.
AttributeSpec reduce_attribute(const char* initial) {
  return {
      "reduce", AttributeType::text,
      "How elements at equal indices are combined: \"set\" (the last one), \"sum\", \"prod\", \"mean\", \"amax\" or "
      "\"amin\".",
      std::string(initial)};
}
void check_reduce(const OpCall& call) {
  require_reduction(call, {"set", "sum", "prod", "mean", "amax", "amin"});
}

std::vector<ValueType> take_along_type(const OpCall& call) {
  Shape x = call.shape(0), indices = call.shape(1);
  const std::size_t axis = axis_of(call);
  if (indices.size() != x.size())
    throw ShapeError("indices of shape " + to_string(indices) + " must have as many axes as x, " + to_string(x));
  x[axis] = 1;
  const std::int64_t picked = std::exchange(indices[axis], 1);
  Shape shape = broadcast_shapes({x, indices});
  shape[axis] = picked;
  return {{call.dtype(0), shape}};
}
std::vector<ValueType> select_type(const OpCall& call) {
  Shape shape = call.shape(0);
  if (call.shape(1).size() != 1)
    throw ShapeError("indices of shape " + to_string(call.shape(1)) + " must have one axis");
  shape[axis_of(call)] = call.shape(1)[0];
  return {{call.dtype(0), shape}};
}
/// Returns the shape of the slices of x at indices [..., k].
Shape nd_shape(const OpCall& call) {
  const Shape &x = call.shape(0), &indices = call.shape(1);
  if (indices.empty() || indices.back() < 1 || indices.back() > std::ssize(x))
    throw ShapeError("indices of shape " + to_string(indices) + " must have from 1 to " + std::to_string(x.size()) +
                     " numbers along their last axis, for x of shape " + to_string(x));
  Shape shape = without_last(indices);
  for (auto i = static_cast<std::size_t>(indices.back()); i < x.size(); ++i) shape.push_back(x[i]);
  return shape;
}
std::vector<ValueType> gather_nd_type(const OpCall& call) {
  return {{call.dtype(0), nd_shape(call)}};
}
std::vector<ValueType> scatter_nd_type(const OpCall& call) {
  check_reduce(call);
  require_shape(call, 2, nd_shape(call), "that of the slices at the indices");
  return {call.inputs[0]};
}
std::vector<ValueType> scatter_type(const OpCall& call) {
  check_reduce(call);
  reached_shape(call.shape(0), call.shape(1), call.integer("axis"));
  require_shape(call, 2, call.shape(1), "that of the indices");
  return {call.inputs[0]};
}
}  // namespace

Shape reached_shape(const Shape& x, const Shape& indices, std::int64_t axis) {
  const std::size_t at = normal_axis(axis, x.size());
  Shape reached = indices;
  bool fits = indices.size() == x.size();
  if (fits) reached[at] = x[at];
  for (std::size_t i = 0; fits && i < x.size(); ++i) fits = reached[i] <= x[i];
  if (!fits)
    throw ShapeError("indices of shape " + to_string(indices) + " must have the axes of x, " + to_string(x) +
                     ", none longer but axis " + std::to_string(at));
  return reached;
}

Var take_along_axis(const Argument& x, const Var& indices, std::int64_t axis) {
  return call_op("take_along_axis", {x, indices}, {{"axis", axis}});
}
Var index_select(const Argument& x, std::int64_t axis, const Var& indices) {
  return call_op("index_select", {x, indices}, {{"axis", axis}});
}
Var scatter(const Argument& x, std::int64_t axis, const Var& indices, const Var& part) {
  return scatter_reduce(x, axis, indices, part, "set");
}
Var scatter_reduce(const Argument& x, std::int64_t axis, const Var& indices, const Var& part, const std::string& reduce,
                   bool include_self) {
  return call_op("scatter_reduce", {x, indices, part},
                 {{"axis", axis}, {"reduce", reduce}, {"include_self", include_self}});
}
Var gather_nd(const Argument& x, const Var& indices) {
  return call_op("gather_nd", {x, indices});
}
Var scatter_nd(const Argument& x, const Var& indices, const Var& part, const std::string& reduce) {
  return call_op("scatter_nd", {x, indices, part}, {{"reduce", reduce}});
}

void list_scatter(OpTable& table) {
  static const std::vector<std::vector<Op>> families{
      composed(take_along_rows, take_along_type), composed(select_rows, select_type),
      composed(gather_nd_rows, gather_nd_type), composed(scatter_nd_rows, scatter_nd_type, {reduce_attribute("set")}),
      composed(scatter_rows, scatter_type, {reduce_attribute("sum")})};
  add_all(table, families);
}

}  // namespace xtape
