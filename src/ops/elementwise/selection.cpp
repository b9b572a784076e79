// where, masked_fill and cast: elementwise selection and conversion.
#include <cmath>
#include <limits>
#include <type_traits>

#include "ops/elementwise/arithmetic.hpp"
#include "ops/recording/op_helpers.hpp"
#include "xtape/ops.hpp"

namespace xtape {

namespace {
const Op& where_op() {
  static const Op entry{
      .name = "where",
      .doc =
          R"(a where the condition is true, b elsewhere. Elements that are not selected get a cotangent of 0, even if the
           cotangent of the result is NaN. If a or b has an infinite slope there, such as a / 0, its gradient is still
           NaN, because 0 times infinity is NaN. To prevent it, replace the argument inside the branch, as in
           where(x > 0, log(where(x > 0, x, 1)), 0), or use cond.)",
      .inputs = {{"condition", Accept::mask}, {"a"}, {"b"}},
      .shape = [](const OpCall& call) -> std::vector<ValueType> {
        return {{call.dtype(1), broadcast_inputs(call)}};
      },
      .gradient =
          [](const GradientCall& call) {
            const Var g = call.cotangent();
            const Var& condition = call.inputs[0];
            Vars gradients(3);
            if (call.needs[1]) gradients[1] = sum_to(where(condition, g, 0), call.inputs[1].shape());
            if (call.needs[2]) gradients[2] = sum_to(where(condition, 0, g), call.inputs[2].shape());
            return gradients;
          },
      .lowering = {.tile = tile_by_name, .overwrites = {0, 1, 2}}};
  return entry;
}

const Op& masked_fill_op() {
  static const Op entry{
      .name = "masked_fill",
      .doc = "`value` where the mask is true, x elsewhere. The gradient of x is 0 where the mask is true.",
      .inputs = {{"x"}, {"mask", Accept::mask}},
      .attributes = {{"value", AttributeType::element, "The value of masked elements.", std::nullopt}},
      .shape = [](const OpCall& call) -> std::vector<ValueType> {
        require_numbers(call);
        call.element("value", call.dtype(0));
        return {{call.dtype(0), broadcast_inputs(call)}};
      },
      .gradient =
          [](const GradientCall& call) {
            return Vars{sum_to(masked_fill(call.cotangent(), call.inputs[1], 0), call.inputs[0].shape()), Var()};
          },
      .expand =
          [](const ExpandCall& call) {
            Tape tape = call.tape;
            const Var value = tape.constant(call.attributes().number("value"), call.inputs[0].dtype());
            return Vars{where(call.inputs[1], value, call.inputs[0])};
          },
      .lowering = {.tile = tile_by_name, .overwrites = {0}}};
  return entry;
}

const Op& cast_op() {
  static const Op entry{
      .name = "cast",
      .doc =
          R"(x converted to another dtype. A float becomes an integer by rounding towards 0; values out of range become
           the nearest limit of the range, and NaN becomes 0. As a bool, a number is true unless it is 0. A cast to the
           dtype of x records nothing.)",
      .inputs = {{"x", Accept::any}},
      .attributes = {{"dtype", AttributeType::dtype, "The dtype of the result.", std::nullopt}},
      .shape = [](const OpCall& call) -> std::vector<ValueType> {
        return {{call.get<Dtype>("dtype"), call.shape(0)}};
      },
      .gradient = [](const GradientCall& call) { return Vars{cast(call.cotangent(), call.inputs[0].dtype())}; },
      .record = [](Tape& tape, const Op& self, const Vars& inputs, const Attributes& attributes) -> Vars {
        if (inputs[0].dtype() == attributes.get<Dtype>("dtype")) return inputs;
        return record_call(tape, self, inputs, attributes);
      },
      .lowering = {.tile = tile_by_name, .casts = true}};
  return entry;
}
}  // namespace

Var where(const Argument& condition, const Operand& a, const Operand& b) {
  return apply(where_op(), {condition, a, b})[0];
}
Var masked_fill(const Argument& x, const Var& mask, const Literal& value) {
  return apply(masked_fill_op(), {x, mask}, {{"value", attribute_of(value)}})[0];
}
Var cast(const Argument& x, Dtype dtype) {
  return apply(cast_op(), {x}, {{"dtype", dtype}})[0];
}

void list_selection(OpTable& table) {
  for (const Op* op : {&where_op(), &masked_fill_op(), &cast_op()}) table.add(*op);
}

}  // namespace xtape
