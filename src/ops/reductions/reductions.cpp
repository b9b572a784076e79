// sum, mean, max, min, any, all, var and logsumexp: reductions over axes.
#include "ops/reductions/reductions.hpp"

#include <algorithm>
#include <limits>

#include "kernels/reductions/reduce.hpp"

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
  const Shape kept = reduced_shape(x.shape(), reduced_axes(axes_of(attributes), x.rank()), true);
  return y.shape() == kept ? y : reshape(y, kept);
}

std::vector<ValueType> reduced_type(const OpCall& call, Dtype dtype) {
  const std::vector<bool> reduced = reduced_axes(call.integers("axis"), call.shape(0).size());
  return {{dtype, reduced_shape(call.shape(0), reduced, call.flag("keepdims"))}};
}

namespace {
Vars sum_gradient(const GradientCall& call) {
  const Var& x = call.inputs[0];
  return {broadcast_to(with_reduced_axes(call.cotangent(), x, call.attributes), x.shape())};
}

Vars mean_gradient(const GradientCall& call) {
  const Var& x = call.inputs[0];
  const auto count = reduced_count(x.shape(), axes_of(call.attributes));
  const Var share = with_reduced_axes(call.cotangent(), x, call.attributes) / static_cast<double>(count);
  return {broadcast_to(share, x.shape())};
}

Vars expand_mean(const ExpandCall& call) {
  const auto& axis = axes_of(call.attributes);
  const auto count = reduced_count(call.inputs[0].shape(), axis);
  return {sum(call.inputs[0], axis, call.flag("keepdims")) / static_cast<double>(count)};
}

/// The gradient of max and min. All elements that equal the result share the cotangent equally.
Vars share_among_equals(const GradientCall& call) {
  const Var& x = call.inputs[0];
  const Var chosen = cast(x == with_reduced_axes(call.outputs[0], x, call.attributes), x.dtype());
  const Var share =
      with_reduced_axes(call.cotangent(), x, call.attributes) / sum(chosen, axes_of(call.attributes), true);
  return {chosen * share};
}

struct ReductionRow {
  const char* name;
  const char* doc;
  Reduction kind;
  Accept accept;
  Vars (*gradient)(const GradientCall&) = nullptr;
  Vars (*expand)(const ExpandCall&) = nullptr;
};
const ReductionRow reduction_rows[] = {
    {"sum", "The sum over the axes; 0 over no elements. Integers and bool are summed as int64.", Reduction::sum,
     Accept::value, sum_gradient},
    {"mean", "The mean over the axes; NaN over no elements.", Reduction::mean, Accept::floating, mean_gradient,
     expand_mean},
    {"max", "The largest element over the axes; NaN if any element is NaN. Equal elements share the gradient equally.",
     Reduction::maximum, Accept::value, share_among_equals},
    {"min", "The smallest element over the axes; NaN if any element is NaN. Equal elements share the gradient equally.",
     Reduction::minimum, Accept::value, share_among_equals},
    {"any", "Whether any element over the axes is true; false over no elements.", Reduction::any, Accept::mask},
    {"all", "Whether all elements over the axes are true; true over no elements.", Reduction::all, Accept::mask}};

std::vector<ValueType> type_of_reduction(const OpCall& call, Reduction kind) {
  const std::vector<bool> reduced = reduced_axes(call.integers("axis"), call.shape(0).size());
  const bool extreme = kind == Reduction::maximum || kind == Reduction::minimum;
  if (extreme && call.dtype(0) == Dtype::boolean)
    throw DtypeError("takes numbers, received bool: use 'any' or 'all' instead");
  for (std::size_t i = 0; i < reduced.size(); ++i)
    if (extreme && reduced[i] && call.shape(0)[i] == 0)
      throw ShapeError("needs at least one element: axis " + std::to_string(i) + " of shape " +
                       to_string(call.shape(0)) + " is empty");
  return reduced_type(call, kind == Reduction::sum && !is_floating(call.dtype(0)) ? Dtype::int64 : call.dtype(0));
}

std::vector<Op> reduction_ops() {
  std::vector<Op> ops;
  for (const ReductionRow& row : reduction_rows)
    ops.push_back({.name = row.name,
                   .doc = row.doc,
                   .inputs = {{"x", row.accept}},
                   .attributes = reduction_attributes(),
                   .shape = [kind = row.kind](const OpCall& call) { return type_of_reduction(call, kind); },
                   .gradient = row.gradient,
                   .batch = batch_axes(),
                   .expand = row.expand,
                   .differentiable = row.gradient != nullptr,
                   .lowering = {.kernel = kernel_by_name}});
  return ops;
}
}  // namespace

