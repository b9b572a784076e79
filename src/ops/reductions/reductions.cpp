// sum, mean, max, min, any and all: reductions over axes.
#include "ops/reductions/reductions.hpp"

#include <algorithm>
#include <memory>

#include "kernels/reductions/reduce.hpp"
#include "ops/recording/batching.hpp"
#include "ops/recording/op_helpers.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"

namespace xtape {

std::vector<bool> reduced_axes(const std::vector<std::int64_t>& axis, std::size_t rank) {
  std::vector<bool> reduced(rank, axis.empty());
  for (std::int64_t each : axis) {
    const std::size_t at = normal_axis(each, rank);
    if (reduced[at])
      throw ShapeError("axis " + std::to_string(each) + " is named twice in " + to_string(Attribute{axis}));
    reduced[at] = true;
  }
  return reduced;
}

Shape reduced_shape(const Shape& shape, const std::vector<bool>& reduced, bool keepdims) {
  Shape result;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!reduced[i])
      result.push_back(shape[i]);
    else if (keepdims)
      result.push_back(1);
  }
  return result;
}

std::vector<AttributeSpec> reduction_attributes() {
  return {{"axis", AttributeType::integers, "The axes to reduce. An empty list means all axes.",
           std::vector<std::int64_t>{}},
          {"keepdims", AttributeType::boolean, "If true, reduced axes stay with size 1.", false}};
}

std::int64_t reduced_count(const Shape& shape, const std::vector<std::int64_t>& axis) {
  const std::vector<bool> reduced = reduced_axes(axis, shape.size());
  std::int64_t count = 1;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (reduced[i]) count *= shape[i];
  return count;
}

Var with_reduced_axes(const Var& y, const Var& x, const Attributes& attributes) {
  if (attributes.get<bool>("keepdims")) return y;
  const Shape kept =
      reduced_shape(x.shape(), reduced_axes(attributes.get<std::vector<std::int64_t>>("axis"), x.rank()), true);
  return y.shape() == kept ? y : reshape(y, kept);
}

namespace {
/// Defines a reduction without its gradient.
Op reduction(const char* name, const char* doc, Reduction kind, Accept accept) {
  Op op;
  op.name = name;
  op.doc = doc;
  op.inputs = {{"x", accept}};
  op.attributes = reduction_attributes();
  op.batch = batch_axes();
  op.shape = [kind](const OpCall& call) -> std::vector<ValueType> {
    const std::vector<bool> reduced = reduced_axes(call.integers("axis"), call.shape(0).size());
    const bool extreme = kind == Reduction::maximum || kind == Reduction::minimum;
    if (extreme && call.dtype(0) == Dtype::boolean)
      throw DtypeError("takes numbers, received bool: use 'any' or 'all' instead");
    for (std::size_t i = 0; i < reduced.size(); ++i)
      if (extreme && reduced[i] && call.shape(0)[i] == 0)
        throw ShapeError("needs at least one element: axis " + std::to_string(i) + " of shape " +
                         to_string(call.shape(0)) + " is empty");
    const Dtype dtype = kind == Reduction::sum && !is_floating(call.dtype(0)) ? Dtype::int64 : call.dtype(0);
    return {{dtype, reduced_shape(call.shape(0), reduced, call.flag("keepdims"))}};
  };
  op.lowering.kernel = kernel_by_name;
  return op;
}

const Op& sum_op() {
  static const Op entry = [] {
    Op op = reduction("sum", "The sum over the axes; 0 over no elements. Integers and bool are summed as int64.",
                      Reduction::sum, Accept::value);
    op.gradient = [](const GradientCall& call) {
      const Var& x = call.inputs[0];
      return Vars{broadcast_to(with_reduced_axes(call.cotangent(), x, call.attributes()), x.shape())};
    };
    return op;
  }();
  return entry;
}

const Op& mean_op() {
  static const Op entry = [] {
    Op op = reduction("mean", "The mean over the axes; NaN over no elements.", Reduction::mean, Accept::floating);
    op.gradient = [](const GradientCall& call) {
      const Var& x = call.inputs[0];
      const auto count = reduced_count(x.shape(), call.attributes().get<std::vector<std::int64_t>>("axis"));
      const Var share = with_reduced_axes(call.cotangent(), x, call.attributes()) / static_cast<double>(count);
      return Vars{broadcast_to(share, x.shape())};
    };
    op.expand = [](const ExpandCall& call) {
      const auto& axis = call.attributes().get<std::vector<std::int64_t>>("axis");
      const auto count = reduced_count(call.inputs[0].shape(), axis);
      return Vars{sum(call.inputs[0], axis, call.attributes().get<bool>("keepdims")) / static_cast<double>(count)};
    };
    return op;
  }();
  return entry;
}

/// The gradient of max and min. All elements that equal the result share the cotangent equally.
Vars share_among_equals(const GradientCall& call) {
  const Var& x = call.inputs[0];
  const auto& axis = call.attributes().get<std::vector<std::int64_t>>("axis");
  const Var chosen = cast(x == with_reduced_axes(call.outputs[0], x, call.attributes()), x.dtype());
  const Var share = with_reduced_axes(call.cotangent(), x, call.attributes()) / sum(chosen, axis, true);
  return {chosen * share};
}

const Op& max_op() {
  static const Op entry = [] {
    Op op = reduction(
        "max",
        "The largest element over the axes; NaN if any element is NaN. Equal elements share the gradient equally.",
        Reduction::maximum, Accept::value);
    op.gradient = share_among_equals;
    return op;
  }();
  return entry;
}

const Op& min_op() {
  static const Op entry = [] {
    Op op = reduction(
        "min",
        "The smallest element over the axes; NaN if any element is NaN. Equal elements share the gradient equally.",
        Reduction::minimum, Accept::value);
    op.gradient = share_among_equals;
    return op;
  }();
  return entry;
}

const Op& any_op() {
  static const Op entry = [] {
    Op op = reduction("any", "Whether any element over the axes is true; false over no elements.", Reduction::any,
                      Accept::mask);
    op.differentiable = false;
    return op;
  }();
  return entry;
}

const Op& all_op() {
  static const Op entry = [] {
    Op op = reduction("all", "Whether all elements over the axes are true; true over no elements.", Reduction::all,
                      Accept::mask);
    op.differentiable = false;
    return op;
  }();
  return entry;
}

Var reduce(const Op& op, const Argument& x, const Axes& axis, bool keepdims) {
  return apply(op, {x}, {{"axis", axis}, {"keepdims", keepdims}})[0];
}
}  // namespace

Var sum(const Argument& x, const Axes& axis, bool keepdims) {
  return reduce(sum_op(), x, axis, keepdims);
}
Var mean(const Argument& x, const Axes& axis, bool keepdims) {
  return reduce(mean_op(), x, axis, keepdims);
}
Var max(const Argument& x, const Axes& axis, bool keepdims) {
  return reduce(max_op(), x, axis, keepdims);
}
Var min(const Argument& x, const Axes& axis, bool keepdims) {
  return reduce(min_op(), x, axis, keepdims);
}
Var any(const Argument& x, const Axes& axis, bool keepdims) {
  return reduce(any_op(), x, axis, keepdims);
}
Var all(const Argument& x, const Axes& axis, bool keepdims) {
  return reduce(all_op(), x, axis, keepdims);
}

void list_reductions(OpTable& table) {
  for (const Op* op : {&sum_op(), &mean_op(), &max_op(), &min_op(), &any_op(), &all_op()}) table.add(*op);
}

}  // namespace xtape
