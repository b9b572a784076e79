// pad, shift_right and tile. They extend and repeat arrays.
#include <algorithm>

#include "ops/recording/batching.hpp"
#include "ops/recording/op_helpers.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"

namespace xtape {

namespace {
[[noreturn]] void too_long(const Shape& shape, std::size_t axis, const std::string& by) {
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
          [](const OpCall& call) {
            const auto &before = call.integers("before"), &after = call.integers("after");
            call.element("value", call.dtype(0));
            Shape shape = call.shape(0);
            bool fits = before.size() == shape.size() && after.size() == shape.size();
            for (std::size_t i = 0; fits && i < shape.size(); ++i) {
              fits = before[i] >= 0 && after[i] >= 0;
              if (fits && !(checked_add(shape[i], before[i]) && checked_add(shape[i], after[i])))
                too_long(call.shape(0), i,
                         "before " + to_string(Attribute(before)) + " and after " + to_string(Attribute(after)));
            }
            if (!fits)
              throw ShapeError("before " + to_string(Attribute(before)) + " and after " + to_string(Attribute(after)) +
                               " must each have one size of at least 0 for every axis of " + to_string(call.shape(0)));
            return std::vector<ValueType>{{call.dtype(0), shape}};
          },
      .gradient =
          [](const GradientCall& call) {
            const auto& before = call.attributes().get<std::vector<std::int64_t>>("before");
            std::vector<std::int64_t> stop = before;
            for (std::size_t i = 0; i < stop.size(); ++i) stop[i] += call.inputs[0].shape()[i];
            return Vars{slice(call.cotangent(), before, stop)};
          },
      .batch = batch_per_axis({{"before", 0}, {"after", 0}}),
      .expand =
          [](const ExpandCall& call) {
            const ValueType& type = call.node.outputs[0];
            const Var ground = full(call.tape, type.shape, call.attributes().number("value"), type.dtype);
            return Vars{
                update_slice(ground, call.inputs[0], call.attributes().get<std::vector<std::int64_t>>("before"))};
          },
      .lowering = {.kernel = kernel_by_name, .strided_in = true, .strided_out = true, .any_dtype = true}};
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
          [](const OpCall& call) {
            normal_axis(call.integer("axis"), call.shape(0).size());
            call.element("value", call.dtype(0));
            return std::vector<ValueType>{call.inputs[0]};
          },
      .expand = [](const ExpandCall& call) { return shifted(call.tape, call.inputs[0], call.attributes()); },
      .record = [](Tape& tape, const Op&, const Vars& inputs,
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
      too_long(shape, i, "repeats " + to_string(Attribute(repeats)));
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
          [](const OpCall& call) {
            return std::vector<ValueType>{{call.dtype(0), repeated(call.integers("repeats"), call.shape(0))}};
          },
      .expand =
          [](const ExpandCall& call) {
            return tiled(call.inputs[0], call.attributes().get<std::vector<std::int64_t>>("repeats"));
          },
      .record =
          [](Tape&, const Op&, const Vars& inputs, const Attributes& attributes) {
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

void list_pad(OpTable& table) {
  for (const Op* op : {&pad_op(), &shift_right_op(), &tile_op()}) table.add(*op);
}

}  // namespace xtape
