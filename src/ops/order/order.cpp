// argmax and top_k; sorting, and elements at given ranks, which are compositions of top_k, whose kernel sorts.
#include "xtape/ops/order.hpp"

#include "base/messages/wording.hpp"
#include "kernels/indexing/index_kernels.hpp"
#include "ops/elementwise/arithmetic.hpp"
#include "ops/reductions/reductions.hpp"

namespace xtape {

namespace {
/// The elements to reduce, in ascending order.
struct Ordered {
  Var values;   ///< [kept…, n]
  Var last;     ///< The position of the last element that counts: int64, broadcasts to [kept…, 1].
  Var missing;  ///< Where the result is NaN: bool [kept…, 1]. Empty if it is NaN nowhere.
  std::int64_t n = 0;
  Shape result;  ///< The shape of the reduction.

  Shape with_last(std::int64_t size) const {
    Shape shape = values.shape();
    shape.back() = size;
    return shape;
  }
  /// Returns the elements at `position`, [kept…, m]. For rows with a NaN, returns the last element, which is a NaN.
  Var at(Var position) const {
    // int64, because the position's dtype may not represent `last`
    position = minimum(cast(position, Dtype::int64), last);
    if (!missing.empty()) position = masked_fill(position, missing, n - 1);
    return gather(values, -1, position);
  }
};

Ordered ordered(const ExpandCall& call, bool leaves_nan_out) {
  const Var& x = call.inputs[0];
  const std::vector<bool> reduced = reduced_axes(call.integers("axis"), x.rank());
  Ordered found;
  Shape rows = reduced_shape(x.shape(), reduced, false);
  Axes order;
  for (const bool last : {false, true})
    for (std::size_t axis = 0; axis < reduced.size(); ++axis)
      if (reduced[axis] == last) order.push_back(static_cast<std::int64_t>(axis));
  found.n = reduced_count(x.shape(), call.integers("axis"));
  rows.push_back(found.n);
  found.result = reduced_shape(x.shape(), reduced, call.flag("keepdims"));
  found.values = reshape(order.empty() ? x : transpose(x, order), rows);
  const bool floats = is_floating(x.dtype());
  if (floats && leaves_nan_out) {
    const Var count = sum(cast(found.values == found.values, Dtype::int64), {-1}, true);
    found.last = maximum(count, 1) - 1;
  } else {
    found.last = full(call.tape, {}, found.n - 1, Dtype::int64);
    if (floats) found.missing = any(found.values != found.values, {-1}, true);
  }
  found.values = sort(found.values).first;
  return found;
}

template <bool leaves_nan_out>
Vars expand_median(const ExpandCall& call) {
  const Ordered x = ordered(call, leaves_nan_out);
  return {reshape(x.at(broadcast_to(floor_divide(x.last, 2), x.with_last(1))), x.result)};
}

Vars quantile_of(const ExpandCall& call, const Ordered& x) {
  const Var& given = call.inputs[1];
  const std::int64_t count = given.rank() == 0 ? 1 : given.size(0);
  const Var q = reshape(watch(given, (given >= 0) & (given <= 1)), {count});
  const Var position = broadcast_to(q * cast(x.last, q.dtype()), x.with_last(count));
  const Var down = floor(position), up = -floor(-position);
  const auto& how = call.text("interpolation");
  Var y;
  if (how == "lower" || how == "higher") {
    y = x.at(how == "lower" ? down : up);
  } else if (how == "nearest") {
    // Ties go to the even position.
    const Var half = position - down, odd = mod(down, 2) == 1;
    y = x.at(where((half > 0.5) | ((half == 0.5) & odd), up, down));
  } else {
    // The step is 0 if both positions are equal, because infinity minus infinity would be NaN.
    const Var below = x.at(down), step = masked_fill(x.at(up) - below, up == down, 0);
    y = below + (how == "midpoint" ? step * 0.5 : step * (position - down));
  }
  if (given.rank() == 0) return {reshape(y, x.result)};
  Shape shape = x.result;
  shape.insert(0, count);
  return {reshape(axis_to_first(y, -1), shape)};
}

Vars expand_sort(const ExpandCall& call) {
  const Var& x = call.inputs[0];
  const std::int64_t axis = call.integer("axis");
  const auto [values, indices] = top_k(x, x.size(axis), axis, call.flag("descending"));
  return {values, indices};
}

Vars expand_kthvalue(const ExpandCall& call) {
  const std::int64_t k = call.integer("k"), axis = call.integer("axis");
  const auto [values, indices] = top_k(call.inputs[0], k, axis, false);
  const std::size_t place = normal_axis(axis, values.rank());
  Vars found{part_along(values, place, k - 1, k), part_along(indices, place, k - 1, k)};
  for (Var& each : found)
    if (!call.flag("keepdims")) each = squeeze(each, {axis});
  return found;
}

template <bool leaves_nan_out>
Vars expand_quantile(const ExpandCall& call) {
  return quantile_of(call, ordered(call, leaves_nan_out));
}

constexpr AttributeRow sorted_axis{"axis", "The axis that is sorted.", -1, AttributeType::integer},
    descending_flag{"descending", "If true, the largest element comes first.", 0, AttributeType::boolean};

const ComposedRow pair_rows[] = {
    {"sort",
     "=x",
     "The elements along `axis` in ascending or descending order, and their int64 indices. Equal elements keep their "
     "order; NaN counts as the largest.",
     expand_sort,
     {{sorted_axis, descending_flag}}},
    {"kthvalue",
     "=x",
     "The k-th smallest element along `axis` and its int64 index. Equal elements keep their order; NaN counts as the "
     "largest.",
     expand_kthvalue,
     {{sorted_axis, {"keepdims", "If true, the axis stays with size 1.", 0, AttributeType::boolean}}}}};
const ComposedRow argsort_rows[] = {{"argsort",
                                     "=x",
                                     "The int64 indices of the elements along `axis` in ascending or descending order. "
                                     "Equal elements keep their order; NaN counts as the largest.",
                                     +[](const ExpandCall& call) { return Vars{expand_sort(call)[1]}; },
                                     {{sorted_axis, descending_flag}},
                                     false}};
const ComposedRow median_rows[] = {
    {"median", "=x",
     "The median of the reduced elements: for an even number, the lower of the two middle elements. NaN if there is a "
     "NaN. The gradient goes to the median element.",
     expand_median<false>},
    {"nanmedian", "=x", "The median of the elements that are not NaN; NaN if there are none.", expand_median<true>}};
const ComposedRow quantile_rows[] = {
    {"quantile", "x q",
     "The element at position q * (n - 1) of the n sorted elements, with q in [0, 1]. `interpolation` determines the "
     "result between two positions. NaN if there is a NaN. A q [m] gives m results along a new first axis. A q outside "
     "[0, 1] is an error when played.",
     expand_quantile<false>},
    {"nanquantile", "x q", "The quantile of the elements that are not NaN; NaN if there are none.",
     expand_quantile<true>}};
std::vector<ValueType> sorted_type(const OpCall& call) {
  require_numbers(call);
  Shape shape = call.shape(0);
  const std::size_t axis = axis_of(call);
  if (call.attributes.find("k") != nullptr) {
    if (call.integer("k") < 1 || call.integer("k") > shape[axis])
      throw ShapeError("k must be between 1 and the size of axis " + std::to_string(axis) + ", got k " +
                       std::to_string(call.integer("k")) + " and shape " + to_string(shape));
    if (call.flag("keepdims"))
      shape[axis] = 1;
    else
      shape.erase(axis);
  }
  return {{call.dtype(0), shape}, {Dtype::int64, shape}};
}
std::vector<ValueType> indices_type(const OpCall& call) {
  return {sorted_type(call)[1]};
}
std::vector<ValueType> median_type(const OpCall& call) {
  return builtin_ops().at("max").shape(call);
}
std::vector<ValueType> quantile_type(const OpCall& call) {
  const auto& how = call.text("interpolation");
  const auto known = {"linear", "lower", "higher", "nearest", "midpoint"};
  if (!contains(known, how))
    throw Error("interpolation must be 'linear', 'lower', 'higher', 'nearest' or 'midpoint', got '" + how + "'");
  const Shape& q = call.shape(1);
  if (q.size() > 1) throw ShapeError("q must be one number or [m], got shape " + to_string(q));
  ValueType type = median_type(call)[0];
  if (q.size() == 1) type.shape.insert(0, q[0]);
  return {type};
}
}  // namespace

std::pair<Var, Var> sort(const Argument& x, std::int64_t axis, bool descending) {
  return call_pair("sort", {x}, {{"axis", axis}, {"descending", descending}});
}
Var argsort(const Argument& x, std::int64_t axis, bool descending) {
  return call_op("argsort", {x}, {{"axis", axis}, {"descending", descending}});
}
std::pair<Var, Var> kthvalue(const Argument& x, std::int64_t k, std::int64_t axis, bool keepdims) {
  return call_pair("kthvalue", {x}, {{"k", k}, {"axis", axis}, {"keepdims", keepdims}});
}
XTAPE_REDUCTION(median)
XTAPE_REDUCTION(nanmedian)
Var quantile(const Argument& x, const Operand& q, const Axes& axis, bool keepdims, const std::string& interpolation) {
  return call_op("quantile", {x, q}, {{"axis", axis}, {"keepdims", keepdims}, {"interpolation", interpolation}});
}
Var nanquantile(const Argument& x, const Operand& q, const Axes& axis, bool keepdims,
                const std::string& interpolation) {
  return call_op("nanquantile", {x, q}, {{"axis", axis}, {"keepdims", keepdims}, {"interpolation", interpolation}});
}

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
      .shape = +[](const OpCall& call) -> std::vector<ValueType> {
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
      .shape = +[](const OpCall& call) -> std::vector<ValueType> {
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
          +[](const GradientCall& call) {
            return Vars{
                scatter_add(zeros_like(call.inputs[0]), call.integer("axis"), call.outputs[1], call.cotangent())};
          },
      .batch = batch_along(),
      .lowering = {.kernel = +[](const KernelCall& call) { return make_top_k(form_of(call, call.attributes)); }}};
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

void list_order(OpTable& table) {
  static const std::vector<std::vector<Op>> families = [] {
    std::vector<AttributeSpec> how = reduction_attributes();
    how.push_back({"interpolation", AttributeType::text,
                   "The method between two elements: 'linear', 'lower', 'higher', 'nearest' or 'midpoint'.",
                   std::string("linear")});
    std::vector<Op> pairs = composed(pair_rows, sorted_type);
    for (Op& op : pairs) op.outputs = {"values", "indices"};
    pairs[1].attributes.insert(
        pairs[1].attributes.begin(),
        {"k", AttributeType::integer, "The rank of the element, from 1 to the size of the axis.", std::nullopt});
    return std::vector{pairs, composed(argsort_rows, indices_type),
                       composed(median_rows, median_type, reduction_attributes()),
                       composed(quantile_rows, quantile_type, how)};
  }();
  add_all(table, families);
  table.add(argmax_op());
  table.add(top_k_op());
}

}  // namespace xtape
