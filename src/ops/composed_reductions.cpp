// Reductions that are compositions of others. Products and running reductions combine halves or neighbours in log2(n)
// steps of whole arrays, so they are differentiated like any other ops: products with zeros have right gradients of any
// order, which formulas with quotients do not.
#include <cmath>
#include <limits>

#include "composed.hpp"
#include "floating.hpp"
#include "reductions.hpp"
#include "xtape/ops/reductions.hpp"

namespace xtape {

namespace {
const Axes& axes_of(const ExpandCall& call) {
  return call.attributes().get<Axes>("axis");
}
bool keeps(const ExpandCall& call) {
  return flag_of(call, "keepdims");
}
bool is_nan_free(Dtype dtype) {
  return !is_floating(dtype);
}

/// x[..., first:last, ...] along an axis.
Var part_of(const Var& x, std::size_t axis, std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> start(axis + 1, 0), stop(axis + 1, open_end);
  start[axis] = first;
  stop[axis] = last;
  return slice(x, start, stop);
}

/// Floats, or int64.
Var summable(const Var& x) {
  return is_floating(x.dtype()) ? x : cast(x, Dtype::int64);
}

/// The product along an axis, which stays with size 1: halves are multiplied until one element is left.
Var product_along(Var x, std::size_t axis) {
  Shape one = x.shape();
  one[axis] = 1;
  if (x.shape()[axis] == 0) return ones(x.tape(), one, x.dtype());
  for (std::int64_t size = x.shape()[axis]; size > 1; size = x.shape()[axis]) {
    const std::int64_t half = size / 2;
    const Var product = part_of(x, axis, 0, half) * part_of(x, axis, half, 2 * half);
    x = size % 2 == 0 ? product : concat({product, part_of(x, axis, 2 * half, size)}, static_cast<std::int64_t>(axis));
  }
  return x;
}

Vars expand_prod(const ExpandCall& call) {
  Var x = summable(call.inputs[0]);
  const std::vector<bool> reduced = reduced_axes(axes_of(call), x.rank());
  const Shape shape = reduced_shape(x.shape(), reduced, keeps(call));
  for (std::size_t axis = 0; axis < reduced.size(); ++axis)
    if (reduced[axis]) x = product_along(x, axis);
  return {keeps(call) ? x : reshape(x, shape)};
}

/// The running reduction of several arrays along an axis by an associative function of the arrays of earlier and of
/// later elements (Hillis and Steele, 1986).
template <class Combine>
Vars running(Vars xs, std::size_t axis, const Combine& combine) {
  const std::int64_t size = xs[0].shape()[axis];
  for (std::int64_t step = 1; step < size; step *= 2) {
    Vars earlier, later, done;
    for (const Var& x : xs) {
      earlier.push_back(part_of(x, axis, 0, size - step));
      later.push_back(part_of(x, axis, step, size));
      done.push_back(part_of(x, axis, 0, step));
    }
    const Vars combined = combine(earlier, later);
    for (std::size_t i = 0; i < xs.size(); ++i) xs[i] = concat({done[i], combined[i]}, static_cast<std::int64_t>(axis));
    if (step > size / 2) break;  // the next one would overflow, or be the last
  }
  return xs;
}

std::size_t running_axis(const ExpandCall& call) {
  return normal_axis(integer_of(call, "axis"), call.inputs[0].rank());
}

Vars expand_cumprod(const ExpandCall& call) {
  return running({summable(call.inputs[0])}, running_axis(call),
                 [](const Vars& earlier, const Vars& later) { return Vars{earlier[0] * later[0]}; });
}

/// The gradient goes to the elements that the indices name.
template <bool largest>
Vars expand_cumulative(const ExpandCall& call) {
  const Var& x = call.inputs[0];
  const std::size_t axis = running_axis(call);
  const Var places = iota(call.tape, x.shape(), static_cast<std::int64_t>(axis));
  const Var indices = running({stop_gradient(x), places}, axis, [](const Vars& earlier, const Vars& later) {
    const Var &a = earlier[0], &b = later[0];
    Var taken = largest ? b >= a : b <= a;
    if (!is_nan_free(a.dtype())) taken = taken | (b != b);
    return Vars{where(taken, b, a), where(taken, later[1], earlier[1])};
  })[1];
  return {gather(x, indices, static_cast<std::int64_t>(axis)), indices};
}

Vars expand_logcumsumexp(const ExpandCall& call) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  return running({call.inputs[0]}, running_axis(call), [](const Vars& earlier, const Vars& later) {
    const Var &a = earlier[0], &b = later[0];
    const Var greatest = stop_gradient(maximum(a, b));
    const Var shift = masked_fill(greatest, abs(greatest) == infinity, 0);
    const Var total = exp(a - shift) + exp(b - shift), none = greatest == -infinity;
    return Vars{masked_fill(log(masked_fill(total, none, 1)) + shift, none, -infinity)};
  });
}

/// The sum of |x| ** p to the power 1 / p, or the root of a variance: with gradient 0 at 0.
Var root(const Var& x, double power) {
  const Var zero = x == 0;
  return masked_fill(pow(masked_fill(x, zero, 1), power), zero, 0);
}

Vars expand_std(const ExpandCall& call) {
  return {root(var(call.inputs[0], axes_of(call), keeps(call), integer_of(call, "correction")), 0.5)};
}

Vars expand_vector_norm(const ExpandCall& call) {
  const Var& x = call.inputs[0];
  const double p = number_of(call, "p");
  const Axes& axis = axes_of(call);
  if (std::isinf(p)) return {p > 0 ? max(abs(x), axis, keeps(call)) : min(abs(x), axis, keeps(call))};
  if (p == 0) return {sum(cast(x != 0, x.dtype()), axis, keeps(call))};
  if (p == 1) return {sum(abs(x), axis, keeps(call))};
  if (p == 2) return {root(sum(square(x), axis, keeps(call)), 0.5)};
  const Var size = abs(x);
  // Slopes of powers at 0 are infinite for p < 1; negative orders need the infinity.
  return {p > 0 ? root(sum(root(size, p), axis, keeps(call)), 1 / p)
                : pow(sum(pow(size, p), axis, keeps(call)), 1 / p)};
}

Var is_number(const Var& x) {
  return x == x;
}

Vars expand_nansum(const ExpandCall& call) {
  const Var& x = call.inputs[0];
  return {sum(masked_fill(x, x != x, 0), axes_of(call), keeps(call))};
}
Vars expand_nanmean(const ExpandCall& call) {
  const Var& x = call.inputs[0];
  const Var count = sum(cast(is_number(x), x.dtype()), axes_of(call), keeps(call));
  return {sum(masked_fill(x, x != x, 0), axes_of(call), keeps(call)) / count};
}

/// -x, exactly: for integers in two's complement, of which the least has no negative.
Vars expand_argmin(const ExpandCall& call) {
  const Var& x = call.inputs[0];
  return {argmax(is_floating(x.dtype()) ? -x : -1 - x, integer_of(call, "axis"), keeps(call))};
}

constexpr AttributeRow correction{
    "correction", "0 for the deviation of the elements, 1 for the estimate from a sample.", 0, AttributeType::integer};
constexpr AttributeRow along{"axis", "The axis along which the elements are combined.", -1, AttributeType::integer};

const ComposedRow float_rows[] = {
    {"std",
     "x",
     "The standard deviation, the square root of var. The gradient is 0 where it is 0.",
     expand_std,
     {{correction}}},
    {"vector_norm",
     "x",
     "sum(|x| ** p) ** (1 / p). For p inf the largest, for -inf the smallest |x|; for 0 the number of elements that "
     "are "
     "not 0. The gradient at 0 is 0.",
     expand_vector_norm,
     {{{"p", "The order.", 2}}}},
    {"nansum", "x", "The sum of the elements that are not NaN, which get no gradient.", expand_nansum},
    {"nanmean", "x", "The mean of the elements that are not NaN; NaN if there are none.", expand_nanmean},
};
const ComposedRow number_rows[] = {
    {"prod", "=x",
     "The product over the axes, of halves that are multiplied until one element is left; int64 for integers and bool. "
     "1 if there are no elements.",
     expand_prod}};
const ComposedRow count_rows[] = {{"count_nonzero",
                                   "=x",
                                   "The int64 number of elements that are not 0, or are true.",
                                   [](const ExpandCall& call) {
                                     const Var& x = call.inputs[0];
                                     const Var counted = x.dtype() == Dtype::boolean ? x : x != 0;
                                     return Vars{sum(cast(counted, Dtype::int64), axes_of(call), keeps(call))};
                                   },
                                   {},
                                   false}};
const ComposedRow running_rows[] = {
    {"cumprod",
     "=x",
     "The products of the elements up to and including each one; int64 for integers and bool.",
     expand_cumprod,
     {{along}}},
    {"logcumsumexp",
     "x",
     "log(cumsum(exp(x))), without overflow. -inf, with gradient 0, as long as all elements are.",
     expand_logcumsumexp,
     {{along}}},
};
const ComposedRow index_rows[] = {
    {"cummax",
     "=x",
     "The largest element up to and including each one, and its int64 index, the last of equal ones. NaN counts as the "
     "largest.",
     expand_cumulative<true>,
     {{along}}},
    {"cummin",
     "=x",
     "The smallest element up to and including each one, and its int64 index, the last of equal ones. NaN counts as "
     "the "
     "smallest.",
     expand_cumulative<false>,
     {{along}}},
};
const ComposedRow argmin_rows[] = {
    {"argmin",
     "=x",
     "The int64 index of the smallest element along `axis`, the first of several. NaN counts as the smallest.",
     expand_argmin,
     {{{"axis", "The axis that is searched.", -1, AttributeType::integer},
       {"keepdims", "Whether the axis stays, with size 1.", 0, AttributeType::boolean}}},
     false}};

Dtype summed_dtype(const Call& call) {
  return is_floating(call.dtype(0)) ? call.dtype(0) : Dtype::int64;
}
std::vector<ValueType> reduced_to(const Call& call, Dtype dtype) {
  const std::vector<bool> reduced = reduced_axes(call.integers("axis"), call.shape(0).size());
  return {{dtype, reduced_shape(call.shape(0), reduced, call.flag("keepdims"))}};
}
std::vector<ValueType> float_type(const Call& call) {
  if (call.attributes.find("correction") != nullptr && call.integer("correction") < 0)
    throw Error("correction must not be negative, got " + std::to_string(call.integer("correction")));
  const Attribute* p = call.attributes.find("p");
  if (p != nullptr && std::isnan(call.number("p"))) throw Error("p must be a number, got NaN");
  if (p != nullptr && (std::isinf(call.number("p")) || call.number("p") < 0) && count_of(call.shape(0)) == 0)
    throw ShapeError("of order " + to_string(*p) + " needs at least one element, received shape " +
                     to_string(call.shape(0)));
  return reduced_to(call, call.dtype(0));
}
std::vector<ValueType> summed_type(const Call& call) {
  return reduced_to(call, summed_dtype(call));
}
std::vector<ValueType> count_type(const Call& call) {
  return reduced_to(call, Dtype::int64);
}
std::vector<ValueType> running_type(const Call& call) {
  axis_of(call);
  return {{summed_dtype(call), call.shape(0)}};
}
std::vector<ValueType> index_type(const Call& call) {
  axis_of(call);
  if (call.dtype(0) == Dtype::boolean) throw DtypeError("takes numbers, received bool: cast to a number first");
  return {call.inputs[0], {Dtype::int64, call.shape(0)}};
}
}  // namespace

