// The product, cumsum, and other running reductions, which combine halves or neighbours in log2(n) steps of whole
// arrays, so they are differentiated like other ops. Products with zeros therefore have exact gradients of any order,
// unlike formulas with quotients.
#include <cmath>
#include <limits>

#include "ops/reductions/reductions.hpp"
#include "xtape/ops/reductions.hpp"

namespace xtape {

Var log_add_exp(const Vars& xs) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  Var greatest = xs[0];
  for (std::size_t i = 1; i < xs.size(); ++i) greatest = maximum(greatest, xs[i]);
  greatest = stop_gradient(greatest);
  const Var shift = masked_fill(greatest, abs(greatest) == infinity, 0);
  Var total = exp(xs[0] - shift);
  for (std::size_t i = 1; i < xs.size(); ++i) total = total + exp(xs[i] - shift);
  const Var none = greatest == -infinity;
  return masked_fill(log(masked_fill(total, none, 1)) + shift, none, -infinity);
}

namespace {
/// Returns floats unchanged and everything else as int64.
Var summable(const Var& x) {
  return is_floating(x.dtype()) ? x : cast(x, Dtype::int64);
}

/// Returns the product of the elements along an axis. The axis stays, with size 1. Multiplies the two halves of the
/// axis until one element is left.
Var product_along(Var x, std::size_t axis) {
  Shape one = x.shape();
  one[axis] = 1;
  if (x.shape()[axis] == 0) return ones(x.tape(), one, x.dtype());
  for (std::int64_t size = x.shape()[axis]; size > 1; size = x.shape()[axis]) {
    const std::int64_t half = size / 2;
    const Var product = part_along(x, axis, 0, half) * part_along(x, axis, half, 2 * half);
    x = size % 2 == 0 ? product
                      : concat({product, part_along(x, axis, 2 * half, size)}, static_cast<std::int64_t>(axis));
  }
  return x;
}

Vars expand_prod(const ExpandCall& call) {
  Var x = summable(call.inputs[0]);
  const std::vector<bool> reduced = reduced_axes(axes_of(call.attributes), x.rank());
  const Shape shape = reduced_shape(x.shape(), reduced, call.flag("keepdims"));
  for (std::size_t axis = 0; axis < reduced.size(); ++axis)
    if (reduced[axis]) x = product_along(x, axis);
  return {reshape(x, shape)};
}

/// Returns the running reduction of several arrays along an axis. `combine` is an associative function of the arrays of
/// earlier elements and of later elements (Hillis and Steele, 1986).
template <class Combine>
Vars running(Vars xs, std::size_t axis, const Combine& combine) {
  const std::int64_t size = xs[0].shape()[axis];
  for (std::int64_t step = 1; step < size; step *= 2) {
    Vars earlier, later, done;
    for (const Var& x : xs) {
      earlier.push_back(part_along(x, axis, 0, size - step));
      later.push_back(part_along(x, axis, step, size));
      done.push_back(part_along(x, axis, 0, step));
    }
    const Vars combined = combine(earlier, later);
    for (std::size_t i = 0; i < xs.size(); ++i) xs[i] = concat({done[i], combined[i]}, static_cast<std::int64_t>(axis));
    if (step > size / 2) break;  // the next step would overflow or have no effect
  }
  return xs;
}

std::size_t running_axis(const ExpandCall& call) {
  return normal_axis(call.integer("axis"), call.inputs[0].rank());
}

Vars expand_cumprod(const ExpandCall& call) {
  return running({summable(call.inputs[0])}, running_axis(call),
                 [](const Vars& earlier, const Vars& later) { return Vars{earlier[0] * later[0]}; });
}

/// Computes the indices first. The elements are then gathered, so the gradient goes to the elements at the indices.
template <bool largest>
Vars expand_cumulative(const ExpandCall& call) {
  const Var& x = call.inputs[0];
  const std::size_t axis = running_axis(call);
  const Var places = iota(call.tape, x.shape(), static_cast<std::int64_t>(axis));
  const Var indices = running({stop_gradient(x), places}, axis, [](const Vars& earlier, const Vars& later) {
    const Var &a = earlier[0], &b = later[0];
    Var taken = largest ? b >= a : b <= a;
    if (is_floating(a.dtype())) taken = taken | (b != b);
    return Vars{where(taken, b, a), where(taken, later[1], earlier[1])};
  })[1];
  return {gather(x, static_cast<std::int64_t>(axis), indices), indices};
}

Vars expand_logcumsumexp(const ExpandCall& call) {
  return running({call.inputs[0]}, running_axis(call), [](const Vars& earlier, const Vars& later) {
    return Vars{log_add_exp({earlier[0], later[0]})};
  });
}

constexpr AttributeRow along{"axis", "The axis along which the elements are combined.", -1, AttributeType::integer};

const ComposedRow prod_rows[] = {{"prod", "=x",
                                  "The product over the axes; int64 for integers and bool, 1 over no elements. The two "
                                  "halves of an axis are multiplied until one element is left.",
                                  expand_prod}};
const ComposedRow running_rows[] = {
    {"cumprod",
     "=x",
     "The running products: each element is the product of the elements up to and including its own place; int64 for "
     "integers and bool.",
     expand_cumprod,
     {{along}}},
    {"logcumsumexp",
     "x",
     "log(cumsum(exp(x))), without overflow. While all elements so far are -inf, the result is -inf with gradient 0.",
     expand_logcumsumexp,
     {{along}}},
};
const ComposedRow index_rows[] = {
    {"cummax",
     "=x",
     "The running maximum, and the int64 index of the maximum. Ties give the last index. NaN counts as the largest.",
     expand_cumulative<true>,
     {{along}}},
    {"cummin",
     "=x",
     "The running minimum, and the int64 index of the minimum. Ties give the last index. NaN counts as the smallest.",
     expand_cumulative<false>,
     {{along}}},
};
Dtype summed_dtype(const OpCall& call) {
  return is_floating(call.dtype(0)) ? call.dtype(0) : Dtype::int64;
}
std::vector<ValueType> prod_type(const OpCall& call) {
  return reduced_type(call, summed_dtype(call));
}
std::vector<ValueType> running_type(const OpCall& call) {
  axis_of(call);
  return {{summed_dtype(call), call.shape(0)}};
}
std::vector<ValueType> index_type(const OpCall& call) {
  axis_of(call);
  if (call.dtype(0) == Dtype::boolean) throw DtypeError("takes numbers, received bool: cast to a number first");
  return {call.inputs[0], {Dtype::int64, call.shape(0)}};
}
}  // namespace

