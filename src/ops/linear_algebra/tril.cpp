// tril and triu: the lower and upper triangles of matrices.
#include <algorithm>

#include "ops/recording/batching.hpp"
#include "ops/recording/op_helpers.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"

namespace xtape {

namespace {
/// Returns the diagonal, clamped to [-rows, columns]. Clamping does not change which elements are kept.
std::int64_t diagonal_of(const Attributes& attributes, const Shape& shape) {
  return std::clamp(attributes.get<std::int64_t>("diagonal"), -shape[shape.size() - 2], shape.back());
}

Op triangle(const std::string& name, const std::string& side, const std::string& relation, bool lower) {
  Op op;
  op.name = name;
  op.doc = "The " + side +
           " triangle of the matrices along the last two axes: y[..., i, j] is x[..., i, j] where j - i " + relation +
           " diagonal, else 0.";
  op.inputs = {{"x", Accept::any}};
  op.attributes = {{"diagonal", AttributeType::integer,
                    "The outermost diagonal that is kept: 0 is the main diagonal, positive numbers are above it.",
                    std::int64_t{0}}};
  op.shape = [](const OpCall& call) {
    if (call.shape(0).size() < 2)
      throw ShapeError("needs at least two axes, got an array of shape " + to_string(call.shape(0)));
    return std::vector<ValueType>{call.inputs[0]};
  };
  op.lowering.kernel = kernel_by_name;
  op.gradient = [lower](const GradientCall& call) {
    const auto diagonal = call.attributes().get<std::int64_t>("diagonal");
    return Vars{lower ? tril(call.cotangent(), diagonal) : triu(call.cotangent(), diagonal)};
  };
  op.batch = batch_leading;
  op.expand = [lower](const ExpandCall& call) {
    const Var& x = call.inputs[0];
    const std::int64_t diagonal = diagonal_of(call.attributes(), x.shape());
    const Var across = iota(call.tape, {1, x.size(-1)}, 1), down = iota(call.tape, {x.size(-2), 1}, 0);
    const Var kept = lower ? across - down <= diagonal : across - down >= diagonal;
    return Vars{where(kept, x, zeros(call.tape, {}, x.dtype()))};
  };
  op.lowering.overwrites = {0};
  return op;
}

const Op& tril_op() {
  static const Op entry = triangle("tril", "lower", "<=", true);
  return entry;
}
const Op& triu_op() {
  static const Op entry = triangle("triu", "upper", ">=", false);
  return entry;
}
}  // namespace

Var tril(const Argument& x, std::int64_t diagonal) {
  return apply(tril_op(), {x}, {{"diagonal", diagonal}})[0];
}
Var triu(const Argument& x, std::int64_t diagonal) {
  return apply(triu_op(), {x}, {{"diagonal", diagonal}})[0];
}

void list_tril(OpTable& table) {
  table.add(tril_op());
  table.add(triu_op());
}

}  // namespace xtape
