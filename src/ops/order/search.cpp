// Search in sorted arrays, and counting. searchsorted has a kernel. The other ops are compositions of searchsorted and
// index_add.
#include "kernels/indexing/index_kernels.hpp"
#include "ops/elementwise/arithmetic.hpp"
#include "xtape/ops/order.hpp"

namespace xtape {

namespace {
Var counts_of(const ExpandCall& call, const Var& bins, std::int64_t length, std::size_t weights) {
  const std::int64_t count = count_of(bins.shape());
  const bool weighted = call.inputs.size() > weights;
  const Var part = weighted ? reshape(call.inputs[weights], {count}) : ones(call.tape, {count}, Dtype::int64);
  return index_add(zeros(call.tape, {length}, part.dtype()), 0, reshape(bins, {count}), part);
}
Vars expand_bincount(const ExpandCall& call) {
  return {counts_of(call, call.inputs[0], call.integer("length"), 1)};
}
Vars expand_histogram(const ExpandCall& call) {
  const Var &x = call.inputs[0], &edges = call.inputs[1];
  const std::int64_t n = edges.size(0);
  // Bin 0 contains the elements below the first edge. Bin n contains the elements above the last edge.
  const Var bins = where(x == slice(edges, {n - 1}, {n}), n - 1, searchsorted(edges, x, true));
  return {slice(counts_of(call, bins, n + 1, 2), {1}, {n})};
}

constexpr AttributeRow right_flag{
    "right", "If true, elements equal to the value count as smaller (the insertion index is after them).", 0,
    AttributeType::boolean};

const ComposedRow bucket_rows[] = {
    {"bucketize",
     "=x =boundaries",
     "Returns the int64 bucket index of x for ascending boundaries [n]. It is "
     "searchsorted with swapped arguments.",
     +[](const ExpandCall& call) { return Vars{searchsorted(call.inputs[1], call.inputs[0], call.flag("right"))}; },
     {{right_flag}},
     false}};
const ComposedRow bincount_rows[] = {
    {"bincount", "#x weights?",
     "Returns int64 [length]: the count of each value 0 … length - 1 in x. With weights, returns the sum of the "
     "weights per value. An x outside [0, length) is an error when played.",
     expand_bincount}};
const ComposedRow histogram_rows[] = {
    {"histogram", "x edges weights?",
     "Returns int64 [n - 1]: the counts of the elements of x in the bins between the ascending edges [n]. With "
     "weights, returns the sum of the weights per bin. A bin contains its lower edge. The last bin also contains its "
     "upper edge. Elements outside of the bins do not count.",
     expand_histogram}};

Dtype counting_dtype(const OpCall& call, std::size_t weights) {
  if (call.inputs.size() <= weights) return Dtype::int64;
  require_shape(call, weights, call.shape(0), "that of x");
  return call.dtype(weights);
}
std::vector<ValueType> places_type(const OpCall& call) {
  require_numbers(call);
  const Shape &rows = call.shape(0), &values = call.shape(1);
  if (rows.empty() || (rows.size() > 1 && without_last(rows) != (values.empty() ? rows : without_last(values))))
    throw ShapeError("the sorted rows must be [n], or [..., n] for values [..., m], got " + to_string(rows) + " for " +
                     to_string(values));
  return {{Dtype::int64, values}};
}
std::vector<ValueType> buckets_type(const OpCall& call) {
  require_numbers(call);
  if (call.shape(1).size() != 1) throw ShapeError("boundaries must be [n], got " + to_string(call.shape(1)));
  return {{Dtype::int64, call.shape(0)}};
}
std::vector<ValueType> bincount_type(const OpCall& call) {
  if (call.integer("length") < 0)
    throw ShapeError("length must not be negative, got " + std::to_string(call.integer("length")));
  return {{counting_dtype(call, 1), {call.integer("length")}}};
}
std::vector<ValueType> histogram_type(const OpCall& call) {
  const Shape& edges = call.shape(1);
  if (edges.size() != 1 || edges[0] < 1) throw ShapeError("edges must be [n] with n >= 1, got " + to_string(edges));
  return {{counting_dtype(call, 2), {edges[0] - 1}}};
}

Vars batch_searchsorted(const BatchCall& call) {
  if (call.rank(0) > 1) return batch_leading(call);
  if (!call.mapped[0]) return record_call(call.tape, call.op, call.inputs, call.attributes);
  const Var values = call.whole(1);
  const Var flat = reshape(values, {call.size, count_of(Shape(values.shape().begin() + 1, values.shape().end()))});
  return {reshape(record_call(call.tape, call.op, {call.inputs[0], flat}, call.attributes)[0], values.shape())};
}

const Op& searchsorted_op() {
  static const Op entry{
      .name = "searchsorted",
      .doc = R"(Returns int64: the insertion index of each value in an ascending row [n]. It is the number of elements <
           value, or <= value with `right`. With rows [..., n], the values are [..., m] with the same leading axes. NaN
           counts as the largest.)",
      .inputs = {{"sorted"}, {"values"}},
      .attributes = {{right_flag.name, right_flag.type, right_flag.doc, false}},
      .shape = places_type,
      .batch = batch_searchsorted,
      .differentiable = false,
      .lowering = {.kernel =
                       +[](const KernelCall& call) { return make_searchsorted(form_of(call, call.attributes)); }}};
  return entry;
}
}  // namespace

Var searchsorted(const Argument& sorted, const Operand& values, bool right) {
  return apply(searchsorted_op(), {sorted, values}, {{"right", right}})[0];
}
Var bucketize(const Argument& x, const Var& boundaries, bool right) {
  return call_op("bucketize", {x, boundaries}, {{"right", right}});
}
Var bincount(const Argument& x, std::int64_t length) {
  return call_op("bincount", {x}, {{"length", length}});
}
Var bincount(const Argument& x, std::int64_t length, const Var& weights) {
  return call_op("bincount", {x, weights}, {{"length", length}});
}
Var histogram(const Argument& x, const Var& edges) {
  return call_op("histogram", {x, edges});
}
Var histogram(const Argument& x, const Var& edges, const Var& weights) {
  return call_op("histogram", {x, edges, weights});
}

void list_search(OpTable& table) {
  static const std::vector<std::vector<Op>> families{
      composed(bucket_rows, buckets_type),
      composed(bincount_rows, bincount_type,
               {{"length", AttributeType::integer, "The number of counts.", std::nullopt}}),
      composed(histogram_rows, histogram_type)};
  add_all(table, families);
  table.add(searchsorted_op());
}

}  // namespace xtape
