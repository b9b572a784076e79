// index_reduce, which combines slices at indices, and checked_indices, which gives indices for it.
#include <initializer_list>
#include <limits>

#include "batching.hpp"
#include "by_name.hpp"
#include "composed.hpp"
#include "floating.hpp"
#include "index_reduce.hpp"
#include "scatter.hpp"
#include "xtape/ops.hpp"

namespace xtape {

namespace {
const Op& checked_indices_op() {
  static const Op entry{
      .name = "checked_indices",
      .doc = "The indices as int64; those below 0 count from the end. An index outside [-size, size), or without `wrap` "
             "outside [0, size), is an error when played.",
      .inputs = {{"indices", Accept::integer}},
      .attributes = {{"size", AttributeType::integer, "The size of the axis.", std::nullopt},
                     {"wrap", AttributeType::boolean, "Whether indices below 0 count from the end.", true}},
      .shape =
          [](const Call& call) {
            if (call.integer("size") < 0) throw ShapeError("size must be at least 0");
            return std::vector<ValueType>{{Dtype::int64, call.shape(0)}};
          },
      .batch = batch_leading,
      .differentiable = false,
      .lowering = {.kernel = [](const KernelCall& call) {
        return make_checked_indices(form_of(call, call.attributes));
      }}};
  return entry;
}

Var index_reduce(const Var& x, const Var& indices, const Var& part, const char* reduce) {
  return call_op("index_reduce", {x, indices, part}, {{"reduce", std::string(reduce)}});
}

/// Of a `set`: to `part` where no later index is equal, and to x where there is none.
Vars gradient_of_set(const GradientCall& call) {
  const Var &indices = call.inputs[1], &part = call.inputs[2], dy = call.cotangent();
  const Var nothing = zeros(part.tape(), part.shape(), part.dtype());
  const Var order = reshape(iota(part.tape(), {count_of(indices.shape())}), indices.shape());
  const Var last = index_reduce(zeros(part.tape(), {dy.shape()[0]}, Dtype::int64), indices, order, "amax");
  const Var covered = with_rank(take(last, indices) != order, part.rank());
  return {index_reduce(dy, indices, nothing, "set"), Var(), masked_fill(take(dy, indices), covered, 0)};
}

Vars gradient_of_extreme(const GradientCall& call) {
  const Var &x = call.inputs[0], &indices = call.inputs[1], &part = call.inputs[2], &y = call.outputs[0];
  const Var own = cast(x == y, x.dtype()), others = cast(part == take(y, indices), x.dtype());
  const Var share = call.cotangent() / index_add(own, indices, others);
  return {own * share, Var(), others * take(share, indices)};
}

/// What the others multiply an element by that is one of `zeros` zeros, or none: their product, where `product` is that
/// of all elements but zeros, and `vanishing` the sum of all zeros. That is 0, but not its gradient.
Var product_of_others(const Var& x, const Var& product, const Var& zeros, const Var& vanishing) {
  const Var is_zero = x == 0;
  const Var others = zeros - cast(is_zero, x.dtype());
  const Var one_left = masked_fill(vanishing - masked_fill(x, ~is_zero, 0), others != 1, 0);
  return product / masked_fill(x, is_zero, 1) * where(others == 0, 1, one_left);
}
Vars gradient_of_product(const GradientCall& call) {
  const Var &x = call.inputs[0], &indices = call.inputs[1], &part = call.inputs[2], dy = call.cotangent();
  const Var x_zero = x == 0, part_zero = part == 0;
  const Var product = index_reduce(masked_fill(x, x_zero, 1), indices, masked_fill(part, part_zero, 1), "prod");
  const Var zeros = index_add(cast(x_zero, x.dtype()), indices, cast(part_zero, x.dtype()));
  const Var vanishing = index_add(masked_fill(x, ~x_zero, 0), indices, masked_fill(part, ~part_zero, 0));
  const auto picked = [&](const Var& of) { return take(of, indices); };
  return {dy * product_of_others(x, product, zeros, vanishing), Var(),
          picked(dy) * product_of_others(part, picked(product), picked(zeros), picked(vanishing))};
}

Vars batch_index_reduce(const BatchCall& call) {
  const Var x = call.whole(0), indices = call.whole(1), part = call.whole(2);
  const std::int64_t size = x.shape()[1];
  Shape flat = x.shape();
  flat.erase(0);
  flat[0] = flat[0] * call.size;  // fits, since the tape has the array
  const Var first = with_rank(iota(call.tape, {call.size}) * size, indices.rank());
  const Var rows = checked_indices(indices, size, false) + first;
  const Var y = call_op("index_reduce", {reshape(x, flat), rows, part}, call.attributes());
  return {reshape(y, x.shape())};
}

const Op& index_reduce_op() {
  static const Op entry{
      .name = "index_reduce",
      .doc = R"(x with the slices of `part` combined with those at the given indices along axis 0, in order: y[indices[i…]]
           is part[i…] for "set", or the product, largest or smallest of both. Equal elements share the gradient of
           "amax" and "amin". Indices outside [0, size) are an error when played.)",
      .inputs = {{"x", Accept::value}, {"indices", Accept::integer}, {"part", Accept::value}},
      .attributes = {{"reduce", AttributeType::text, "\"set\", \"prod\", \"amax\" or \"amin\".", std::nullopt}},
      .shape =
          [](const Call& call) {
            require_reduction(call, {"set", "prod", "amax", "amin"});
            const Shape& x = call.shape(0);
            if (x.empty()) throw ShapeError("x must have at least one axis");
            Shape wanted = call.shape(1);
            for (std::size_t i = 1; i < x.size(); ++i) wanted.push_back(x[i]);
            require_shape(call, 2, wanted, "which x and the indices require");
            return std::vector<ValueType>{call.inputs[0]};
          },
      .gradient =
          [](const GradientCall& call) {
            const auto& reduce = call.attributes().get<std::string>("reduce");
            return reduce == "set"    ? gradient_of_set(call)
                   : reduce == "prod" ? gradient_of_product(call)
                                      : gradient_of_extreme(call);
          },
      .batch = batch_index_reduce,
      .lowering = {.kernel = [](const KernelCall& call) { return make_index_reduce(form_of(call, call.attributes)); },
                   .overwrites = {0}}};
  return entry;
}

}  // namespace

