// Reductions of the slices with equal segment numbers, and selections of a fixed number of elements.
#include <limits>

#include "ops/indexing/scatter.hpp"
#include "ops/recording/op_helpers.hpp"
#include "xtape/ops/indexing.hpp"

namespace xtape {

namespace {
std::int64_t segments_of(const ExpandCall& call) {
  return call.integer("num_segments");
}
Var ids_of(const ExpandCall& call) {
  return checked_indices(call.inputs[1], segments_of(call));
}
Shape result_of(const ExpandCall& call) {
  Shape shape = call.inputs[0].shape();
  shape[0] = segments_of(call);
  return shape;
}

Vars expand_segment_sum(const ExpandCall& call) {
  const Var& data = call.inputs[0];
  return {combined_at(zeros(call.tape, result_of(call), data.dtype()), ids_of(call), data, "sum")};
}
Vars expand_segment_mean(const ExpandCall& call) {
  const Var& data = call.inputs[0];
  return {combined_at(zeros(call.tape, result_of(call), data.dtype()), ids_of(call), data, "mean", false)};
}
Vars expand_segment_prod(const ExpandCall& call) {
  const Var& data = call.inputs[0];
  return {combined_at(ones(call.tape, result_of(call), data.dtype()), ids_of(call), data, "prod")};
}
template <bool largest>
Vars expand_segment_extreme(const ExpandCall& call) {
  const Var& data = call.inputs[0];
  return {combined_at(lowest(call.tape, result_of(call), data.dtype(), !largest), ids_of(call), data,
                      largest ? "amax" : "amin")};
}

/// As in softmax, the largest element of each segment is subtracted first.
Vars expand_segment_softmax(const ExpandCall& call) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const Var &data = call.inputs[0], ids = ids_of(call);
  const Var none = lowest(call.tape, result_of(call), data.dtype(), false);
  const Var greatest = stop_gradient(combined_at(none, ids, stop_gradient(data), "amax"));
  const Var raised = exp(data - take(masked_fill(greatest, greatest == -infinity, 0), ids));
  const Var total = combined_at(zeros(call.tape, result_of(call), data.dtype()), ids, raised, "sum");
  return {raised / take(masked_fill(total, total == 0, 1), ids)};
}

/// Returns [size]: the flat indices of the first `size` true elements of `mask`. If there are fewer, the last elements
/// are -1.
Var first_true(const Var& mask, std::int64_t size) {
  const Tape tape = mask.tape();
  const std::int64_t count = count_of(mask.shape());
  const Var flat = reshape(mask, {count}), number = cumsum(cast(flat, Dtype::int64));
  // Elements that are not chosen go to one additional place.
  const Var place = where(flat & (number <= size), number - 1, size);
  const Var places = combined_at(full(tape, {size + 1}, -1, Dtype::int64), place, iota(tape, {count}), "set");
  return slice(places, {0}, {size});
}

Vars expand_nonzero(const ExpandCall& call) {
  const Var& x = call.inputs[0];
  const std::int64_t fill = call.integer("fill_value");
  Var place = first_true(x.dtype() == Dtype::boolean ? x : x != 0, call.integer("size"));
  const Var missing = place < 0;
  Vars along(x.rank());
  for (std::size_t i = x.rank(); i-- > 0;) {
    along[i] = masked_fill(mod(place, x.shape()[i]), missing, fill);
    place = floor_divide(place, x.shape()[i]);
  }
  if (along.empty()) return {zeros(call.tape, call.node.outputs[0].shape, Dtype::int64)};
  return {stack(along, -1)};
}

Vars expand_masked_select(const ExpandCall& call) {
  const Var& x = call.inputs[0];
  const std::int64_t count = count_of(x.shape());
  const Literal fill = call.attributes.number("fill_value");
  if (count == 0) return {full(call.tape, call.node.outputs[0].shape, fill, x.dtype())};
  const Var place = first_true(broadcast_to(call.inputs[1], x.shape()), call.integer("size"));
  return {where(place < 0, full(call.tape, {}, fill, x.dtype()), take(reshape(x, {count}), maximum(place, 0)))};
}

const char* const inputs_of_numbers = "=data #segment_ids";
const ComposedRow segment_rows[] = {
    {"segment_sum", inputs_of_numbers,
     "The sums of the slices of data [n, ...] with the same number in segment_ids [n]. An empty segment gives 0.",
     expand_segment_sum},
    {"segment_prod", inputs_of_numbers,
     "The products of the slices of data [n, ...] with the same number in segment_ids [n]. An empty segment gives 1.",
     expand_segment_prod},
    {"segment_max", inputs_of_numbers,
     "The largest elements of the slices of data [n, ...] with the same number in segment_ids [n]. An empty segment "
     "gives -inf or the least integer. Equal elements share the gradient.",
     expand_segment_extreme<true>},
    {"segment_min", inputs_of_numbers,
     "The smallest elements of the slices of data [n, ...] with the same number in segment_ids [n]. An empty segment "
     "gives inf or the greatest integer. Equal elements share the gradient.",
     expand_segment_extreme<false>},
};
const ComposedRow segment_mean_rows[] = {
    {"segment_mean", "data #segment_ids",
     "The means of the slices of data [n, ...] with the same number in segment_ids [n]. An empty segment gives 0.",
     expand_segment_mean}};
const ComposedRow segment_softmax_rows[] = {
    {"segment_softmax", "data #segment_ids",
     "exp(data) divided by its sum over the slices of data [n, ...] with the same number in segment_ids [n], without "
     "overflow. A segment of -inf gives zeros.",
     expand_segment_softmax}};
const ComposedRow nonzero_rows[] = {
    {"nonzero_static",
     "=x",
     "Returns int64 [size, rank]: the indices of the first `size` elements that are not 0, or, for bool, that are "
     "true, in row-major order. If there are fewer elements, rows of `fill_value` fill the rest.",
     expand_nonzero,
     {{{"fill_value", "The index where there are no further elements.", -1, AttributeType::integer}}},
     false}};
const ComposedRow masked_rows[] = {
    {"masked_select", "=x !mask",
     "The first `size` elements of x, in row-major order, at which the mask is true. The mask broadcasts to x. If "
     "there are fewer elements, `fill_value` fills the rest.",
     expand_masked_select}};

/// Returns the shape of data with one slice for each segment.
std::vector<ValueType> segment_type(const OpCall& call) {
  Shape shape = call.shape(0);
  if (shape.empty() || call.shape(1) != Shape{shape[0]})
    throw ShapeError("segment_ids of shape " + to_string(call.shape(1)) +
                     " must have one number for each index of axis 0 of data, of shape " + to_string(shape));
  if (call.dtype(0) == Dtype::boolean) throw DtypeError("cannot reduce bool arrays: cast them to numbers");
  if (call.integer("num_segments") < 0) throw ShapeError("num_segments must be at least 0");
  shape[0] = call.integer("num_segments");
  return {{call.dtype(0), shape}};
}
std::vector<ValueType> segment_softmax_type(const OpCall& call) {
  for (const ValueType& type : segment_type(call)) checked_bytes(type.dtype, type.shape);
  return {call.inputs[0]};
}
std::int64_t fixed_size(const OpCall& call) {
  const std::int64_t size = call.integer("size");
  constexpr std::int64_t most = (std::int64_t{1} << 60) - 2;  // int64 indices must also fit for one additional place
  if (size < 0 || size > most) throw ShapeError("size must be from 0 to 2^60 - 2, got " + std::to_string(size));
  return size;
}
std::vector<ValueType> nonzero_type(const OpCall& call) {
  return {{Dtype::int64, {fixed_size(call), static_cast<std::int64_t>(call.shape(0).size())}}};
}
std::vector<ValueType> masked_type(const OpCall& call) {
  if (broadcast_shapes({call.shape(0), call.shape(1)}) != call.shape(0))
    throw ShapeError("a mask of shape " + to_string(call.shape(1)) + " does not broadcast to x, " +
                     to_string(call.shape(0)));
  call.element("fill_value", call.dtype(0));
  return {{call.dtype(0), {fixed_size(call)}}};
}

Var segments(const char* op, const Argument& data, const Var& ids, std::int64_t num_segments) {
  return call_op(op, {data, ids}, {{"num_segments", num_segments}});
}
}  // namespace

