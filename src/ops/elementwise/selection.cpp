// where, masked_fill, cast and clip: elementwise selection and conversion.
#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels/elements/scalar.hpp"
#include "ops/elementwise/arithmetic.hpp"

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
      .shape = +[](const OpCall& call) -> std::vector<ValueType> {
        return {{call.dtype(1), broadcast_inputs(call)}};
      },
      .gradient =
          +[](const GradientCall& call) {
            const Var g = call.cotangent();
            const Var& condition = call.inputs[0];
            Vars gradients(3);
            if (call.needs[1]) gradients[1] = sum_to(where(condition, g, 0), call.inputs[1].shape());
            if (call.needs[2]) gradients[2] = sum_to(where(condition, 0, g), call.inputs[2].shape());
            return gradients;
          },
      .lowering = {.tile = tile_by_name}};
  return entry;
}

const Op& masked_fill_op() {
  static const Op entry{
      .name = "masked_fill",
      .doc = "`value` where the mask is true, x elsewhere. The gradient of x is 0 where the mask is true.",
      .inputs = {{"x"}, {"mask", Accept::mask}},
      .attributes = {{"value", AttributeType::element, "The value of masked elements.", std::nullopt}},
      .shape = +[](const OpCall& call) -> std::vector<ValueType> {
        require_numbers(call);
        call.element("value", call.dtype(0));
        return {{call.dtype(0), broadcast_inputs(call)}};
      },
      .gradient =
          +[](const GradientCall& call) {
            return Vars{sum_to(masked_fill(call.cotangent(), call.inputs[1], 0), call.inputs[0].shape()), Var()};
          },
      .expand =
          +[](const ExpandCall& call) {
            Tape tape = call.tape;
            const Var value = tape.constant(call.attributes.number("value"), call.inputs[0].dtype());
            return Vars{where(call.inputs[1], value, call.inputs[0])};
          },
      .lowering = {.tile = tile_by_name}};
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
      .shape = +[](const OpCall& call) -> std::vector<ValueType> {
        return {{call.get<Dtype>("dtype"), call.shape(0)}};
      },
      .gradient = +[](const GradientCall& call) { return Vars{cast(call.cotangent(), call.inputs[0].dtype())}; },
      .record = +[](Tape& tape, const Op& self, const Vars& inputs, const Attributes& attributes) -> Vars {
        const Dtype dtype = attributes.get<Dtype>("dtype");
        if (inputs[0].dtype() == dtype) return inputs;
        if (is_block(inputs[0].dtype())) return {cast(dequantize(inputs[0]), dtype)};
        return record_call(tape, self, inputs, attributes);
      },
      .lowering = {.tile = tile_by_name, .dtypes = {.casts = true}}};
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

namespace {
/// Returns a bound of clip as an element of type T. For an integer type, a low bound below the range, or a high bound
/// above it, becomes the limit of the range. Throws DtypeError if the bound for an integer type is neither whole nor
/// infinite. Throws DtypeError if a low bound is above the range, or a high bound is below it.
template <class T>
T clip_bound(const Attributes& attributes, const char* name) {
  const Literal bound = attributes.number(name);
  constexpr Dtype dtype = dtype_of<T>();
  if constexpr (std::is_integral_v<T>) {
    const bool low = name[0] == 'l';
    const bool no_bound = !bound.fits(dtype) && (low ? bound.real() < 0 : bound.real() > 0) &&
                          (std::isinf(bound.real()) || std::floor(bound.real()) == bound.real());
    if (no_bound) return low ? std::numeric_limits<T>::lowest() : std::numeric_limits<T>::max();
  }
  require_fits(bound, dtype, name);
  return bound.as<T>();
}

const Op& clip_op() {
  static const Op entry{
      .name = "clip",
      .doc =
          R"(minimum(maximum(x, low), high), in the dtype of x. For integers the bounds must be whole or infinite. The
           gradient passes where low <= x <= high and is 0 elsewhere. NaN stays NaN.)",
      .inputs = {{"x"}},
      .attributes = {{"low", AttributeType::element, "The lower bound; -inf for none.", std::nullopt},
                     {"high", AttributeType::element, "The upper bound; inf for none.", std::nullopt}},
      .shape =
          +[](const OpCall& call) {
            const std::vector<ValueType> types = same_number_dtype(call);
            if (is_half(call.dtype(0)))
              for (const char* bound : {"low", "high"}) call.element(bound, call.dtype(0));
            with_number(computed_in(call.dtype(0)), [&](auto scalar) {
              using T = decltype(scalar);
              if (!(clip_bound<T>(call.attributes, "low") <= clip_bound<T>(call.attributes, "high")))
                throw Error("low must not be above high, got low " + to_string(call.attributes.number("low")) +
                            " and high " + to_string(call.attributes.number("high")));
            });
            return types;
          },
      .gradient =
          +[](const GradientCall& call) {
            const Var& x = call.inputs[0];
            const Attributes& bounds = call.attributes;
            const Var inside = (x >= bounds.number("low").real()) & (x <= bounds.number("high").real());
            return Vars{where(inside, call.cotangent(), 0)};
          },
      .expand =
          +[](const ExpandCall& call) {
            const Dtype dtype = call.inputs[0].dtype();
            return with_number(computed_in(dtype), [&](auto scalar) {
              using T = decltype(scalar);
              Tape tape = call.tape;
              const Var low = tape.constant(clip_bound<T>(call.attributes, "low"), dtype);
              const Var above = maximum(call.inputs[0], low);
              return Vars{minimum(above, tape.constant(clip_bound<T>(call.attributes, "high"), dtype))};
            });
          },
      .lowering = {.tile = tile_by_name}};
  return entry;
}
}  // namespace

Var clip(const Argument& x, const Literal& low, const Literal& high) {
  return apply(clip_op(), {x}, {{"low", attribute_of(low)}, {"high", attribute_of(high)}})[0];
}

void list_selection(OpTable& table) {
  for (const Op* op : {&where_op(), &masked_fill_op(), &cast_op()}) table.add(*op);
  table.add(clip_op());
}

}  // namespace xtape
