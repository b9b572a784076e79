// index_reduce and scatter_elements, which combine slices or elements at indices, and checked_indices, which produces
// the indices for them.
#include <initializer_list>
#include <limits>

#include "kernels/indexing/index_kernels.hpp"
#include "ops/indexing/scatter.hpp"
#include "ops/recording/op_helpers.hpp"

namespace xtape {

namespace {
const Op& checked_indices_op() {
  static const Op entry{
      .name = "checked_indices",
      .doc =
          "The indices as int64. With `wrap`, indices below 0 count from the end, and an index outside [-size, size) "
          "is an error when played. Without `wrap`, an index outside [0, size) is an error when played.",
      .inputs = {{"indices", Accept::integer}},
      .attributes = {{"size", AttributeType::integer, "The size of the axis.", std::nullopt},
                     {"wrap", AttributeType::boolean, "If true, indices below 0 count from the end.", true}},
      .shape =
          +[](const OpCall& call) {
            if (call.integer("size") < 0) throw ShapeError("size must be at least 0");
            return std::vector<ValueType>{{Dtype::int64, call.shape(0)}};
          },
      .batch = batch_leading,
      .differentiable = false,
      .lowering = {.kernel =
                       +[](const KernelCall& call) { return make_checked_indices(form_of(call, call.attributes)); }}};
  return entry;
}

/// The places at which a call of index_reduce or scatter_elements combines, with the ops that read and add there.
struct Places {
  Var indices;
  std::int64_t axis = 0;
  bool whole = true;  ///< True for slices, false for elements.

