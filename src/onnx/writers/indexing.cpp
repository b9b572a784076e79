// Indices.
#include "onnx/expression.hpp"

namespace xtape::onnx {

namespace {
Names by_axis(const WriteCall& call) {
  return {call.add(call.row->name, call.inputs, {{"axis", call.axis()}})};
}

/// Converts indices below 0, which count from the end. Does not check the range of the other indices.
Names checked_indices(const WriteCall& call) {
  const std::string indices = call.cast(call.inputs[0], call.types[0].dtype, Dtype::int64);
  if (!call.flag("wrap")) return {indices};
  const std::string below = call.add("Less", {indices, call.scalar(0, Dtype::int64)});
  const std::string moved = call.add("Add", {indices, call.scalar(call.integer("size"), Dtype::int64)});
  return {call.add("Where", {below, moved, indices})};
}

const char* reduction_of(const WriteCall& call) {
  const xtape::Attribute* reduce = call.attributes.find("reduce");
  if (reduce == nullptr) return "add";
  const std::string& name = std::get<std::string>(*reduce);
  return name == "set" ? "none" : name == "prod" ? "mul" : name == "amax" ? "max" : "min";
}

Names scatter_elements(const WriteCall& call) {
  return {call.add("ScatterElements", call.inputs,
                   {{"axis", call.axis()}, {"reduction", std::string(reduction_of(call))}})};
}

/// Moves the axis of the slices to the front for the operator, and back afterwards.
Names scatter_slices(const WriteCall& call) {
  const auto rank = std::ssize(call.shape());
  const auto indexed = static_cast<std::int64_t>(call.shape(1).size());
  const std::int64_t axis = call.attributes.find("axis") == nullptr ? 0 : call.axis();
  Integers to_front = {axis}, part_axes, back;
  for (std::int64_t i = 0; i < rank; ++i)
    if (i != axis) to_front.push_back(i);
  for (std::int64_t i = 0; i < indexed; ++i) part_axes.push_back(axis + i);
  for (std::int64_t i = 0; i < rank - 1 + indexed; ++i)
    if (i < axis || i >= axis + indexed) part_axes.push_back(i);
  for (std::int64_t i = 1; i <= axis; ++i) back.push_back(i);
  back.push_back(0);
  for (std::int64_t i = axis + 1; i < rank; ++i) back.push_back(i);
  const std::string indices =
      call.add("Unsqueeze", {call.cast(call.inputs[1], call.types[1].dtype, Dtype::int64), call.list({indexed})});
  const std::string y = call.add(
      "ScatterND", {call.transposed(call.inputs[0], to_front), indices, call.transposed(call.inputs[2], part_axes)},
      {{"reduction", std::string(reduction_of(call))}});
  return {call.transposed(y, back)};
}

/// The start and step of the written part along each axis of x.
struct PartPlace {
  Integers start, step;
  std::vector<std::size_t> shorter;  // the axes along which the part has another size than x, or a step

