// var and logsumexp, which are compositions of other reductions.
#include <algorithm>
#include <limits>

#include "ops/recording/batching.hpp"
#include "ops/recording/op_helpers.hpp"
#include "ops/reductions/reductions.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"

namespace xtape {

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
    op.shape = [](const OpCall& call) {
      if (call.integer("correction") < 0)
        throw Error("correction must not be negative, got " + std::to_string(call.integer("correction")));
      return reduced_type(call, call.dtype(0));
    };
    op.gradient = [](const GradientCall& call) {
      const Var& x = call.inputs[0];
      const Var share =
          with_reduced_axes(call.cotangent(), x, call.attributes()) * (2 / divisor(x.shape(), call.attributes()));
      return Vars{share * (x - mean(x, axes_of(call.attributes()), true))};
    };
    op.batch = batch_axes();
    op.expand = [](const ExpandCall& call) {
      const Var& x = call.inputs[0];
      const Axes& axis = axes_of(call.attributes());
      const bool keepdims = call.attributes().get<bool>("keepdims");
      const Var squares = square(x - mean(x, axis, true));
      if (call.attributes().get<std::int64_t>("correction") == 0) return Vars{mean(squares, axis, keepdims)};
      return Vars{sum(squares, axis, keepdims) / divisor(x.shape(), call.attributes())};
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
    op.shape = [](const OpCall& call) { return reduced_type(call, call.dtype(0)); };
    op.gradient = [](const GradientCall& call) {
      const Var& x = call.inputs[0];
      const Var y = with_reduced_axes(call.outputs[0], x, call.attributes());
      const Var finite = masked_fill(y, y == -infinity, 0);
      return Vars{with_reduced_axes(call.cotangent(), x, call.attributes()) * exp(x - finite)};
    };
    op.batch = batch_axes();
    op.expand = [](const ExpandCall& call) {
      const Var& x = call.inputs[0];
      const Axes& axis = axes_of(call.attributes());
      const bool keepdims = call.attributes().get<bool>("keepdims");
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

void list_derived_reductions(OpTable& table) {
  table.add(var_op());
  table.add(logsumexp_op());
}

}  // namespace xtape
