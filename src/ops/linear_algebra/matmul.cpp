// dequantize, and matmul: NumPy's matrix product, recorded as an einsum.
#include "ops/elementwise/arithmetic.hpp"

namespace xtape {

namespace {
/// The shape of the product. Throws ShapeError if the shapes do not fit.
Shape product_shape(const Shape& a, const Shape& b) {
  const auto refuse = [&](const std::string& why) {
    throw ShapeError("cannot multiply " + to_string(a) + " by " + to_string(b) + ": " + why);
  };
  if (a.empty() || b.empty()) refuse("both need at least one axis; use mul for scalars");
  const std::int64_t inner = b[b.size() == 1 ? 0 : b.size() - 2];
  if (a.back() != inner)
    refuse("the last axis of the first, " + std::to_string(a.back()) + ", must be as long as the " +
           (b.size() == 1 ? "only" : "second-to-last") + " axis of the second, " + std::to_string(inner));
  const auto batch = [](const Shape& shape) { return Shape(shape.begin(), shape.end() - (shape.size() > 1 ? 2 : 1)); };
  Shape result;
  try {
    result = broadcast_shapes({batch(a), batch(b)});
  } catch (const ShapeError&) {
    refuse("the axes before the last two must broadcast");
  }
  if (a.size() > 1) result.push_back(a[a.size() - 2]);
  if (b.size() > 1) result.push_back(b.back());
  return result;
}

Vars as_einsum(const Vars& inputs) {
  const bool vector_a = inputs[0].rank() == 1, vector_b = inputs[1].rank() == 1;
  const std::string equation = std::string(vector_a ? "k" : "...mk") + (vector_b ? ",k" : ",...kn") +
                               (vector_a && vector_b ? "->" : "->...") + (vector_a ? "" : "m") + (vector_b ? "" : "n");
  return {einsum(equation, inputs)};
}

const Op& matmul_op() {
  static const Op entry{
      .name = "matmul",
      .doc = R"(The matrix product, y[..., m, n] = sum_k a[..., m, k] * b[..., k, n], as in NumPy. Axes before the last
           two broadcast. An operand with one axis is a vector, whose axis the result lacks. Recorded as an einsum.)",
      .inputs = {{"a", Accept::value}, {"b", Accept::value}},
      .shape =
          +[](const OpCall& call) {
            return std::vector<ValueType>{{call.dtype(0), product_shape(call.shape(0), call.shape(1))}};
          },
      .expand = +[](const ExpandCall& call) { return as_einsum(call.inputs); },
      .record =
          +[](Tape&, const Op&, const Vars& inputs, const Attributes&) {
            product_shape(inputs[0].shape(),
                          inputs[1].shape());  // so that errors name matmul's operands, not einsum's
            return as_einsum(inputs);
          }};
  return entry;
}
}  // namespace

Var matmul(const Argument& a, const Var& b) {
  return apply(matmul_op(), {a, b})[0];
}

// dequantize: numbers stored as int8 with a scale, or in blocks.

namespace {
const Op& dequantize_op() {
  static const Op entry{
      .name = "dequantize",
      .doc =
          R"(x * scale, where x is int8 and the scale is a float array that broadcasts to the shape of x. For example, a
           weight has one scale for each output channel. The result has the dtype of the scale. A product or `take` of
           the result reads the int8 numbers themselves, and scales its own result.)",
      .inputs = {{"x", Accept::any}, {"scale", Accept::any}},
      .shape = +[](const OpCall& call) -> std::vector<ValueType> {
        if (call.dtype(0) != Dtype::int8) throw DtypeError("x must be int8, got " + to_string(call.inputs[0]));
        if (call.dtype(1) != Dtype::float32 && call.dtype(1) != Dtype::float64)
          throw DtypeError("the scale must be float32 or float64, got " + to_string(call.inputs[1]));
        if (broadcast_inputs(call) != call.shape(0))
          throw ShapeError("a scale of shape " + to_string(call.shape(1)) + " does not broadcast to x of shape " +
                           to_string(call.shape(0)));
        return {{call.dtype(1), call.shape(0)}};
      },
      .gradient =
          +[](const GradientCall& call) {
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
          +[](const ExpandCall& call) { return Vars{cast(call.inputs[0], call.inputs[1].dtype()) * call.inputs[1]}; },
      .lowering = {.tile = tile_by_name, .dtypes = {.any = true}},
      .algebra = {.scales = true}};
  return entry;
}

const Op& dequantize_blocks_op() {
  static const Op entry{
      .name = "dequantize_blocks",
      .doc =
          R"(The numbers of x as float32. x has a block format, in which 32 or 256 neighbours share scales: Q8_0, Q4_0,
           Q4_K, Q5_K or Q6_K. A product or `take` of the result reads the blocks themselves.)",
      .inputs = {{"x", Accept::any}},
      .shape = +[](const OpCall& call) -> std::vector<ValueType> {
        if (!is_block(call.dtype(0))) throw DtypeError("x must have a block format, got " + to_string(call.inputs[0]));
        return {{Dtype::float32, call.shape(0)}};
      },
      .batch = +[](const BatchCall& call) { return Vars{dequantize(call.whole(0))}; },
      .differentiable = false,
      .lowering = {.kernel = kernel_by_name,
                   .layouts = {.any_in = true},
                   .dtypes = {.casts = true, .blocks = +[](const OpCall&) { return true; }}}};
  return entry;
}
}  // namespace

Var dequantize(const Argument& x) {
  return apply(dequantize_blocks_op(), {x})[0];
}

Var dequantize(const Argument& x, const Var& scale) {
  return apply(dequantize_op(), {x, scale})[0];
}

void list_matmul(OpTable& table) {
  table.add(matmul_op());
  table.add(dequantize_op());
  table.add(dequantize_blocks_op());
}

}  // namespace xtape
