// Ops that reorder, move or repeat elements, and arrays of constant elements.
#include <algorithm>
#include <limits>

#include "onnx/writing.hpp"
#include "xtape/index.hpp"

namespace xtape::onnx {

namespace {
Names reshaped(const WriteCall& call) {
  return {call.reshaped(call.inputs[0], call.type().shape)};
}

Names transposed(const WriteCall& call) {
  Integers axes = call.integers("axes");
  for (std::int64_t& axis : axes) axis = static_cast<std::int64_t>(normal_axis(axis, call.shape().size()));
  for (std::size_t i = call.shape().size(); axes.size() < call.shape().size();)
    axes.push_back(static_cast<std::int64_t>(--i));
  return {call.transposed(call.inputs[0], axes)};
}

Names broadcast(const WriteCall& call) {
  const Shape& shape = call.type().shape;
  return {call.add("Expand", {call.inputs[0], call.list(Integers(shape.begin(), shape.end()))})};
}

// the end of a slice that goes backwards through the first element
constexpr std::int64_t before_all = std::numeric_limits<std::int64_t>::min() + 1;

/// x[start:stop:step]. As in Python, ends beyond the array are cut off.
Names sliced(const WriteCall& call) {
  Integers start = call.integers("start"), stop = call.integers("stop"), step = call.integers("step"), axes;
  const std::size_t count = std::max({start.size(), stop.size(), step.size()});
  step.resize(count, 1);
  stop.resize(count, open_end);
  for (std::size_t i = 0; i < count; ++i) {
    if (i == start.size()) start.push_back(step[i] > 0 ? 0 : open_end);
    if (step[i] < 0 && stop[i] == open_end) stop[i] = before_all;
    axes.push_back(static_cast<std::int64_t>(i));
  }
  if (axes.empty()) return {call.inputs[0]};
  return {call.add("Slice", {call.inputs[0], call.list(start), call.list(stop), call.list(axes), call.list(step)})};
}

Names flipped(const WriteCall& call) {
  Integers axes = call.integers("axis");
  for (std::int64_t& axis : axes) axis = static_cast<std::int64_t>(normal_axis(axis, call.shape().size()));
  if (axes.empty())
    for (std::size_t i = 0; i < call.shape().size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (axes.empty()) return {call.inputs[0]};
  const Integers starts(axes.size(), -1), steps(axes.size(), -1), ends(axes.size(), before_all);
  return {call.add("Slice", {call.inputs[0], call.list(starts), call.list(ends), call.list(axes), call.list(steps)})};
}

/// Moves the two axes of the diagonal to the end, merges them, and takes every (n + 1)th element.
Names diagonal(const WriteCall& call) {
  const std::int64_t a = call.axis("axis1"), b = call.axis("axis2"), n = call.shape()[static_cast<std::size_t>(a)];
  Integers axes;
  Shape flat;
  for (std::size_t i = 0; i < call.shape().size(); ++i)
    if (const auto axis = static_cast<std::int64_t>(i); axis != a && axis != b) {
      axes.push_back(axis);
      flat.push_back(call.shape()[i]);
    }
  const auto last = std::ssize(axes);
  axes.insert(axes.end(), {a, b});
  flat.push_back(n * n);
  const std::string x = call.reshaped(call.transposed(call.inputs[0], axes), flat);
  return {call.add("Slice", {x, call.list({0}), call.list({n * n}), call.list({last}), call.list({n + 1})})};
}

/// Gathers the elements of the windows by their indices along the axis. Then moves the new axis to the end.
Names windows(const WriteCall& call) {
  const std::int64_t axis = call.axis(), size = call.integer("size"), stride = call.integer("stride"),
                     dilation = call.integer("dilation"), count = call.type().shape[static_cast<std::size_t>(axis)];
  Array places(Dtype::int64, {count, size});
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t k = 0; k < size; ++k) places.as<std::int64_t>()[i * size + k] = i * stride + k * dilation;
  const std::string found =
      call.add("Gather", {call.inputs[0], call.graph.shared().constant(places)}, {{"axis", axis}});
  Integers axes;
  for (std::int64_t i = 0; i < std::ssize(call.type().shape); ++i)
    if (i != axis + 1) axes.push_back(i);
  axes.push_back(axis + 1);
  return {call.transposed(found, axes)};
}

Names concat(const WriteCall& call) {
  return {call.add("Concat", call.inputs, {{"axis", call.axis()}})};
}

Names stack(const WriteCall& call) {
  const auto axis = static_cast<std::int64_t>(normal_axis(call.integer("axis"), call.type().shape.size()));
  Names parts;
  for (const std::string& each : call.inputs) parts.push_back(call.add("Unsqueeze", {each, call.list({axis})}));
  return {call.add("Concat", parts, {{"axis", axis}})};
}

Names padded(const WriteCall& call) {
  Integers pads = call.integers("before");
  const Integers& after = call.integers("after");
  pads.insert(pads.end(), after.begin(), after.end());
  const Dtype dtype = call.type().dtype;
  const Dtype wide = number_dtype(dtype);
  if (pads.empty()) return {call.inputs[0]};
  const std::string x = call.cast(call.inputs[0], dtype, wide);
  return {call.cast(call.add("Pad", {x, call.list(pads), call.scalar(call.attributes.number("value"), wide)}), wide,
                    dtype)};
}

/// Reshapes a row of indices to lie along the axis and broadcasts it.
Names iota(const WriteCall& call) {
  const Shape& shape = call.type().shape;
  if (shape.empty()) return {call.scalar(0, call.type().dtype)};
  const std::size_t axis = normal_axis(call.integer("axis"), shape.size());
  Shape line = Shape::filled(shape.size(), 1);
  line[axis] = shape[axis];
  Array indices(Dtype::int64, line);
  for (std::int64_t i = 0; i < indices.count(); ++i) indices.as<std::int64_t>()[i] = i;
  const std::string row = call.cast(call.graph.shared().constant(indices), Dtype::int64, call.type().dtype);
  if (line == shape) return {row};
  return {call.add("Expand", {row, call.list(Integers(shape.begin(), shape.end()))})};
}
}  // namespace

const WriterRows& shape_writers() {
  static const WriterRows rows = {
      {"broadcast_to", broadcast}, {"concat", concat},    {"diagonal", diagonal}, {"expand_dims", reshaped},
      {"flip", flipped},           {"iota", iota},        {"pad", padded},        {"reshape", reshaped},
      {"slice", sliced},           {"squeeze", reshaped}, {"stack", stack},       {"transpose", transposed},
      {"windows", windows}};
  return rows;
}

}  // namespace xtape::onnx
