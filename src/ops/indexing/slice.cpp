// slice and flip, which are views, and update_slice, which replaces a slice.
#include <algorithm>

#include "kernels/table/kernels.hpp"
#include "ops/recording/op_helpers.hpp"

namespace xtape {

namespace {
/// One axis of a slice: the first index, the step and the number of elements. With fewer than two elements, the step is
/// 1, because the given step may be too large for 64-bit arithmetic.
struct AxisRange {
  std::int64_t start = 0, step = 1, count = 0;
};

/// Returns entry `i` of the list, or `otherwise` if the list is shorter.
std::int64_t entry(const std::vector<std::int64_t>& list, std::size_t i, std::int64_t otherwise) {
  return i < list.size() ? list[i] : otherwise;
}

/// Returns the range by Python's rules for x[start:stop:step] on an axis of `size`.
AxisRange range_of(std::int64_t start, std::int64_t stop, std::int64_t step, std::int64_t size) {
  const bool forward = step > 0;
  const std::int64_t least = forward ? 0 : -1, most = forward ? size : size - 1;
  const auto placed = [&](std::int64_t index) {
    if (index == open_end) return most;
    return std::clamp(index < 0 ? index + size : index, least, most);
  };
  const std::int64_t first = placed(start);
  const std::int64_t last = stop == open_end && !forward ? -1 : placed(stop);
  const std::int64_t to_last = last - first - (forward ? 1 : -1);  // the distance to the last possible element
  const bool any = forward ? first < last : first > last;
  const std::int64_t count = any ? to_last / step + 1 : 0;  // both signs are equal, so the quotient is rounded down
  return {first, count > 1 ? step : 1, count};
}

/// Throws ShapeError if a list has more entries than there are axes, or if a step is 0.
void check_lists(std::size_t rank, std::initializer_list<const std::vector<std::int64_t>*> lists,
                 const std::vector<std::int64_t>& steps) {
  for (const auto* list : lists)
    if (list->size() > rank)
      throw ShapeError("got " + std::to_string(list->size()) + " entries for an array of " + std::to_string(rank) +
                       (rank == 1 ? " axis" : " axes"));
  for (std::int64_t step : steps)
    if (step == 0) throw ShapeError("a step must not be 0");
}

std::vector<AxisRange> slice_of(const OpCall& call) {
  const auto &start = call.integers("start"), &stop = call.integers("stop"), &step = call.integers("step");
  const Shape& from = call.shape(0);
  check_lists(from.size(), {&start, &stop, &step}, step);
  std::vector<AxisRange> ranges;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::int64_t by = entry(step, i, 1);
    ranges.push_back(range_of(entry(start, i, by > 0 ? 0 : open_end), entry(stop, i, open_end), by, from[i]));
  }
  return ranges;
}

/// Returns the slice of x that update_slice overwrites. Throws ShapeError if it does not lie inside x.
std::vector<AxisRange> update_of(const OpCall& call) {
  const auto &start = call.integers("start"), &step = call.integers("step");
  const Shape &whole = call.shape(0), &part = call.shape(1);
  if (part.size() != whole.size())
    throw ShapeError("'part' of shape " + to_string(part) + " must have as many axes as x, " + to_string(whole));
  check_lists(whole.size(), {&start, &step}, step);
  std::vector<AxisRange> ranges;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const std::int64_t from = entry(start, i, 0);
    const AxisRange range{from < 0 ? from + whole[i] : from, part[i] > 1 ? entry(step, i, 1) : 1, part[i]};
    std::int64_t last = part[i] - 1;
    const bool fits = checked_multiply(last, range.step) && checked_add(last, range.start);
    if (part[i] > 0 && (!fits || range.start < 0 || range.start >= whole[i] || last < 0 || last >= whole[i]))
      throw ShapeError("'part' of shape " + to_string(part) + " from index " + std::to_string(from) + " on axis " +
                       std::to_string(i) + " does not lie inside " + to_string(whole));
    ranges.push_back(range);
  }
  return ranges;
}

Layout layout_of(const std::vector<AxisRange>& ranges, const Layout& layout) {
  Layout result = layout;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    result.shape[i] = ranges[i].count;
    result.strides[i] *= ranges[i].step;
    if (ranges[i].count > 0) result.offset += ranges[i].start * layout.strides[i];
  }
  return result;
}

Shape shape_of(const std::vector<AxisRange>& ranges) {
  Shape shape;
  for (const AxisRange& range : ranges) shape.push_back(range.count);
  return shape;
}

const AttributeSpec step_attribute{"step", AttributeType::integers,
                                   "The step along each axis, not 0; 1 for axes beyond the list.",
                                   std::vector<std::int64_t>{}};

const Op& slice_op() {
  static const Op entry{
      .name = "slice",
      .doc =
          R"(x[start:stop:step] along every axis, as in Python: negative indices count from the back, indices beyond the
           end are clipped to the end, and steps may be negative. Axes beyond the lists stay whole. A view: nothing is
           copied.)",
      .inputs = {{"x", Accept::any}},
      .attributes = {{"start", AttributeType::integers, "The first index along each axis.", std::nullopt},
                     {"stop", AttributeType::integers, "The index along each axis before which the slice ends.",
                      std::nullopt},
                     step_attribute},
      .shape =
          +[](const OpCall& call) {
            return std::vector<ValueType>{{call.dtype(0), shape_of(slice_of(call))}};
          },
      .gradient =
          +[](const GradientCall& call) {
            const OpCall forward{{call.attributes}, call.op, {call.inputs[0].type()}, {}, nullptr, {}};
            std::vector<std::int64_t> start, step;
            for (const AxisRange& range : slice_of(forward)) {
              start.push_back(range.count > 0 ? range.start : 0);
              step.push_back(range.step);
            }
            return Vars{update_slice(zeros_like(call.inputs[0]), call.cotangent(), start, step)};
          },
      .batch = batch_per_axis({{"start", 0}, {"stop", open_end}, {"step", 1}}),
      .lowering = {.view = {.output = +[](const OpCall& call, const Layout& layout) {
                     return std::optional<Layout>(layout_of(slice_of(call), layout));
                   }}}};
  return entry;
}