#define XTAPE_SEGMENTS(name)                                                          \
  Var name(const Argument& data, const Var& segment_ids, std::int64_t num_segments) { \
    return segments(#name, data, segment_ids, num_segments);                          \
  }
XTAPE_SEGMENTS(segment_sum)
XTAPE_SEGMENTS(segment_mean)
XTAPE_SEGMENTS(segment_prod)
XTAPE_SEGMENTS(segment_max)
XTAPE_SEGMENTS(segment_min)
XTAPE_SEGMENTS(segment_softmax)
#undef XTAPE_SEGMENTS
Var nonzero_static(const Argument& x, std::int64_t size, std::int64_t fill_value) {
  return call_op("nonzero_static", {x}, {{"size", size}, {"fill_value", fill_value}});
}
Var masked_select(const Argument& x, const Var& mask, std::int64_t size, const Literal& fill_value) {
  return call_op("masked_select", {x, mask}, {{"size", size}, {"fill_value", attribute_of(fill_value)}});
}

void list_segments(OpTable& table) {
  const AttributeSpec count{"num_segments", AttributeType::integer, "The number of segments.", std::nullopt},
      size{"size", AttributeType::integer, "The size of the result along axis 0.", std::nullopt},
      fill{"fill_value", AttributeType::element, "The value where there are no further elements.", 0.0};
  static const std::vector<std::vector<Op>> families{
      composed(segment_rows, segment_type, {count}), composed(segment_mean_rows, segment_type, {count}),
      composed(segment_softmax_rows, segment_softmax_type, {count}), composed(nonzero_rows, nonzero_type, {size}),
      composed(masked_rows, masked_type, {size, fill})};
  add_all(table, families);
}

}  // namespace xtape