  Places(const Attributes& attributes, const Var& at) : indices(at), whole(attributes.find("axis") == nullptr) {
    if (!whole) axis = attributes.get<std::int64_t>("axis");
  }
  Var read(const Var& x) const { return whole ? take(x, indices) : gather(x, axis, indices); }
  Var added(const Var& x, const Var& part) const {
    return whole ? index_add(x, 0, indices, part) : scatter_add(x, axis, indices, part);
  }
  Var reduced(const Var& x, const Var& part, const std::string& reduce) const {
    return whole ? index_reduce(x, indices, part, reduce) : scatter_elements(x, indices, part, reduce, axis);
  }
};

/// Returns the gradients of a `set`. The gradient goes to an element of `part` if no later index is equal, and to an
/// element of x if there is no index for it.
Vars gradient_of_set(const GradientCall& call, const Places& at) {
  const Var &indices = at.indices, &part = call.inputs[2], dy = call.cotangent();
  const Tape tape = part.tape();
  const Var order = at.whole ? reshape(iota(tape, {count_of(indices.shape())}), indices.shape())
                             : iota(tape, indices.shape(), at.axis);
  const Shape marked = at.whole ? Shape{dy.shape()[0]} : dy.shape();
  const Var last = at.reduced(zeros(tape, marked, Dtype::int64), order, "amax");
  const Var covered = with_rank(at.read(last) != order, part.rank());
  return {at.reduced(dy, zeros(tape, part.shape(), part.dtype()), "set"), Var(), masked_fill(at.read(dy), covered, 0)};
}

Vars gradient_of_extreme(const GradientCall& call, const Places& at) {
  const Var &x = call.inputs[0], &part = call.inputs[2], &y = call.outputs[0];
  const Var own = cast(x == y, x.dtype()), others = cast(part == at.read(y), x.dtype());
  const Var share = call.cotangent() / at.added(own, others);
  return {own * share, Var(), others * at.read(share)};
}

/// For each element, returns the product of all other elements that are combined with it. `zeros` is the number of
/// combined elements that are 0, `product` is the product of all others, and `vanishing` is the sum of the zeros. A
/// zero needs care, because the product is 0, but its gradient is not. (`vanishing` is 0, but carries this gradient.)
Var product_of_others(const Var& x, const Var& product, const Var& zeros, const Var& vanishing) {
  const Var is_zero = x == 0;
  const Var others = zeros - cast(is_zero, x.dtype());
  const Var one_left = masked_fill(vanishing - masked_fill(x, ~is_zero, 0), others != 1, 0);
  return product / masked_fill(x, is_zero, 1) * where(others == 0, 1, one_left);
}
Vars gradient_of_product(const GradientCall& call, const Places& at) {
  const Var &x = call.inputs[0], &part = call.inputs[2], dy = call.cotangent();
  const Var x_zero = x == 0, part_zero = part == 0;
  const Var product = at.reduced(masked_fill(x, x_zero, 1), masked_fill(part, part_zero, 1), "prod");
  const Var zeros = at.added(cast(x_zero, x.dtype()), cast(part_zero, x.dtype()));
  const Var vanishing = at.added(masked_fill(x, ~x_zero, 0), masked_fill(part, ~part_zero, 0));
  return {dy * product_of_others(x, product, zeros, vanishing), Var(),
          at.read(dy) * product_of_others(part, at.read(product), at.read(zeros), at.read(vanishing))};
}

Vars gradient_of_reduction(const GradientCall& call) {
  const auto& reduce = call.text("reduce");
  const Places at(call.attributes, call.inputs[1]);
  return reduce == "set"    ? gradient_of_set(call, at)
         : reduce == "prod" ? gradient_of_product(call, at)
                            : gradient_of_extreme(call, at);
}

Vars batch_index_reduce(const BatchCall& call) {
  const Var x = call.whole(0), indices = call.whole(1), part = call.whole(2);
  const std::int64_t size = x.shape()[1];
  Shape flat = x.shape();
  flat.erase(0);
  flat[0] = flat[0] * call.size;  // no overflow, because the tape has the array
  const Var first = with_rank(iota(call.tape, {call.size}) * size, indices.rank());
  const Var rows = checked_indices(indices, size, false) + first;
  const auto& reduce = call.text("reduce");
  return {reshape(index_reduce(reshape(x, flat), rows, part, reduce), x.shape())};
}

void require_recorded(const OpCall& call) {
  require_reduction(call, {"set", "prod", "amax", "amin"});
  if (call.dtype(1) != Dtype::int64) throw DtypeError("recorded indices are int64");
}

/// The common definition of the two ops.
Op reduction_op(const char* name, const char* doc) {
  Op op;
  op.name = name;
  op.doc = doc;
  op.inputs = {{"x", Accept::value}, {"indices", Accept::integer}, {"part", Accept::value}};
  op.attributes = {{"reduce", AttributeType::text, "\"set\", \"prod\", \"amax\" or \"amin\".", std::nullopt}};
  op.gradient = gradient_of_reduction;
  // The loops are compiled only for int64 indices, because there are already many of them: one for each type and
  // reduction.
  op.record = +[](Tape& tape, const Op& self, const Vars& inputs, const Attributes& attributes) {
    return record_call(tape, self, {inputs[0], cast(inputs[1], Dtype::int64), inputs[2]}, attributes);
  };
  op.lowering.overwrites = {0};
  op.lowering.cost.part = 2;
  return op;
}

const Op& index_reduce_op() {
  static const Op entry = [] {
    Op op = reduction_op(
        "index_reduce",
        "Combines the slices of `part`, in order, with the slices of x at the given indices along axis 0. "
        "y[indices[i…]] becomes part[i…] for \"set\", or the product, maximum or minimum of both. Equal elements share "
        "the gradient of \"amax\" and \"amin\". Indices outside [0, size) are an error when played.");
    op.shape = +[](const OpCall& call) {
      require_recorded(call);
      const Shape& x = call.shape(0);
      if (x.empty()) throw ShapeError("x must have at least one axis");
      Shape wanted = call.shape(1);
      for (std::size_t i = 1; i < x.size(); ++i) wanted.push_back(x[i]);
      require_shape(call, 2, wanted, "which x and the indices require");
      return std::vector<ValueType>{call.inputs[0]};
    };
    op.batch = batch_index_reduce;
    op.lowering.kernel =
        +[](const KernelCall& call) { return make_index_reduce(form_of(call, call.attributes), true); };
    return op;
  }();
  return entry;
}

const Op& scatter_elements_op() {
  static const Op entry = [] {
    Op op =
        reduction_op("scatter_elements",
                     "Works like index_reduce, element by element. With axis 1 of three axes, y[a, indices[a, b, c], "
                     "c] is combined with part[a, b, c]. The indices must have the sizes of x except along the axis.");
    op.attributes.push_back({"axis", AttributeType::integer, "The axis of x that is indexed.", std::int64_t{0}});
    op.shape = +[](const OpCall& call) {
      require_recorded(call);
      const Shape &x = call.shape(0), &indices = call.shape(1);
      Shape wanted = x;
      const std::size_t axis = axis_of(call);
      if (indices.size() == x.size()) wanted[axis] = indices[axis];
      require_shape(call, 1, wanted, "that of x except along axis " + std::to_string(axis));
      require_shape(call, 2, wanted, "that of the indices");
      return std::vector<ValueType>{call.inputs[0]};
    };
    op.batch = batch_along();
    op.lowering.kernel =
        +[](const KernelCall& call) { return make_index_reduce(form_of(call, call.attributes), false); };
    return op;
  }();
  return entry;
}
}  // namespace

void require_reduction(const OpCall& call, std::initializer_list<const char*> words) {
  require_word(call, "reduce", words);
  if (call.dtype(0) == Dtype::boolean && call.text("reduce") != "set")
    throw DtypeError("cannot reduce bool arrays: cast them to numbers");
}

Var index_reduce(const Var& x, const Var& indices, const Var& part, const std::string& reduce) {
  return apply(index_reduce_op(), {x, indices, part}, {{"reduce", reduce}})[0];
}
Var scatter_elements(const Var& x, const Var& indices, const Var& part, const std::string& reduce, std::int64_t axis) {
  return apply(scatter_elements_op(), {x, indices, part}, {{"reduce", reduce}, {"axis", axis}})[0];
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
  if (dtype == Dtype::int8) return full(tape, shape, highest ? 127 : -128, dtype);
  return full(tape, shape, highest ? Narrow::max() : Narrow::min(), dtype);
}

Var combined_at(const Var& x, const Var& indices, const Var& part, const std::string& reduce, bool include_self,
                std::optional<std::int64_t> axis) {
  Attributes where{{"reduce", reduce}};
  if (axis) where.set("axis", *axis);
  const Places at(where, indices);
  const Tape tape = x.tape();
  const bool mean = reduce == "mean", added = mean || reduce == "sum";
  Var base = x;
  if (!include_self && reduce != "set") {
    const Var identity = added              ? zeros(tape, part.shape(), x.dtype())
                         : reduce == "prod" ? ones(tape, part.shape(), x.dtype())
                                            : lowest(tape, part.shape(), x.dtype(), reduce == "amin");
    base = at.reduced(x, identity, "set");
  }
  if (!added) return at.reduced(base, part, reduce);
  const Var total = at.added(base, part);
  if (!mean) return total;
  const Shape counted = axis ? x.shape() : Shape{x.shape()[0]};
  // Uses int64, because float32 cannot count beyond 2^24.
  Var counts =
      at.added(full(tape, counted, include_self ? 1 : 0, Dtype::int64), ones(tape, indices.shape(), Dtype::int64));
  if (!include_self) counts = maximum(counts, 1);
  counts = cast(with_rank(counts, x.rank()), x.dtype());
  return is_floating(x.dtype()) ? total / counts : floor_divide(total, counts);
}

void list_index_reduce(OpTable& table) {
  table.add(checked_indices_op());
  table.add(index_reduce_op());
  table.add(scatter_elements_op());
}

}  // namespace xtape