XTAPE_REDUCTION(prod)
Var cumprod(const Argument& x, std::int64_t axis) {
  return call_op("cumprod", {x}, {{"axis", axis}});
}
Var logcumsumexp(const Argument& x, std::int64_t axis) {
  return call_op("logcumsumexp", {x}, {{"axis", axis}});
}
std::pair<Var, Var> cummax(const Argument& x, std::int64_t axis) {
  return call_pair("cummax", {x}, {{"axis", axis}});
}
std::pair<Var, Var> cummin(const Argument& x, std::int64_t axis) {
  return call_pair("cummin", {x}, {{"axis", axis}});
}

namespace {
const Op& cumsum_op() {
  static const Op entry{
      .name = "cumsum",
      .doc = R"(The running sums along `axis`: each element is the sum of the elements up to and including its own
           place. With `reverse`, it is the sum of the elements from its own place to the end. float32 is summed in
           double, float64 with compensation, integers and bool as int64. The gradient is the cumsum of the cotangent in
           the other direction.)",
      .inputs = {{"x"}},
      .attributes = {{"axis", AttributeType::integer, "The axis along which the elements are summed.",
                      std::int64_t{-1}},
                     {"reverse", AttributeType::boolean, "If true, the sums run from the end.", false}},
      .shape = +[](const OpCall& call) -> std::vector<ValueType> {
        normal_axis(call.integer("axis"), call.shape(0).size());
        return {{is_floating(call.dtype(0)) ? call.dtype(0) : Dtype::int64, call.shape(0)}};
      },
      .gradient =
          +[](const GradientCall& call) {
            return Vars{cumsum(call.cotangent(), call.integer("axis"), !call.flag("reverse"))};
          },
      .batch = batch_along(),
      .lowering = {.kernel = kernel_by_name, .overwrites = {0}}};
  return entry;
}
}  // namespace

Var cumsum(const Argument& x, std::int64_t axis, bool reverse) {
  return apply(cumsum_op(), {x}, {{"axis", axis}, {"reverse", reverse}})[0];
}

void list_running_reductions(OpTable& table) {
  static const std::vector<std::vector<Op>> families = [] {
    std::vector<Op> with_indices = composed(index_rows, index_type);
    for (Op& op : with_indices) op.outputs = {"values", "indices"};
    return std::vector{composed(prod_rows, prod_type, reduction_attributes()), composed(running_rows, running_type),
                       with_indices};
  }();
  add_all(table, families);
  table.add(cumsum_op());
}

}  // namespace xtape
