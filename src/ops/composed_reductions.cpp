// Reductions that are compositions of other reductions.
#include <cmath>
#include <limits>

#include "composed.hpp"
#include "floating.hpp"
#include "reductions.hpp"
#include "xtape/ops/reductions.hpp"

namespace xtape {

namespace {
Axes axes_of(const ExpandCall& call) {
  return call.attributes().get<std::vector<std::int64_t>>("axis");
}
bool keeps(const ExpandCall& call) {
  return flag_of(call, "keepdims");
}

/// Returns x ** power, except where x is `limit`. There the result is `value` with gradient 0, because the slope of the
/// power would be infinite or undefined.
Var power_but_at(const Var& x, double power, double limit, double value) {
  const Var there = x == limit;
  return masked_fill(pow(masked_fill(x, there, 1), power), there, value);
}
Var root(const Var& x) {
  return power_but_at(x, 0.5, 0, 0);
}

Vars expand_std(const ExpandCall& call) {
  return {root(variance(call.inputs[0], axes_of(call), keeps(call), integer_of(call, "correction")))};
}

Vars expand_vector_norm(const ExpandCall& call) {
  const Var& x = call.inputs[0];
  const double p = number_of(call, "p");
  const Axes& axis = axes_of(call);
  if (std::isinf(p)) return {p > 0 ? max(abs(x), axis, keeps(call)) : min(abs(x), axis, keeps(call))};
  if (p == 0) return {sum(cast(x != 0, x.dtype()), axis, keeps(call))};
  if (p == 1) return {sum(abs(x), axis, keeps(call))};
  if (p == 2) return {root(sum(square(x), axis, keeps(call)))};
  const double of_zero = p > 0 ? 0 : std::numeric_limits<double>::infinity();
  return {power_but_at(sum(power_but_at(abs(x), p, 0, of_zero), axis, keeps(call)), 1 / p, of_zero, 0)};
}

Vars expand_nansum(const ExpandCall& call) {
  const Var& x = call.inputs[0];
  return {sum(masked_fill(x, x != x, 0), axes_of(call), keeps(call))};
}
Vars expand_nanmean(const ExpandCall& call) {
  const Var& x = call.inputs[0];
  const Var count = sum(cast(x == x, x.dtype()), axes_of(call), keeps(call));
  return {sum(masked_fill(x, x != x, 0), axes_of(call), keeps(call)) / count};
}

/// Returns the index of the largest element of -x. For integers, uses -1 - x in place of -x, because the smallest
/// integer has no negative in two's complement.
Vars expand_argmin(const ExpandCall& call) {
  const Var& x = call.inputs[0];
  return {argmax(is_floating(x.dtype()) ? -x : -1 - x, integer_of(call, "axis"), keeps(call))};
}

constexpr AttributeRow correction{
    "correction", "0 for the deviation of the elements, 1 for the estimate from a sample.", 0, AttributeType::integer};

const ComposedRow float_rows[] = {
    {"std",
     "x",
     "The standard deviation, the square root of var. Where the result is 0, the gradient is 0.",
     expand_std,
     {{correction}}},
    {"vector_norm",
     "x",
     "sum(|x| ** p) ** (1 / p). For p = inf, the result is the largest |x|; for p = -inf, the smallest |x|; for p = 0, "
     "the number of nonzero elements. The gradient at 0 is 0.",
     expand_vector_norm,
     {{{"p", "The order of the norm.", 2}}}},
    {"nansum", "x", "The sum of the elements that are not NaN. NaN elements get no gradient.", expand_nansum},
    {"nanmean", "x", "The mean of the elements that are not NaN; NaN if there are none.", expand_nanmean},
};
const ComposedRow count_rows[] = {{"count_nonzero",
                                   "=x",
                                   "The int64 number of elements that are not 0, or, for bool, that are true.",
                                   [](const ExpandCall& call) {
                                     const Var& x = call.inputs[0];
                                     const Var counted = x.dtype() == Dtype::boolean ? x : x != 0;
                                     return Vars{sum(cast(counted, Dtype::int64), axes_of(call), keeps(call))};
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

std::vector<ValueType> reduced_to(const OpCall& call, Dtype dtype) {
  const std::vector<bool> reduced = reduced_axes(call.integers("axis"), call.shape(0).size());
  return {{dtype, reduced_shape(call.shape(0), reduced, call.flag("keepdims"))}};
}
std::vector<ValueType> float_type(const OpCall& call) {
  if (call.attributes.find("correction") != nullptr && call.integer("correction") < 0)
    throw Error("correction must not be negative, got " + std::to_string(call.integer("correction")));
  const Attribute* p = call.attributes.find("p");
  if (p != nullptr && std::isnan(call.number("p"))) throw Error("p must be a number, got NaN");
  // If p is infinite or negative, the norm over no elements is not defined. The shape rule of `max` throws in this
  // case.
  if (p != nullptr && (std::isinf(call.number("p")) || call.number("p") < 0)) return builtin_ops().at("max").shape(call);
  return reduced_to(call, call.dtype(0));
}
std::vector<ValueType> count_type(const OpCall& call) {
  return reduced_to(call, Dtype::int64);
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
Var nansum(const Argument& x, const Axes& axis, bool keepdims) {
  return call_op("nansum", {x}, {{"axis", axis}, {"keepdims", keepdims}});
}
Var nanmean(const Argument& x, const Axes& axis, bool keepdims) {
  return call_op("nanmean", {x}, {{"axis", axis}, {"keepdims", keepdims}});
}
Var count_nonzero(const Argument& x, const Axes& axis, bool keepdims) {
  return call_op("count_nonzero", {x}, {{"axis", axis}, {"keepdims", keepdims}});
}
Var vector_norm(const Argument& x, double p, const Axes& axis, bool keepdims) {
  return call_op("vector_norm", {x}, {{"axis", axis}, {"keepdims", keepdims}, {"p", p}});
}
void list_composed_reductions(OpTable& table) {
  static const std::vector<std::vector<Op>> families{composed(float_rows, float_type, reduction_attributes()),
                                                     composed(count_rows, count_type, reduction_attributes()),
                                                     composed(argmin_rows, argmin_type)};
  add_all(table, families);
}

}  // namespace xtape
