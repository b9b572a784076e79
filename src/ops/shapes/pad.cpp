// pad, shift_right and tile. They extend and repeat arrays.
#include <algorithm>

#include "ops/recording/op_helpers.hpp"
#include "tape/calls.hpp"
#include "xtape/ops/indexing.hpp"

namespace xtape {

namespace {
[[noreturn]] void refuse_length(const Shape& shape, std::size_t axis, const std::string& by) {
  throw ShapeError(by + " make axis " + std::to_string(axis) + " of " + to_string(shape) + " longer than 2^63 - 1");
}

const Op& pad_op() {
  static const Op entry{
      .name = "pad",
      .doc = "x with before[i] elements of `value` added before axis i and after[i] elements after it.",
      .inputs = {{"x", Accept::any}},
      .attributes = {{"before", AttributeType::integers, "For each axis, how many elements are added before x.",
                      std::nullopt},
                     {"after", AttributeType::integers, "For each axis, how many elements are added after x.",
                      std::nullopt},
                     {"value", AttributeType::element, "The value of the added elements.", 0.0}},
      .shape =
          +[](const OpCall& call) {
            const auto &before = call.integers("before"), &after = call.integers("after");
            call.element("value", call.dtype(0));
            Shape shape = call.shape(0);
            bool fits = before.size() == shape.size() && after.size() == shape.size();
            for (std::size_t i = 0; fits && i < shape.size(); ++i) {
              fits = before[i] >= 0 && after[i] >= 0;
              if (fits && !(checked_add(shape[i], before[i]) && checked_add(shape[i], after[i])))
                refuse_length(call.shape(0), i,
                              "before " + to_string(Attribute(before)) + " and after " + to_string(Attribute(after)));
            }
            if (!fits)
              throw ShapeError("before " + to_string(Attribute(before)) + " and after " + to_string(Attribute(after)) +
                               " must each have one size of at least 0 for every axis of " + to_string(call.shape(0)));
            return std::vector<ValueType>{{call.dtype(0), shape}};
          },
      .gradient =
          +[](const GradientCall& call) {
            const auto& before = call.integers("before");
            std::vector<std::int64_t> stop = before;
            for (std::size_t i = 0; i < stop.size(); ++i) stop[i] += call.inputs[0].shape()[i];
            return Vars{slice(call.cotangent(), before, stop)};
          },
      .batch = batch_per_axis({{"before", 0}, {"after", 0}}),
      .expand =
          +[](const ExpandCall& call) {
            const ValueType& type = call.node.outputs[0];
            const Var ground = full(call.tape, type.shape, call.attributes.number("value"), type.dtype);
            return Vars{update_slice(ground, call.inputs[0], call.integers("before"))};
          },
      .lowering = {.kernel = kernel_by_name, .layouts = {.any_in = true, .any_out = true}, .dtypes = {.any = true}}};
  return entry;
}

/// Returns x itself in mode predict. Otherwise, returns a slice of `value` followed by x without its last slice along
/// the axis.
Vars shifted(const Tape& tape, const Var& x, const Attributes& attributes) {
  require_fits(attributes.number("value"), x.dtype(), "value");
  if (tape.mode() == Mode::predict) return {x};
  const std::size_t axis = normal_axis(attributes.get<std::int64_t>("axis"), x.rank());
  const std::int64_t size = x.shape()[axis];
  if (size == 0) return {x};
  std::vector<std::int64_t> start(x.rank(), 0), stop(x.rank(), open_end), before(x.rank(), 0);
  stop[axis] = size - 1;
  before[axis] = 1;
  return {pad(slice(x, start, stop), before, start, attributes.number("value"))};
}

const Op& shift_right_op() {
  static const Op entry{
      .name = "shift_right",
      .doc = R"(x shifted by one along `axis`: the last slice is dropped and a slice of `value` is put first. A decoder
           then sees, at each position, the token before it. In mode predict the result is x itself, because x then
           already consists of the earlier tokens. Recorded as slice and pad.)",
      .inputs = {{"x", Accept::any}},
      .attributes = {{"axis", AttributeType::integer, "The axis along which x is shifted.", std::int64_t{1}},
                     {"value", AttributeType::element, "The value of the first slice.", 0.0}},
      .shape =
          +[](const OpCall& call) {
            normal_axis(call.integer("axis"), call.shape(0).size());
            call.element("value", call.dtype(0));
            return std::vector<ValueType>{call.inputs[0]};
          },
      .expand = +[](const ExpandCall& call) { return shifted(call.tape, call.inputs[0], call.attributes); },
      .record = +[](Tape& tape, const Op&, const Vars& inputs,
                    const Attributes& attributes) { return shifted(tape, inputs[0], attributes); }};
  return entry;
}

/// Repeats by broadcasting a new axis before each repeated axis. Works in rounds, because an array can have only a
/// limited number of axes. If possible, one axis stays free for a batch.
Vars tiled(Var x, const std::vector<std::int64_t>& repeats) {
  for (std::size_t done = 0; done < repeats.size();) {
    Shape apart, spread, joined;
    std::size_t room = Shape::max_rank - x.rank();
    if (room > 1) --room;
    std::size_t next = repeats.size();  // the first axis that another round must repeat
    for (std::size_t i = 0; i < x.rank(); ++i) {
      const std::int64_t size = x.shape()[i];
      const bool repeated = i >= done && repeats[i] != 1;
      if (repeated && room == 0) next = std::min(next, i);
      const bool now = repeated && room > 0;
      if (now) {
        --room;
        apart.push_back(1);
        spread.push_back(repeats[i]);
      }
      apart.push_back(size);
      spread.push_back(size);
      joined.push_back(now ? repeats[i] * size : size);
    }
    if (joined.size() != spread.size()) x = reshape(broadcast_to(reshape(x, apart), spread), joined);
    if (next == done)
      throw ShapeError("an array of " + std::to_string(x.rank()) +
                       " axes cannot be repeated: it has as many axes as an array may have");
    done = next;
  }
  return {x};
}

Shape repeated(const std::vector<std::int64_t>& repeats, const Shape& shape) {
  Shape result = shape;
  bool fits = repeats.size() == shape.size();
  for (std::size_t i = 0; fits && i < shape.size(); ++i) {
    fits = repeats[i] >= 0;
    if (fits && !checked_multiply(result[i], repeats[i]))
      refuse_length(shape, i, "repeats " + to_string(Attribute(repeats)));
  }
  if (!fits)
    throw ShapeError("repeats " + to_string(Attribute(repeats)) +
                     " must have one count of at least 0 for every axis of " + to_string(shape));
  return result;
}

const Op& tile_op() {
  static const Op entry{
      .name = "tile",
      .doc = R"(x repeated repeats[i] times along axis i. Recorded as reshape and broadcast_to.)",
      .inputs = {{"x", Accept::any}},
      .attributes = {{"repeats", AttributeType::integers,
                      "For each axis, the number of times that x occurs; 1 keeps it.", std::nullopt}},
      .shape =
          +[](const OpCall& call) {
            return std::vector<ValueType>{{call.dtype(0), repeated(call.integers("repeats"), call.shape(0))}};
          },
      .expand = +[](const ExpandCall& call) { return tiled(call.inputs[0], call.integers("repeats")); },
      .record =
          +[](Tape&, const Op&, const Vars& inputs, const Attributes& attributes) {
            const auto& repeats = attributes.get<std::vector<std::int64_t>>("repeats");
            repeated(repeats, inputs[0].shape());  // so that errors name tile's attribute
            return tiled(inputs[0], repeats);
          }};
  return entry;
}
}  // namespace

