#include <algorithm>

#include "onnx/operators.hpp"
#include "xtape/ops.hpp"
#include "xtape/ops/indexing.hpp"

namespace xtape::onnx {

namespace {
Shape shape_from(const Integers& sizes) {
  return Shape(sizes.begin(), sizes.end());
}

/// A size of 0 means the size of the same axis of the input, unless `allowzero` is set.
Vars reshaped(NodeCall& node) {
  const Var& x = node.at(0);
  const auto given = node.integers("shape", std::size_t{1});
  if (!given) node.fail("there is no shape");
  Shape shape = shape_from(*given);
  const bool zero_is_zero = node.flag("allowzero", false);
  for (std::size_t i = 0; i < shape.size() && !zero_is_zero; ++i)
    if (shape[i] == 0) shape[i] = x.size(static_cast<std::int64_t>(i));
  return {reshape(x, shape)};
}

Vars flattened(NodeCall& node) {
  const Var& x = node.at(0);
  const auto rank = static_cast<std::int64_t>(x.rank());
  const std::int64_t axis = node.integer("axis", 1);
  if (axis < -rank || axis > rank) node.fail("x has no axis " + std::to_string(axis));
  const auto first = x.shape().begin() + (axis < 0 ? axis + rank : axis);
  return {reshape(x, {count_of(Shape(x.shape().begin(), first)), count_of(Shape(first, x.shape().end()))})};
}

Vars transposed(NodeCall& node) {
  return {transpose(node.at(0), node.integers("perm", Integers{}))};
}

Vars squeezed(NodeCall& node) {
  return {squeeze(node.at(0), node.integers("axes", std::size_t{1}).value_or(Integers{}))};
}

/// The axes refer to the result.
Vars unsqueezed(NodeCall& node) {
  Var x = node.at(0);
  auto axes = node.integers("axes", std::size_t{1});
  if (!axes) node.fail("there are no axes");
  for (std::int64_t& axis : *axes) axis = static_cast<std::int64_t>(normal_axis(axis, x.rank() + axes->size()));
  std::sort(axes->begin(), axes->end());
  if (std::adjacent_find(axes->begin(), axes->end()) != axes->end()) node.fail("an axis occurs twice");
  for (const std::int64_t axis : *axes) x = expand_dims(x, axis);
  return {x};
}

/// Splits into the given sizes, or into as many equal parts as there are outputs. The last part may be smaller.
Vars parts(NodeCall& node) {
  const Var& x = node.at(0);
  const std::int64_t axis = node.integer("axis", 0), size = x.size(axis);
  for (std::size_t i = 0; i < node.outputs(); ++i) node.set_element(i, node.element(0));
  if (const auto sizes = node.integers("split", std::size_t{1})) return split(x, *sizes, axis);
  const std::int64_t count = node.integer("num_outputs", static_cast<std::int64_t>(node.outputs()));
  if (count < 1 || static_cast<std::uint64_t>(count) != node.outputs())
    node.fail("num_outputs is " + std::to_string(count) + ", but there are " + std::to_string(node.outputs()) +
              " outputs");
  const std::int64_t part = size / count + (size % count != 0 ? 1 : 0);
  std::vector<std::int64_t> sizes;
  for (std::int64_t i = 0, left = size; i < count; ++i, left -= sizes.back()) sizes.push_back(std::min(part, left));
  return split(x, sizes, axis);
}

Vars sliced(NodeCall& node) {
  const Var& x = node.at(0);
  const auto starts = node.integers("starts", std::size_t{1}), ends = node.integers("ends", std::size_t{2});
  const auto axes = node.integers("axes", std::size_t{3}), steps = node.integers("steps", std::size_t{4});
  if (!starts || !ends || starts->size() != ends->size() || (axes && axes->size() != starts->size()) ||
      (steps && steps->size() != starts->size()))
    node.fail("starts, ends, axes and steps must have one number for each axis that is cut");
  std::vector<std::int64_t> start(x.rank(), 0), stop(x.rank(), open_end), step(x.rank(), 1);
  for (std::size_t i = 0; i < starts->size(); ++i) {
    const std::size_t axis = normal_axis(axes ? (*axes)[i] : static_cast<std::int64_t>(i), x.rank());
    step[axis] = steps ? (*steps)[i] : 1;
    start[axis] = (*starts)[i];
    stop[axis] = (*ends)[i];
    // For a negative step: an end before the first element means no end, so the slice includes this element. The
    // largest integer means the end of the axis, but `slice` would read it as no end.
    if (step[axis] < 0 && stop[axis] == open_end)
      --stop[axis];
    else if (step[axis] < 0 && stop[axis] < -x.shape()[axis])
      stop[axis] = open_end;
  }
  return {slice(x, start, stop, step)};
}

Vars expanded(NodeCall& node) {
  const Var& x = node.at(0);
  return {broadcast_to(x, broadcast_shapes({x.shape(), shape_from(node.known_integers(1))}))};
}

Vars tiled(NodeCall& node) {
  return {tile(node.at(0), node.known_integers(1))};
}

/// Pads an axis with elements of x: "wrap" repeats x, "reflect" repeats x and its mirror image.
Var padded_by_index(NodeCall& node, const Var& x, std::size_t axis, std::int64_t before, std::int64_t after,
                    bool mirrors) {
  const std::int64_t size = x.shape()[axis];
  if (before == 0 && after == 0) return x;
  if (size == 0 || std::max({size, before, after}) > most_numbers)
    node.fail("axis " + std::to_string(axis) + " of " + std::to_string(size) + " elements cannot be padded by " +
              std::to_string(before) + " and " + std::to_string(after) + " of its elements");
  const std::int64_t period = mirrors ? std::max(2 * (size - 1), std::int64_t{1}) : size;
  Integers places;
  for (std::int64_t at = -before; at < size + after; ++at) {
    const std::int64_t place = (at % period + period) % period;
    places.push_back(mirrors ? std::min(place, period - place) : place);
  }
  return take(x, constant_integers(node.tape(), places), static_cast<std::int64_t>(axis));
}

/// Pads x with its own elements. xtape's `pad` takes each of them once, but here, as in NumPy, a padding may be longer
/// than its axis.
Var padded_from_itself(NodeCall& node, Var x, const Integers& before, const Integers& after, const std::string& mode) {
  const bool mirrors = mode == "reflect";
  bool once = true;
  for (std::size_t axis = 0; axis < x.rank(); ++axis)
    once =
        once && std::max(before[axis], after[axis]) <= std::max(x.shape()[axis] - (mirrors ? 1 : 0), std::int64_t{0});
  if (mode == "edge" || once) return pad(x, before, after, mode);
  for (std::size_t axis = 0; axis < x.rank(); ++axis)
    x = padded_by_index(node, x, axis, before[axis], after[axis], mirrors);
  return x;
}

/// Negative paddings cut off elements.
Vars padded(NodeCall& node) {
  const Var& x = node.at(0);
  const std::string mode = node.text("mode", "constant");
  if (mode != "constant" && mode != "edge" && mode != "reflect" && mode != "wrap")
    node.fail("mode '" + mode + "' is not known");
  const auto pads = node.integers(node.opset() < 2 ? "paddings" : "pads", std::size_t{1});
  Integers axes;
  for (std::size_t i = 0; i < x.rank(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (node.has(3)) axes = node.known_integers(3);
  if (!pads || pads->size() != 2 * axes.size()) node.fail("pads must have two numbers for each axis");
  std::vector<std::int64_t> before(x.rank(), 0), after(x.rank(), 0), start(x.rank(), 0), stop(x.rank(), open_end);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const std::size_t axis = normal_axis(axes[i], x.rank());
    const std::int64_t front = (*pads)[i], back = (*pads)[i + axes.size()];
    before[axis] = std::max(front, std::int64_t{0});
    after[axis] = std::max(back, std::int64_t{0});
    if (front < 0) start[axis] = -std::max(front, -x.shape()[axis]);
    if (back < 0) stop[axis] = std::max(back, -x.shape()[axis]);
  }
  const Var cut = slice(x, start, stop);
  if (mode != "constant") {
    node.optional(2);  // the value has no effect
    return {padded_from_itself(node, cut, before, after, mode)};
  }
  if (!node.has(2)) return {pad(cut, before, after, node.real("value", 0))};
  // The value may be any var. It fills the places where the padded array of true is false.
  const Var inside = pad(full(node.tape(), cut.shape(), 1, Dtype::boolean), before, after);
  return {where(inside, pad(cut, before, after), reshape(node.at(2), {}))};
}

/// Rearranges [b, c, h, w] to [b, c / n², h n, w n] for blocks of size n.
Vars depth_to_space(NodeCall& node) {
  const NamedSizes block = {{"n", node.integer("blocksize")}, {"m", node.integer("blocksize")}};
  const bool columns_first = node.text("mode", "DCR") == "CRD";
  return {rearrange(node.at(0), columns_first ? "b (c n m) h w -> b c (h n) (w m)" : "b (n m c) h w -> b c (h n) (w m)",
                    block)};
}

Vars space_to_depth(NodeCall& node) {
  const NamedSizes block = {{"n", node.integer("blocksize")}, {"m", node.integer("blocksize")}};
  return {rearrange(node.at(0), "b c (h n) (w m) -> b (n m c) h w", block)};
}

Vars triangle(NodeCall& node) {
  const std::int64_t k = node.has(1) ? node.known_integer(1) : 0;
  return {node.flag("upper", true) ? triu(node.at(0), k) : tril(node.at(0), k)};
}
}  // namespace

const Operators& shape_operators() {
  static const Operators operators = {
      {"Concat",
       [](NodeCall& node) -> Vars {
         const bool has_default = node.opset() < 4;
         return {concat(node.all(), has_default ? node.integer("axis", 1) : node.integer("axis"))};
       }},
      {"DepthToSpace", depth_to_space},
      {"Expand", expanded},
      {"Flatten", flattened},
      {"Pad", padded},
      {"Reshape", reshaped},
      {"Slice", sliced},
      {"SpaceToDepth", space_to_depth},
      {"Split", parts},
      {"Squeeze", squeezed},
      {"Tile", tiled},
      {"Transpose", transposed},
      {"Trilu", triangle},
      {"Unsqueeze", unsqueezed},
  };
  return operators;
}

}  // namespace xtape::onnx