Var prod(const Argument& x, const Axes& axis, bool keepdims) {
  return call_op("prod", {x}, {{"axis", axis}, {"keepdims", keepdims}});
}
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
Var cumprod(const Argument& x, std::int64_t axis) {
  return call_op("cumprod", {x}, {{"axis", axis}});
}
Var logcumsumexp(const Argument& x, std::int64_t axis) {
  return call_op("logcumsumexp", {x}, {{"axis", axis}});
}
std::pair<Var, Var> cummax(const Argument& x, std::int64_t axis) {
  const Vars both = apply(builtin_ops().at("cummax"), {x}, {{"axis", axis}});
  return {both[0], both[1]};
}
std::pair<Var, Var> cummin(const Argument& x, std::int64_t axis) {
  const Vars both = apply(builtin_ops().at("cummin"), {x}, {{"axis", axis}});
  return {both[0], both[1]};
}

void list_composed_reductions(OpTable& table) {
  static const std::vector<std::vector<Op>> families = [] {
    std::vector<Op> with_indices = composed(index_rows, index_type),
                    smallest =
                        composed(argmin_rows, [](const Call&call) { return builtin_ops().at("argmax").shape(call); });
    for (Op& op : with_indices) op.outputs = {"values", "indices"};
    return std::vector{composed(float_rows, float_type, reduction_attributes()),
                       composed(number_rows, summed_type, reduction_attributes()),
                       composed(count_rows, count_type, reduction_attributes()),
                       composed(running_rows, running_type),
                       with_indices,
                       smallest};
  }();
  for (const auto& family : families)
    for (const Op& op : family) table.add(op);
}

}  // namespace xtape