Var pad(const Argument& x, const std::vector<std::int64_t>& before, const std::vector<std::int64_t>& after,
        const Literal& value) {
  return apply(pad_op(), {x}, {{"before", before}, {"after", after}, {"value", attribute_of(value)}})[0];
}
Var shift_right(const Argument& x, std::int64_t axis, const Literal& value) {
  return apply(shift_right_op(), {x}, {{"axis", axis}, {"value", attribute_of(value)}})[0];
}
Var tile(const Argument& x, const std::vector<std::int64_t>& repeats) {
  return apply(tile_op(), {x}, {{"repeats", repeats}})[0];
}

// Moves of slices: roll, repeat_interleave, meshgrid, and padding with elements of the array. They concatenate slices,
// which are copied in long runs. Indexing along the last axis would copy single elements.

namespace {
using Counts = std::vector<std::int64_t>;

Vars expand_roll(const ExpandCall& call) {
  const Shape& shape = call.inputs[0].shape();
  const auto &shifts = call.get<Counts>("shifts"), &axes = call.get<Counts>("axis");
  Var x = axes.empty() ? reshape(call.inputs[0], {count_of(shape)}) : call.inputs[0];
  for (std::size_t i = 0; i < shifts.size(); ++i) {
    const std::size_t axis = axes.empty() ? 0 : normal_axis(axes[i], x.rank());
    const std::int64_t size = x.shape()[axis];
    if (size == 0 || shifts[i] % size == 0) continue;
    const std::int64_t kept = size - (shifts[i] % size + size) % size;
    x = concat({part_along(x, axis, kept, size), part_along(x, axis, 0, kept)}, static_cast<std::int64_t>(axis));
  }
  return {axes.empty() ? reshape(x, shape) : x};
}

Vars expand_repeat(const ExpandCall& call) {
  const Var& x = call.inputs[0];
  const std::size_t axis = normal_axis(call.integer("axis"), x.rank());
  Shape apart{1, 1, 1, 1};
  for (std::size_t i = 0; i < x.rank(); ++i) apart[i < axis ? 0 : i == axis ? 1 : 3] *= x.shape()[i];
  Shape spread = apart;
  spread[2] = call.integer("repeats");
  return {reshape(broadcast_to(reshape(x, apart), spread), call.node.outputs[0].shape)};
}

enum class Border { reflect, replicate, circular };

/// Returns x with some of its own elements added at both ends of an axis.
Var bordered(const Var& x, std::size_t axis, std::int64_t before, std::int64_t after, Border border) {
  const std::int64_t size = x.shape()[axis], place = static_cast<std::int64_t>(axis);
  const auto end = [&](std::int64_t count, bool front) {
    if (border == Border::circular)
      return front ? part_along(x, axis, size - count, size) : part_along(x, axis, 0, count);
    if (border == Border::reflect)
      return flip(front ? part_along(x, axis, 1, count + 1) : part_along(x, axis, size - 1 - count, size - 1), {place});
    Shape repeated = x.shape();
    repeated[axis] = count;
    return broadcast_to(front ? part_along(x, axis, 0, 1) : part_along(x, axis, size - 1, size), repeated);
  };
  Vars parts;
  if (before > 0) parts.push_back(end(before, true));
  parts.push_back(x);
  if (after > 0) parts.push_back(end(after, false));
  return parts.size() == 1 ? x : concat(parts, place);
}

template <Border border>
Vars expand_border(const ExpandCall& call) {
  const auto &before = call.get<Counts>("before"), &after = call.get<Counts>("after");
  Var x = call.inputs[0];
  for (std::size_t i = 0; i < before.size(); ++i) x = bordered(x, i, before[i], after[i], border);
  return {x};
}

const ComposedRow roll_rows[] = {{"roll", "=x",
                                  "x with the elements moved by shifts[i] places along axis[i]; elements that leave at "
                                  "the end come back at the start. Without axes, x moves as if it were flattened.",
                                  expand_roll}};
const ComposedRow repeat_rows[] = {
    {"repeat_interleave", "=x", "x with each slice along `axis` repeated `repeats` times in a row.", expand_repeat}};
const ComposedRow border_rows[] = {{"reflection_pad", "=x",
                                    "x with before[i] and after[i] elements added at the two ends of axis i. The added "
                                    "elements mirror x at its outermost element, which is not repeated.",
                                    expand_border<Border::reflect>},
                                   {"replication_pad", "=x",
                                    "x with before[i] and after[i] elements added at the two ends of axis i. The added "
                                    "elements repeat the outermost element.",
                                    expand_border<Border::replicate>},
                                   {"circular_pad", "=x",
                                    "x with before[i] and after[i] elements added at the two ends of axis i. The added "
                                    "elements are copies of the elements at the opposite end.",
                                    expand_border<Border::circular>}};

std::vector<ValueType> roll_type(const OpCall& call) {
  const Counts &shifts = call.integers("shifts"), &axes = call.integers("axis");
  for (const std::int64_t axis : axes) normal_axis(axis, call.shape(0).size());
  if (axes.empty() ? shifts.size() != 1 : shifts.size() != axes.size())
    throw ShapeError("shifts " + to_string(Attribute(shifts)) + " must have one number for each axis of " +
                     to_string(Attribute(axes)) + ", or one without axes");
  return {call.inputs[0]};
}

std::vector<ValueType> repeat_type(const OpCall& call) {
  Shape shape = call.shape(0);
  const std::int64_t repeats = call.integer("repeats");
  const std::size_t axis = axis_of(call);
  if (repeats < 0 || !checked_multiply(shape[axis], repeats))
    throw ShapeError("repeats " + std::to_string(repeats) + " must be at least 0, and the result shorter than 2^63");
  return {{call.dtype(0), shape}};
}

std::vector<ValueType> border_type(const OpCall& call) {
  const Counts &before = call.integers("before"), &after = call.integers("after");
  Shape shape = call.shape(0);
  bool fits = before.size() == shape.size() && after.size() == shape.size();
  for (std::size_t i = 0; fits && i < shape.size(); ++i) {
    const std::int64_t most = std::max(before[i], after[i]), size = shape[i];
    fits = before[i] >= 0 && after[i] >= 0;
    const bool enough = most == 0 || (call.op.name == "reflection_pad" ? most < size
                                      : call.op.name == "circular_pad" ? most <= size
                                                                       : size > 0);
    if (fits && !enough)
      throw ShapeError("axis " + std::to_string(i) + " of " + to_string(shape) + " is too short for " +
                       std::to_string(most) + " more elements at an end");
    fits = fits && checked_add(shape[i], before[i]) && checked_add(shape[i], after[i]);
  }
  if (!fits)
    throw ShapeError("before " + to_string(Attribute(before)) + " and after " + to_string(Attribute(after)) +
                     " must each have one size of at least 0 for every axis of " + to_string(call.shape(0)));
  return {{call.dtype(0), shape}};
}
}  // namespace