void require_reduction(const Call& call, std::initializer_list<const char*> words) {
  const std::string& reduce = call.text("reduce");
  std::string known;
  bool found = false;
  for (const char* word : words) {
    found = found || reduce == word;
    known += (known.empty() ? "\"" : ", \"") + std::string(word) + "\"";
  }
  if (!found) throw Error("reduce \"" + reduce + "\" must be one of " + known);
  if (call.dtype(0) == Dtype::boolean && reduce != "set")
    throw DtypeError("cannot reduce bool arrays: cast them to numbers");
}

Var checked_indices(const Var& indices, std::int64_t size, bool wrap) {
  return apply(checked_indices_op(), {indices}, {{"size", size}, {"wrap", wrap}})[0];
}

Var with_rank(const Var& x, std::size_t rank) {
  Shape shape = x.shape();
  while (shape.size() < rank) shape.push_back(1);
  return reshape(x, shape);
}

Var lowest(Tape tape, const Shape& shape, Dtype dtype, bool highest) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  using Narrow = std::numeric_limits<std::int32_t>;
  using Wide = std::numeric_limits<std::int64_t>;
  if (is_floating(dtype)) return full(tape, shape, highest ? infinity : -infinity, dtype);
  if (dtype == Dtype::int64) return full(tape, shape, highest ? Wide::max() : Wide::min(), dtype);
  return full(tape, shape, highest ? Narrow::max() : Narrow::min(), dtype);
}

Var combined_at(const Var& x, const Var& indices, const Var& part, const std::string& reduce, bool include_self) {
  const Tape tape = x.tape();
  const bool mean = reduce == "mean", added = mean || reduce == "sum";
  Var base = x;
  if (!include_self && reduce != "set") {
    const Var identity = added            ? zeros(tape, part.shape(), x.dtype())
                         : reduce == "prod" ? ones(tape, part.shape(), x.dtype())
                                            : lowest(tape, part.shape(), x.dtype(), reduce == "amin");
    base = index_reduce(x, indices, identity, "set");
  }
  if (!added) return index_reduce(base, indices, part, reduce.c_str());
  const Var total = index_add(base, indices, part);
  if (!mean) return total;
  const Var none = full(tape, {x.shape()[0]}, include_self ? 1 : 0, x.dtype());
  Var counts = index_add(none, indices, ones(tape, indices.shape(), x.dtype()));
  if (!include_self) counts = maximum(counts, 1);
  counts = with_rank(counts, x.rank());
  return is_floating(x.dtype()) ? total / counts : floor_divide(total, counts);
}

void list_index_reduce(OpTable& table) {
  table.add(checked_indices_op());
  table.add(index_reduce_op());
}

}  // namespace xtape
