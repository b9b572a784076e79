// Reductions that are compositions of other reductions.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/math/root_of_squares.hpp"
#include "ops/reductions/reductions.hpp"
#include "xtape/ops/elementwise.hpp"
#include "xtape/ops/reductions.hpp"

namespace xtape {

namespace {
bool keeps(const ExpandCall& call) {
  return call.flag("keepdims");
}

/// Returns x ** power, except where x is `limit`. There the result is `value` with gradient 0, because the slope of the
/// power would be infinite or undefined.
Var power_but_at(const Var& x, double power, double limit, double value) {
  const Var there = x == limit;
  return masked_fill(pow(masked_fill(x, there, 1), power), there, value);
}
/// Returns max(|x|) over the axes, which stay with size 1, for order > 0, and min(|x|) for order < 0. Replaces it by 1
/// where it is 0 or not finite, or where sums of |x| ** order neither overflow nor underflow. x divided by the result
/// then has a norm in the range of the dtype.
Var scale_of(const Var& x, double order, const Axes& axis) {
  if (reduced_count(x.shape(), axis) == 0) return ones_like(sum(x, axis, true));
  const Var size = stop_gradient(order > 0 ? max(abs(x), axis, true) : min(abs(x), axis, true));
  const double room = (x.dtype() == Dtype::float64 ? 480 : 48) / std::abs(order);
  const double most = kernels().numbers.pow(2, room);
  const Var fits = (size >= 1 / most) & (size <= most);
  return where(fits | (size == 0) | ~isfinite(size), 1, size);
}

/// Replaces 0 by infinity. Quotients by the result are then 0, and so are their derivatives.
Var nonzero_length(const Var& y) {
  return masked_fill(y, y == 0, std::numeric_limits<double>::infinity());
}

/// x, or its distance from the mean.
Var deviation(const Var& x, const Attributes& attributes) {
  return attributes.get<bool>("centred") ? x - mean(x, axes_of(attributes), true) : x;
}

const Op& root_of_squares_op() {
  static const Op entry = [] {
    Op op;
    op.name = "root_of_squares";
    op.doc =
        "The square root of `squares`, which is the sum of square(x) over the axes, or of square(x - mean(x)) if "
        "`centred`, divided by `divisor`. Where this sum is too large or too small, the root is computed from x, so "
        "that no intermediate value overflows or underflows. Where the result is 0, the gradient is 0.";
    op.inputs = {{"x", Accept::floating}, {"squares", Accept::floating}};
    op.attributes = reduction_attributes();
    op.attributes.push_back({"centred", AttributeType::boolean, "If true, the mean of x is subtracted.", false});
    op.attributes.push_back({"divisor", AttributeType::number, "The divisor of the sum.", 1.0});
    op.shape = +[](const OpCall& call) {
      require_shape(call, 1, reduced_type(call, call.dtype(0))[0].shape, "the reduced shape of x");
      return std::vector<ValueType>{call.inputs[1]};
    };
    op.gradient = +[](const GradientCall& call) {
      const Var &x = call.inputs[0], &y = call.outputs[0];
      const auto kept = [&](const Var& each) { return with_reduced_axes(each, x, call.attributes); };
      const Var length = kept(nonzero_length(y));
      const double divisor = call.number("divisor");
      const Var share = divisor == 1 ? call.cotangent() : call.cotangent() * (1 / divisor);
      return Vars{kept(share) * (deviation(x, call.attributes) / length), Var()};
    };
    op.batch = +[](const BatchCall& call) { return call.rank() == 0 ? Vars{} : batch_axes()(call); };
    op.expand = +[](const ExpandCall& call) {
      const Var x = deviation(call.inputs[0], call.attributes), scale = scale_of(x, 2, axes_of(call.attributes));
      const Var scaled = sum(square(x / scale), axes_of(call.attributes), true) / call.number("divisor");
      const Var& squares = call.inputs[1];
      const Var exact = (squares >= least_exact_sum(x.dtype())) & isfinite(squares);
      return Vars{where(exact, sqrt(squares), reshape(sqrt(scaled) * scale, squares.shape()))};
    };
    op.derivative.differs = true;
    op.lowering.kernel = +[](const KernelCall& call) { return make_root_of_squares(form_of(call, call.attributes)); };
    op.lowering.layouts.any_in = true;
    return op;
  }();
  return entry;
}
Var root_of_squares(const Var& x, const Var& squares, const ExpandCall& call, bool centred, double divisor) {
  return record_call(
      x.tape(), root_of_squares_op(), {x, stop_gradient(squares)},
      {{"axis", axes_of(call.attributes)}, {"keepdims", keeps(call)}, {"centred", centred}, {"divisor", divisor}})[0];
}

Vars expand_std(const ExpandCall& call) {
  const Var& x = call.inputs[0];
  const std::int64_t correction = call.integer("correction");
  const auto divisor = std::max<std::int64_t>(0, reduced_count(x.shape(), axes_of(call.attributes)) - correction);
  return {root_of_squares(x, variance(x, axes_of(call.attributes), keeps(call), correction), call, true,
                          static_cast<double>(divisor))};
}

Vars expand_vector_norm(const ExpandCall& call) {
  const Var& x = call.inputs[0];
  const double p = call.number("p");
  const Axes& axis = axes_of(call.attributes);
  if (std::isinf(p)) return {p > 0 ? max(abs(x), axis, keeps(call)) : min(abs(x), axis, keeps(call))};
  if (p == 0) return {sum(cast(x != 0, x.dtype()), axis, keeps(call))};
  if (p == 1) return {sum(abs(x), axis, keeps(call))};
  if (p == 2) return {root_of_squares(x, sum(square(x), axis, keeps(call)), call, false, 1)};
  const double of_zero = p > 0 ? 0 : std::numeric_limits<double>::infinity();
  const Var scale = scale_of(x, p, axis);
  const Var sums = sum(power_but_at(abs(x / scale), p, 0, of_zero), axis, true);
  return {reshape(power_but_at(sums, 1 / p, of_zero, 0) * scale, call.node.outputs[0].shape)};
}

/// The powers of an order other than 0, 1, 2 and infinity. The gradient of the expansion would multiply by the scale,
/// and then divide by it.
Vars vector_norm_gradient(const GradientCall& call) {
  const double p = call.number("p");
  if (std::isinf(p) || p == 0 || p == 1 || p == 2 || is_half(call.inputs[0].dtype())) return {};
  const Var &x = call.inputs[0], &y = call.outputs[0];
  const Var length = with_reduced_axes(nonzero_length(y), x, call.attributes);
  const Var slope = sign(x) * power_but_at(abs(x) / length, p - 1, 0, 0);
  return {with_reduced_axes(call.cotangent(), x, call.attributes) * slope};
}

Vars expand_nansum(const ExpandCall& call) {
  const Var& x = call.inputs[0];
  return {sum(masked_fill(x, x != x, 0), axes_of(call.attributes), keeps(call))};
}
Vars expand_nanmean(const ExpandCall& call) {
  const Var& x = call.inputs[0];
  const Var count = sum(cast(x == x, x.dtype()), axes_of(call.attributes), keeps(call));
  return {sum(masked_fill(x, x != x, 0), axes_of(call.attributes), keeps(call)) / count};
}

/// Returns the index of the largest element of -x. For integers, uses -1 - x in place of -x, because the smallest
/// integer has no negative in two's complement.
Vars expand_argmin(const ExpandCall& call) {
  const Var& x = call.inputs[0];
  return {argmax(is_floating(x.dtype()) ? -x : -1 - x, call.integer("axis"), keeps(call))};
}

constexpr AttributeRow correction{
    "correction", "0 for the deviation of the elements, 1 for the estimate from a sample.", 0, AttributeType::integer};

const ComposedRow float_rows[] = {
    {"std",
     "x",
     "The standard deviation, the square root of var. The squares neither overflow nor underflow. Where the result is "
     "0, the gradient is 0. square(std(x)) is recorded as var.",
     expand_std,
     {{correction}}},
    {"vector_norm",
     "x",
     "sum(|x| ** p) ** (1 / p). For p = inf, the result is the largest |x|; for p = -inf, the smallest |x|; for p = 0, "
     "the number of nonzero elements. The powers neither overflow nor underflow. The gradient at 0 is 0. For p = 2, "
     "square(vector_norm(x)) is recorded as sum(square(x)), whose second derivative at 0 is 2.",
     expand_vector_norm,
     {{{"p", "The order of the norm.", 2}}}},
    {"nansum", "x", "The sum of the elements that are not NaN. NaN elements get no gradient.", expand_nansum},
    {"nanmean", "x", "The mean of the elements that are not NaN; NaN if there are none.", expand_nanmean},
};
const ComposedRow count_rows[] = {{"count_nonzero",
                                   "=x",
                                   "The int64 number of elements that are not 0, or, for bool, that are true.",
                                   +[](const ExpandCall& call) {
                                     const Var& x = call.inputs[0];
                                     const Var counted = x.dtype() == Dtype::boolean ? x : x != 0;
                                     return Vars{
                                         sum(cast(counted, Dtype::int64), axes_of(call.attributes), keeps(call))};
                                   },
                                   {},
                                   false}};
const ComposedRow argmin_rows[] = {
    {"argmin",
     "=x",
     "The int64 index of the smallest element along `axis`. Ties give the first index. NaN counts as the smallest.",
     expand_argmin,
     {{{"axis", "The axis that is searched.", -1, AttributeType::integer},
       {"keepdims", "If true, the axis stays with size 1.", 0, AttributeType::boolean}}},
     false}};

std::vector<ValueType> float_type(const OpCall& call) {
  if (call.attributes.find("correction") != nullptr && call.integer("correction") < 0)
    throw Error("correction must not be negative, got " + std::to_string(call.integer("correction")));
  const Attribute* p = call.attributes.find("p");
  if (p != nullptr && std::isnan(call.number("p"))) throw Error("p must be a number, got NaN");
  // If p is infinite or negative, the norm over no elements is not defined. The shape rule of `max` throws in this
  // case.
  if (p != nullptr && (std::isinf(call.number("p")) || call.number("p") < 0))
    return builtin_ops().at("max").shape(call);
  return reduced_type(call, call.dtype(0));
}
std::vector<ValueType> count_type(const OpCall& call) {
  return reduced_type(call, Dtype::int64);
}
std::vector<ValueType> argmin_type(const OpCall& call) {
  return builtin_ops().at("argmax").shape(call);
}
}  // namespace

Var standard_deviation(const Argument& x, const Axes& axis, bool keepdims, std::int64_t correction) {
  return call_op("std", {x}, {{"axis", axis}, {"keepdims", keepdims}, {"correction", correction}});
}
Var argmin(const Argument& x, std::int64_t axis, bool keepdims) {
  return call_op("argmin", {x}, {{"axis", axis}, {"keepdims", keepdims}});
}
XTAPE_REDUCTION(nansum)
XTAPE_REDUCTION(nanmean)
XTAPE_REDUCTION(count_nonzero)
Var vector_norm(const Argument& x, double p, const Axes& axis, bool keepdims) {
  return call_op("vector_norm", {x}, {{"axis", axis}, {"keepdims", keepdims}, {"p", p}});
}

Var square_of_root(const Var& y) {
  const Node& node = y.node();
  const auto calls = [&](const char* name) { return node.op->name == name && node.op == &builtin_ops().at(name); };
  const bool deviation = calls("std");
  // Squares of half-precision numbers underflow before their sum does.
  if (is_half(y.dtype()) || (!deviation && !(calls("vector_norm") && node.attributes.get<double>("p") == 2))) return {};
  const Var x = y.tape().var(node.inputs[0]);
  const auto& axis = node.attributes.get<std::vector<std::int64_t>>("axis");
  const bool keepdims = node.attributes.get<bool>("keepdims");
  return deviation ? variance(x, axis, keepdims, node.attributes.get<std::int64_t>("correction"))
                   : sum(square(x), axis, keepdims);
}

void list_composed_reductions(OpTable& table) {
  static const std::vector<std::vector<Op>> families = [] {
    std::vector<std::vector<Op>> all{composed(float_rows, float_type, reduction_attributes()),
                                     composed(count_rows, count_type, reduction_attributes()),
                                     composed(argmin_rows, argmin_type)};
    for (Op& op : all[0])
      if (op.name == "vector_norm") op.gradient = vector_norm_gradient;
    return all;
  }();
  add_all(table, families);
  table.add(root_of_squares_op());
}

}  // namespace xtape