Var roll(const Argument& x, const std::vector<std::int64_t>& shifts, const Axes& axis) {
  return call_op("roll", {x}, {{"shifts", shifts}, {"axis", axis}});
}
Var repeat_interleave(const Argument& x, std::int64_t repeats, std::int64_t axis) {
  return call_op("repeat_interleave", {x}, {{"repeats", repeats}, {"axis", axis}});
}

Vars meshgrid(const Vars& xs, const std::string& indexing, Caller caller) {
  if (xs.empty()) return {};
  return all_or_nothing(xs[0].tape(), nullptr, caller, [&] {
    const bool swapped = indexing == "xy" && xs.size() > 1;
    if (!swapped && indexing != "ij" && indexing != "xy")
      throw Error("meshgrid: indexing \"" + indexing + "\" must be \"ij\" or \"xy\"");
    const auto axis_in_grid = [&](std::size_t i) { return swapped && i < 2 ? 1 - i : i; };
    Shape grid = Shape::filled(xs.size(), 0);
    for (std::size_t i = 0; i < xs.size(); ++i) {
      if (xs[i].rank() != 1)
        throw ShapeError("meshgrid: each array must have one axis, got " + to_string(xs[i].shape()));
      grid[axis_in_grid(i)] = xs[i].shape()[0];
    }
    Vars results;
    for (std::size_t i = 0; i < xs.size(); ++i) {
      Shape along = Shape::filled(xs.size(), 1);
      along[axis_in_grid(i)] = xs[i].shape()[0];
      results.push_back(broadcast_to(reshape(xs[i], along), grid));
    }
    return results;
  });
}