const Op& update_slice_op() {
  static const Op entry{
      .name = "update_slice",
      .doc =
          R"(x with `part` written over a slice. The slice begins at `start`, has steps of `step` and the shape of
           `part`, and must lie inside x. Negative starts count from the back.)",
      .inputs = {{"x", Accept::value}, {"part", Accept::value}},
      .attributes = {{"start", AttributeType::integers, "The first index along each axis; 0 for axes beyond the list.",
                      std::nullopt},
                     step_attribute},
      .shape =
          +[](const OpCall& call) {
            update_of(call);
            return std::vector<ValueType>{call.inputs[0]};
          },
      .gradient =
          +[](const GradientCall& call) {
            const auto& start = call.integers("start");
            const auto& step = call.integers("step");
            const OpCall forward{{call.attributes}, call.op, {call.inputs[0].type(), call.inputs[1].type()}, {},
                                 nullptr,           {}};
            std::vector<std::int64_t> first, stop, by;
            for (const AxisRange& range : update_of(forward)) {
              const std::int64_t last = range.start + (range.count - 1) * range.step;
              const std::int64_t past = range.step > 0 ? last + 1 : last - 1;
              first.push_back(range.count > 0 ? range.start : 0);
              stop.push_back(range.count == 0 ? 0 : past < 0 ? open_end : past);
              by.push_back(range.step);
            }
            Vars gradients(2);
            if (call.needs[0]) gradients[0] = update_slice(call.cotangent(), zeros_like(call.inputs[1]), start, step);
            if (call.needs[1]) gradients[1] = slice(call.cotangent(), first, stop, by);
            return gradients;
          },
      .batch = batch_per_axis({{"start", 0}, {"step", 1}}),
      .lowering = {.kernel =
                       +[](const KernelCall& call) {
                         return Kernel{[all = kernels().make_copy(call.dtype(0), call.in[0], call.out[0], call.threads),
                                        part = kernels().make_copy(call.dtype(0), call.in[1],
                                                                   layout_of(update_of(call), call.out[0]),
                                                                   call.threads)](const KernelArguments& arguments) {
                           if (arguments.in[0] != arguments.out[0]) all(arguments.in[0], arguments.out[0]);
                           part(arguments.in[1], arguments.out[0]);
                         }};
                       },
                   .overwrites = {0},
                   .layouts = {.any_in = true, .any_out = true},
                   .dtypes = {.any = true},
                   .cost = {.part = 1}}};
  return entry;
}

std::vector<bool> flipped(const std::vector<std::int64_t>& axes, std::size_t rank) {
  std::vector<bool> flips(rank, axes.empty());
  for (std::int64_t axis : axes) flips[normal_axis(axis, rank)] = true;
  return flips;
}

std::optional<Layout> flipped_layout(const OpCall& call, Layout layout) {
  const std::vector<bool> flips = flipped(call.integers("axis"), layout.shape.size());
  for (std::size_t i = 0; i < flips.size(); ++i) {
    if (!flips[i] || layout.shape[i] == 0) continue;
    layout.offset += (layout.shape[i] - 1) * layout.strides[i];
    layout.strides[i] = -layout.strides[i];
  }
  return layout;
}

const Op& flip_op() {
  static const Op entry{
      .name = "flip",
      .doc = "x with the elements along the given axes in reverse order. A view: nothing is copied.",
      .inputs = {{"x", Accept::any}},
      .attributes = {{"axis", AttributeType::integers, "The axes to reverse. An empty list means all axes.",
                      std::vector<std::int64_t>{}}},
      .shape =
          +[](const OpCall& call) {
            flipped(call.integers("axis"), call.shape(0).size());
            return std::vector<ValueType>{call.inputs[0]};
          },
      .gradient = +[](const GradientCall& call) { return Vars{flip(call.cotangent(), call.integers("axis"))}; },
      .batch = batch_axes(),
      .lowering = {.view = {.output = flipped_layout, .input = flipped_layout}}};  // flip is its own inverse
  return entry;
}
}  // namespace

Var slice(const Argument& x, const std::vector<std::int64_t>& start, const std::vector<std::int64_t>& stop,
          const std::vector<std::int64_t>& step) {
  return apply(slice_op(), {x}, {{"start", start}, {"stop", stop}, {"step", step}})[0];
}
Var part_along(const Var& x, std::size_t axis, std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> start(axis, 0), stop(axis, open_end);
  start.push_back(first);
  stop.push_back(last);
  return slice(x, start, stop);
}
Var update_slice(const Argument& x, const Var& part, const std::vector<std::int64_t>& start,
                 const std::vector<std::int64_t>& step) {
  return apply(update_slice_op(), {x, part}, {{"start", start}, {"step", step}})[0];
}
Var flip(const Argument& x, const Axes& axis) {
  return apply(flip_op(), {x}, {{"axis", axis}})[0];
}

void list_slice(OpTable& table) {
  for (const Op* op : {&slice_op(), &update_slice_op(), &flip_op()}) table.add(*op);
}

}  // namespace xtape
