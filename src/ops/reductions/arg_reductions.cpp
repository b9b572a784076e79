// argmax and top_k: the largest elements and their indices.
#include "kernels/indexing/index_kernels.hpp"
#include "ops/recording/batching.hpp"
#include "ops/recording/op_helpers.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"
#include "xtape/ops/order.hpp"

namespace xtape {

namespace {
void refuse_bool(const OpCall& call) {
  if (call.dtype(0) == Dtype::boolean) throw DtypeError("takes numbers, received bool: cast to a number first");
}

const Op& argmax_op() {
  static const Op entry{
      .name = "argmax",
      .doc = R"(The int64 index of the largest element along `axis`. Ties give the first index. NaN counts as the
           largest.)",
      .inputs = {{"x"}},
      .attributes = {{"axis", AttributeType::integer, "The axis that is searched.", std::int64_t{-1}},
                     {"keepdims", AttributeType::boolean, "If true, the axis stays with size 1.", false}},
      .shape = [](const OpCall& call) -> std::vector<ValueType> {
        refuse_bool(call);
        Shape shape = call.shape(0);
        const std::size_t axis = normal_axis(call.integer("axis"), shape.size());
        if (shape[axis] == 0)
          throw ShapeError("needs at least one element: axis " + std::to_string(axis) + " of shape " +
                           to_string(shape) + " is empty");
        if (call.flag("keepdims"))
          shape[axis] = 1;
        else
          shape.erase(axis);
        return {{Dtype::int64, shape}};
      },
      .batch = batch_along(),
      .differentiable = false,
      .lowering = {.kernel = kernel_by_name}};
  return entry;
}

const Op& top_k_op() {
  static const Op entry{
      .name = "top_k",
      .doc = R"(The k largest elements along `axis` in descending order, and their int64 indices. If `largest` is false,
           the k smallest elements in ascending order. Equal elements keep their order; NaN counts as the largest. The
           gradient is the cotangent of the values at their indices, and 0 elsewhere.)",
      .inputs = {{"x"}},
      .outputs = {"values", "indices"},
      .attributes = {{"k", AttributeType::integer, "The number of elements, from 0 to the size of the axis.",
                      std::nullopt},
                     {"axis", AttributeType::integer, "The axis that is searched.", std::int64_t{-1}},
                     {"largest", AttributeType::boolean,
                      "If true, selects the largest elements; if false, the smallest.", true}},
      .shape = [](const OpCall& call) -> std::vector<ValueType> {
        refuse_bool(call);
        Shape shape = call.shape(0);
        const std::size_t axis = normal_axis(call.integer("axis"), shape.size());
        const std::int64_t k = call.integer("k");
        if (k < 0 || k > shape[axis])
          throw ShapeError("k must be between 0 and the size of axis " + std::to_string(axis) + ", got k " +
                           std::to_string(k) + " and shape " + to_string(shape));
        shape[axis] = k;
        return {{call.dtype(0), shape}, {Dtype::int64, shape}};
      },
      .gradient =
          [](const GradientCall& call) {
            return Vars{scatter_add(zeros_like(call.inputs[0]), call.attributes().get<std::int64_t>("axis"),
                                    call.outputs[1], call.cotangent())};
          },
      .batch = batch_along(),
      .lowering = {.kernel = [](const KernelCall& call) { return make_top_k(form_of(call, call.attributes)); }}};
  return entry;
}
}  // namespace

Var argmax(const Argument& x, std::int64_t axis, bool keepdims) {
  return apply(argmax_op(), {x}, {{"axis", axis}, {"keepdims", keepdims}})[0];
}
std::pair<Var, Var> top_k(const Argument& x, std::int64_t k) {
  return top_k(x, k, -1);
}
std::pair<Var, Var> top_k(const Argument& x, std::int64_t k, std::int64_t axis, bool largest) {
  const Vars outputs = apply(top_k_op(), {x}, {{"k", k}, {"axis", axis}, {"largest", largest}});
  return {outputs[0], outputs[1]};
}

void list_arg_reductions(OpTable& table) {
  table.add(argmax_op());
  table.add(top_k_op());
}

}  // namespace xtape