XTAPE_REDUCTION(sum)
XTAPE_REDUCTION(mean)
XTAPE_REDUCTION(max)
XTAPE_REDUCTION(min)
XTAPE_REDUCTION(any)
XTAPE_REDUCTION(all)

namespace {
/// Returns the divisor of the sum of squares: the count minus the correction, at least 0.
double divisor(const Shape& shape, const Attributes& attributes) {
  const std::int64_t count = reduced_count(shape, axes_of(attributes)) - attributes.get<std::int64_t>("correction");
  return static_cast<double>(std::max<std::int64_t>(0, count));
}

const Op& var_op() {
  static const Op entry = [] {
    Op op;
    op.name = "var";
    op.doc =
        "The variance over the axes: the sum of square(x - mean(x)) divided by n - correction, where n is the number "
        "of reduced elements. If n is not larger than the correction, the result is NaN or inf.";
    op.inputs = {{"x", Accept::floating}};
    op.attributes = reduction_attributes();
    op.attributes.push_back({"correction", AttributeType::integer,
                             "0 for the variance of the elements, 1 for the unbiased estimate from a sample.",
                             std::int64_t{0}});
    op.shape = +[](const OpCall& call) {
      if (call.integer("correction") < 0)
        throw Error("correction must not be negative, got " + std::to_string(call.integer("correction")));
      return reduced_type(call, call.dtype(0));
    };
    op.gradient = +[](const GradientCall& call) {
      const Var& x = call.inputs[0];
      const Var share =
          with_reduced_axes(call.cotangent(), x, call.attributes) * (2 / divisor(x.shape(), call.attributes));
      return Vars{share * (x - mean(x, axes_of(call.attributes), true))};
    };
    op.batch = batch_axes();
    op.expand = +[](const ExpandCall& call) {
      const Var& x = call.inputs[0];
      const Axes& axis = axes_of(call.attributes);
      const bool keepdims = call.flag("keepdims");
      const Var squares = square(x - mean(x, axis, true));
      if (call.integer("correction") == 0) return Vars{mean(squares, axis, keepdims)};
      return Vars{sum(squares, axis, keepdims) / divisor(x.shape(), call.attributes)};
    };
    return op;
  }();
  return entry;
}

const Op& logsumexp_op() {
  static const Op entry = [] {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    Op op;
    op.name = "logsumexp";
    op.doc =
        "log(sum(exp(x))) over the axes. The largest element is subtracted first, so that exp does not overflow. "
        "Where all elements are -inf, or there are none, the result is -inf and the gradient 0.";
    op.inputs = {{"x", Accept::floating}};
    op.attributes = reduction_attributes();
    op.shape = +[](const OpCall& call) { return reduced_type(call, call.dtype(0)); };
    op.gradient = +[](const GradientCall& call) {
      const Var& x = call.inputs[0];
      const Var y = with_reduced_axes(call.outputs[0], x, call.attributes);
      const Var finite = masked_fill(y, y == -infinity, 0);
      return Vars{with_reduced_axes(call.cotangent(), x, call.attributes) * exp(x - finite)};
    };
    op.batch = batch_axes();
    op.expand = +[](const ExpandCall& call) {
      const Var& x = call.inputs[0];
      const Axes& axis = axes_of(call.attributes);
      const bool keepdims = call.flag("keepdims");
      if (reduced_count(x.shape(), axis) == 0) return Vars{log(sum(exp(x), axis, keepdims))};
      const Var greatest = stop_gradient(max(x, axis, true));
      const Var shift = masked_fill(greatest, abs(greatest) == infinity, 0);
      const Var y = log(sum(exp(x - shift), axis, true)) + shift;
      return Vars{keepdims ? y : reshape(y, reduced_shape(x.shape(), reduced_axes(axis, x.rank()), false))};
    };
    return op;
  }();
  return entry;
}
}  // namespace

Var variance(const Argument& x, const Axes& axis, bool keepdims, std::int64_t correction) {
  return apply(var_op(), {x}, {{"axis", axis}, {"keepdims", keepdims}, {"correction", correction}})[0];
}
XTAPE_REDUCTION(logsumexp)

void list_reductions(OpTable& table) {
  static const std::vector<Op> ops = reduction_ops();
  for (const Op& op : ops) table.add(op);
  table.add(var_op());
  table.add(logsumexp_op());
}

}  // namespace xtape