Var pad(const Argument& x, const std::vector<std::int64_t>& before, const std::vector<std::int64_t>& after,
        const std::string& mode) {
  const char* op = mode == "reflect"                       ? "reflection_pad"
                   : mode == "replicate" || mode == "edge" ? "replication_pad"
                   : mode == "circular" || mode == "wrap"  ? "circular_pad"
                                                           : nullptr;
  if (op == nullptr)
    at_place(x.caller(), [&]() -> void {
      throw Error("pad: mode \"" + mode +
                  "\" must be \"reflect\", \"replicate\" or \"edge\", \"circular\" or \"wrap\"");
    });
  return call_op(op, {x}, {{"before", before}, {"after", after}});
}

void list_pad(OpTable& table) {
  for (const Op* op : {&pad_op(), &shift_right_op(), &tile_op()}) table.add(*op);
  const AttributeSpec before{"before", AttributeType::integers, "The number of elements before x, for each axis.",
                             std::nullopt},
      after{"after", AttributeType::integers, "The number of elements after x, for each axis.", std::nullopt},
      shifts{"shifts", AttributeType::integers, "The number of places by which each axis moves.", std::nullopt},
      axes{"axis", AttributeType::integers,
           "The axes that move. An empty list means that x moves as if it were flattened.", Counts{}},
      repeats{"repeats", AttributeType::integer, "The number of times that each slice occurs in the result.",
              std::nullopt},
      axis{"axis", AttributeType::integer, "The axis of x along which slices are repeated.", std::int64_t{0}};
  static const std::vector<std::vector<Op>> families{composed(roll_rows, roll_type, {shifts, axes}),
                                                     composed(repeat_rows, repeat_type, {repeats, axis}),
                                                     composed(border_rows, border_type, {before, after})};
  add_all(table, families);
}

}  // namespace xtape