  PartPlace(const WriteCall& call, const Shape& x, const Shape& part)
      : start(call.integers("start")), step(call.integers("step")) {
    start.resize(x.size(), 0);
    step.resize(x.size(), 1);
    for (std::size_t k = 0; k < x.size(); ++k) {
      if (start[k] < 0) start[k] += x[k];
      if (part[k] != x[k] || step[k] != 1) shorter.push_back(k);
    }
  }
};

/// Joins the slice of x before the part, the part, and the slice of x after it. If the part has a step other than 1, or
/// is shorter along several axes, scatters its elements to their places in the flat array instead.
Names update_slice(const WriteCall& call) {
  const Shape &x = call.shape(0), &part = call.shape(1);
  const PartPlace place(call, x, part);
  if (place.shorter.empty() || count_of(x) == 0) return {call.inputs[1]};
  const std::size_t axis = place.shorter[0];
  if (place.shorter.size() == 1 && place.step[axis] == 1) {
    const auto sliced = [&](std::int64_t from, std::int64_t to) {
      return call.add(
          "Slice", {call.inputs[0], call.list({from}), call.list({to}), call.list({static_cast<std::int64_t>(axis)})});
    };
    const std::int64_t end = place.start[axis] + part[axis];
    return {call.add("Concat", {sliced(0, place.start[axis]), call.inputs[1], sliced(end, x[axis])},
                     {{"axis", static_cast<std::int64_t>(axis)}})};
  }
  Array places(Dtype::int64, {count_of(part)});
  const Strides strides = dense_strides(x), part_strides = dense_strides(part);
  for (std::int64_t i = 0; i < places.count(); ++i) {
    std::int64_t rest = i, flat = 0;
    for (std::size_t k = 0; k < x.size(); ++k) {
      const std::int64_t at = rest / part_strides[k];
      rest -= at * part_strides[k];
      flat += (place.start[k] + at * place.step[k]) * strides[k];
    }
    places.as<std::int64_t>()[i] = flat;
  }
  const std::string y = call.add("ScatterElements",
                                 {call.reshaped(call.inputs[0], {count_of(x)}), call.graph.shared().constant(places),
                                  call.reshaped(call.inputs[1], {count_of(part)})},
                                 {{"axis", 0}});
  return {call.reshaped(y, x)};
}

/// Writes x to consecutive positions of each row. The first of these positions is the row's past, which is the number
/// of its earlier tokens. Positions beyond the capacity are dropped.
Names cache(const WriteCall& call) {
  if (call.inputs.size() < 3) return {};
  const Shape& state = call.shape(1);
  const std::int64_t axis = call.axis(), capacity = state[static_cast<std::size_t>(axis)],
                     pieces = call.shape(0)[static_cast<std::size_t>(axis)];
  Array positions(Dtype::int64, {1, capacity});
  for (std::int64_t i = 0; i < capacity; ++i) positions.as<std::int64_t>()[i] = i;
  const auto at = [&](std::int64_t i) { return call.scalar(i, Dtype::int64); };
  const std::string past =
      call.add("Unsqueeze", {call.cast(call.inputs[2], call.types[2].dtype, Dtype::int64), call.list({1})});
  const std::string place = call.add("Sub", {call.graph.shared().constant(positions), past});  // [b, capacity]
  const std::string inside =
      call.add("And", {call.add("GreaterOrEqual", {place, at(0)}), call.add("Less", {place, at(pieces)})});
  const std::string safe = call.add("Max", {at(0), call.add("Min", {place, at(pieces - 1)})});
  Shape line = Shape::filled(state.size(), 1), whole = call.shape(0);
  line[0] = state[0];
  line[static_cast<std::size_t>(axis)] = whole[static_cast<std::size_t>(axis)] = capacity;
  const std::string indices =
      call.add("Expand", {call.reshaped(safe, line), call.list(Integers(whole.begin(), whole.end()))});
  const std::string moved = call.add("GatherElements", {call.inputs[0], indices}, {{"axis", axis}});
  return {call.where(call.reshaped(inside, line), moved, call.inputs[1], call.type().dtype)};
}

/// Compares each value with all sorted numbers and counts the numbers that are smaller (or not larger). NaN
/// is larger than all other numbers.
Names searchsorted(const WriteCall& call) {
  const Shape& sorted = call.shape(0);
  Shape rows = sorted, values = call.shape(1);
  if (sorted.size() > 1) rows.insert(sorted.size() - 1, 1);  // [..., 1, n], to compare with [..., m, 1]
  values.push_back(1);
  const Dtype dtype = call.types[0].dtype;
  const Expression number{&call, call.reshaped(call.inputs[0], rows), dtype},
      value{&call, call.reshaped(call.inputs[1], values), dtype};
  Expression before = call.flag("right") ? number <= value : number < value;
  if (is_floating(dtype)) {
    const Expression last = is_nan(value);
    before = either(before, call.flag("right") ? last : both(last, !is_nan(number)));
  }
  return {before.as(Dtype::int64).with("ReduceSum", {call.list({-1})}, {{"keepdims", 0}}).name};
}
}  // namespace

const WriterRows& indexing_writers() {
  static const WriterRows rows = {{"cache", cache},
                                  {"checked_indices", checked_indices},
                                  {"gather", by_axis, "GatherElements"},
                                  {"index_add", scatter_slices},
                                  {"index_reduce", scatter_slices},
                                  {"scatter_add", scatter_elements},
                                  {"scatter_elements", scatter_elements},
                                  {"searchsorted", searchsorted},
                                  {"take", by_axis, "Gather"},
                                  {"update_slice", update_slice}};
  return rows;
}

}  // namespace xtape::onnx
