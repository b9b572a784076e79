// dequantize: numbers stored as int8 with a scale.
#include "ops/elementwise/arithmetic.hpp"
#include "ops/recording/batching.hpp"

namespace xtape {

namespace {
const Op& dequantize_op() {
  static const Op entry{
      .name = "dequantize",
      .doc =
          R"(x * scale, where x is int8 and the scale is a float array that broadcasts to the shape of x. For example, a
           weight has one scale for each output channel. The result has the dtype of the scale. A product or `take` of
           the result reads the int8 numbers themselves, and scales its own result.)",
      .inputs = {{"x", Accept::any}, {"scale", Accept::any}},
      .shape = [](const OpCall& call) -> std::vector<ValueType> {
        if (call.dtype(0) != Dtype::int8) throw DtypeError("x must be int8, got " + to_string(call.inputs[0]));
        if (call.dtype(1) != Dtype::float32 && call.dtype(1) != Dtype::float64)
          throw DtypeError("the scale must be float32 or float64, got " + to_string(call.inputs[1]));
        if (broadcast_inputs(call) != call.shape(0))
          throw ShapeError("a scale of shape " + to_string(call.shape(1)) + " does not broadcast to x of shape " +
                           to_string(call.shape(0)));
        return {{call.dtype(1), call.shape(0)}};
      },
      .gradient =
          [](const GradientCall& call) {
            const Var g = call.cotangent() * cast(call.inputs[0], call.inputs[1].dtype());
            return Vars{Var(), sum_to(g, call.inputs[1].shape())};
          },
      .batch =
          [](BatchCall call) {
            call.inputs[0] = call.whole(0);  // the scale broadcasts to x, but x does not broadcast to the scale
            call.mapped[0] = true;
            return batch_elementwise(call);
          },
      .expand =
          [](const ExpandCall& call) { return Vars{cast(call.inputs[0], call.inputs[1].dtype()) * call.inputs[1]}; },
      .lowering = {.tile = tile_by_name, .any_dtype = true, .scales = true}};
  return entry;
}
}  // namespace

Var dequantize(const Argument& x, const Var& scale) {
  return apply(dequantize_op(), {x, scale})[0];
}

void list_dequantize(OpTable& table) {
  table.add(dequantize_op());
}

}  // namespace xtape
