// Ops with an array of indices: take, gather, their adjoints index_add and scatter_add, and one_hot.
#include "ops/indexing/scatter.hpp"
#include "ops/recording/op_helpers.hpp"
#include "ops/shapes/creation.hpp"

namespace xtape {

namespace {
std::vector<AttributeSpec> axis_attribute() {
  return {{"axis", AttributeType::integer, "The axis of x that is indexed.", std::int64_t{0}}};
}

/// Returns the shape of take's result: the shape of x, with the shape of the indices in place of the axis.
Shape taken_shape(const Shape& x, const Shape& indices, std::int64_t axis) {
  const std::size_t at = normal_axis(axis, x.size());
  Shape shape(x.begin(), x.begin() + at);
  for (std::int64_t size : indices) shape.push_back(size);
  for (std::size_t i = at + 1; i < x.size(); ++i) shape.push_back(x[i]);
  return shape;
}

/// Records gather or scatter_add on the part of x that the indices reach, because a recorded call needs indices with
/// the sizes of x.
Vars record_on_reached(Tape& tape, const Op& op, const Vars& inputs, const Attributes& attributes) {
  const Var& x = inputs[0];
  const Shape reached = reached_shape(x.shape(), inputs[1].shape(), attributes.get<std::int64_t>("axis"));
  if (reached == x.shape()) return record_call(tape, op, inputs, attributes);
  const std::vector<std::int64_t> from(x.rank(), 0), to(reached.begin(), reached.end());
  Vars given = inputs;
  given[0] = slice(x, from, to);
  const Vars results = record_call(tape, op, given, attributes);
  return given.size() == 2 ? results : Vars{update_slice(x, results[0], from)};
}

/// Throws ShapeError if a size of `indices` differs from the size of x, except along the axis.
void require_like(const Shape& x, const Shape& indices, std::int64_t axis) {
  const std::size_t at = normal_axis(axis, x.size());
  bool fits = indices.size() == x.size();
  for (std::size_t i = 0; fits && i < x.size(); ++i) fits = i == at || indices[i] == x[i];
  if (!fits)
    throw ShapeError("indices of shape " + to_string(indices) + " must have the sizes of x, " + to_string(x) +
                     ", except along axis " + std::to_string(at));
}

/// Throws ShapeError if the input 'part' does not have shape `wanted`.
void require_part(const Shape& part, const Shape& wanted) {
  if (part != wanted)
    throw ShapeError("'part' has shape " + to_string(part) + ", but x and the indices require " + to_string(wanted));
}

using Adjoint = Var (*)(const Argument& x, std::int64_t axis, const Var& indices, const Var& part);

/// For Op::Algebra::accumulate. If x is the result of `zeros`, records the call with the addend in place of x.
std::function<Var(const Node&, const Vars&, const Var&)> instead_of_zeros(Adjoint record) {
  return [record](const Node& node, const Vars& inputs, const Var& addend) {
    if (inputs[0].node().op != &zeros_op()) return Var();
    return record(addend, node.attributes.get<std::int64_t>("axis"), inputs[1], inputs[2]);
  };
}

Var scaled_take(const Node& node, const Vars& inputs, std::size_t input, const Var& scale) {
  if (input != 0) return {};
  const std::int64_t axis = node.attributes.get<std::int64_t>("axis");
  const std::size_t at = normal_axis(axis, scale.rank());
  const Var taken = take(inputs[0], inputs[1], axis);
  if (scale.shape()[at] != 1) return taken * take(scale, inputs[1], axis);
  Shape shape = scale.shape();
  shape.erase(at);
  for (std::size_t i = 0; i < inputs[1].rank(); ++i) shape.insert(at, 1);
  return taken * reshape(scale, shape);
}

/// Returns the axis of the call after the batch is added as axis 0 of x.
std::size_t axis_behind_batch(const BatchCall& call) {
  return normal_axis(call.integer("axis"), call.rank()) + 1;
}

/// Converts indices [b, …] of slices of x [b, …, n, …] along `axis` to the form for gather and scatter_add: [b, …,
/// count, …].
Var element_by_element(const Var& indices, Shape x, std::size_t axis) {
  Shape narrow = Shape::filled(x.size(), 1);
  narrow[0] = x[0];
  narrow[axis] = 1;
  // no overflow, because the tape has the array
  for (std::size_t i = 1; i < indices.rank(); ++i) narrow[axis] *= indices.shape()[i];
  x[axis] = narrow[axis];
  return broadcast_to(reshape(indices, narrow), x);
}

Vars batch_take(const BatchCall& call) {
  const Var &x = call.inputs[0], &indices = call.inputs[1];
  const std::size_t axis = axis_behind_batch(call);
  if (!call.mapped[1]) return {take(x, indices, static_cast<std::int64_t>(axis))};
  if (!call.mapped[0]) {
    // the axis of the batch, which is the first axis of the indices
    const auto place = static_cast<std::int64_t>(axis) - 1;
    return {axis_to_first(take(x, indices, place), place)};
  }
  Shape shape = call.node.outputs[0].shape;
  shape.insert(0, call.size);
  return {reshape(gather(x, static_cast<std::int64_t>(axis), element_by_element(indices, x.shape(), axis)), shape)};
}

bool takes_whole_blocks(const OpCall& call) {
  const Shape& x = call.shape(0);
  const Shape slice(x.begin() + normal_axis(call.integer("axis"), x.size()) + 1, x.end());
  return count_of(slice) % block_of(call.dtype(0)) == 0;
}

const Op& take_op() {
  static const Op entry{
      .name = "take",
      .doc = R"(The slices of x with the given indices along `axis`. In the result, the axes of the indices replace this
           axis. With axis 0, y[i…] = x[indices[i…]], as in an embedding. Indices outside [0, size) are an error when
           played.)",
      .inputs = {{"x", Accept::any}, {"indices", Accept::integer}},
      .attributes = axis_attribute(),
      .shape =
          +[](const OpCall& call) {
            return std::vector<ValueType>{
                {call.dtype(0), taken_shape(call.shape(0), call.shape(1), call.integer("axis"))}};
          },
      .gradient =
          +[](const GradientCall& call) {
            const std::int64_t axis = call.integer("axis");
            return Vars{index_add(zeros_like(call.inputs[0]), axis, call.inputs[1], call.cotangent()), Var()};
          },
      .batch = batch_take,
      .lowering = {.kernel = kernel_by_name,
                   .dtypes = {.any = true, .blocks = takes_whole_blocks},
                   .cost = {.picks = true}},
      .algebra = {.scaled = scaled_take}};
  return entry;
}

const Op& gather_op() {
  static const Op entry{
      .name = "gather",
      .doc =
          R"(The elements of x with the given indices along `axis`, as torch.gather. With axis 1 of three axes, y[a, b,
           c] = x[a, indices[a, b, c], c]. Except along the axis, no axis of the indices may be longer than that of x.
           Indices outside [0, size) are an error when played.)",
      .inputs = {{"x", Accept::any}, {"indices", Accept::integer}},
      .attributes = axis_attribute(),
      .shape =
          +[](const OpCall& call) {
            require_like(call.shape(0), call.shape(1), call.integer("axis"));
            return std::vector<ValueType>{{call.dtype(0), call.shape(1)}};
          },
      .gradient =
          +[](const GradientCall& call) {
            const std::int64_t axis = call.integer("axis");
            return Vars{scatter_add(zeros_like(call.inputs[0]), axis, call.inputs[1], call.cotangent()), Var()};
          },
      .batch = batch_along(),
      .record = record_on_reached,
      .lowering = {.kernel = kernel_by_name, .dtypes = {.any = true}, .cost = {.picks = true}}};
  return entry;
}

Vars batch_index_add(const BatchCall& call) {
  const auto axis = static_cast<std::int64_t>(axis_behind_batch(call));
  const Var x = call.whole(0), part = call.whole(2);
  if (!call.mapped[1]) return {index_add(x, axis, call.inputs[1], part)};
  const Var indices = element_by_element(call.inputs[1], x.shape(), axis_behind_batch(call));
  return {scatter_add(x, axis, indices, reshape(part, indices.shape()))};
}

/// The common definition of the two adjoints. Their inputs are x, indices and part.
Op adjoint_op(const char* name, const char* doc) {
  Op op;
  op.name = name;
  op.doc = doc;
  op.inputs = {{"x", Accept::value}, {"indices", Accept::integer}, {"part", Accept::value}};
  op.attributes = axis_attribute();
  op.lowering.overwrites = {0};
  op.lowering.cost.part = 2;
  return op;
}

/// Returns the type of x. Throws DtypeError if it is bool.
std::vector<ValueType> as_x(const OpCall& call) {
  if (call.dtype(0) == Dtype::boolean) throw DtypeError("cannot add bool arrays: cast them to numbers");
  return {call.inputs[0]};
}

const Op& index_add_op() {
  static const Op entry = [] {
    Op op = adjoint_op("index_add",
                       "x with the slices of `part` added at the given indices, the adjoint of take. With axis 0, y "
                       "starts as x, and then y[indices[i…]] += part[i…]. For equal indices all slices are added, in "
                       "order. Indices outside [0, size) are an error when played.");
    op.shape = +[](const OpCall& call) {
      require_part(call.shape(2), taken_shape(call.shape(0), call.shape(1), call.integer("axis")));
      return as_x(call);
    };
    op.lowering.kernel = kernel_by_name;
    op.gradient = +[](const GradientCall& call) {
      const std::int64_t axis = call.integer("axis");
      return Vars{call.cotangent(), Var(), take(call.cotangent(), call.inputs[1], axis)};
    };
    op.batch = batch_index_add;
    op.algebra.accumulate = instead_of_zeros(index_add);
    return op;
  }();
  return entry;
}

const Op& scatter_add_op() {
  static const Op entry = [] {
    Op op = adjoint_op("scatter_add",
                       "x with the elements of `part` added at the given indices, the adjoint of gather. With axis 1 "
                       "of three axes, y starts as x, and then y[a, indices[a, b, c], c] += part[a, b, c]. For equal "
                       "indices all elements are added, in order. Except along the axis, no axis of the indices may be "
                       "longer than that of x. Indices outside [0, size) are an error when played.");
    op.shape = +[](const OpCall& call) {
      require_like(call.shape(0), call.shape(1), call.integer("axis"));
      require_part(call.shape(2), call.shape(1));
      return as_x(call);
    };
    op.lowering.kernel = kernel_by_name;
    op.gradient = +[](const GradientCall& call) {
      const std::int64_t axis = call.integer("axis");
      return Vars{call.cotangent(), Var(), gather(call.cotangent(), axis, call.inputs[1])};
    };
    op.batch = batch_along();
    op.record = record_on_reached;
    op.algebra.accumulate = instead_of_zeros(scatter_add);
    return op;
  }();
  return entry;
}

const Op& one_hot_op() {
  static const Op entry{
      .name = "one_hot",
      .doc =
          R"(Returns [..., classes]: along the new last axis, 1 at the index and 0 elsewhere. An index outside [0,
           classes) gives only zeros.)",
      .inputs = {{"indices", Accept::integer}},
      .attributes = {{"classes", AttributeType::integer, "The size of the new last axis.", std::nullopt},
                     float_dtype_spec("The dtype of the result.")},
      .shape =
          +[](const OpCall& call) {
            if (call.integer("classes") < 0) throw ShapeError("classes must be at least 0");
            Shape shape = call.shape(0);
            shape.push_back(call.integer("classes"));
            return std::vector<ValueType>{{call.get<Dtype>("dtype"), shape}};
          },
      .batch = batch_leading,
      .expand =
          +[](const ExpandCall& call) {
            const Var& indices = call.inputs[0];
            const std::int64_t classes = call.integer("classes");
            const bool beyond_int32 = classes > std::int64_t{1} << 31;
            const Var hits = expand_dims(indices, -1) ==
                             iota(call.tape, {classes}, 0, beyond_int32 ? Dtype::int64 : indices.dtype());
            return Vars{cast(hits, call.get<Dtype>("dtype"))};
          },
      .differentiable = false};
  return entry;
}
}  // namespace

Var take(const Argument& x, const Var& indices, std::int64_t axis) {
  return apply(take_op(), {x, indices}, {{"axis", axis}})[0];
}
Var gather(const Argument& x, std::int64_t axis, const Var& indices) {
  return apply(gather_op(), {x, indices}, {{"axis", axis}})[0];
}
Var index_add(const Argument& x, std::int64_t axis, const Var& indices, const Var& part) {
  return apply(index_add_op(), {x, indices, part}, {{"axis", axis}})[0];
}
Var scatter_add(const Argument& x, std::int64_t axis, const Var& indices, const Var& part) {
  return apply(scatter_add_op(), {x, indices, part}, {{"axis", axis}})[0];
}
Var one_hot(const Argument& indices, std::int64_t classes, std::optional<Dtype> dtype) {
  return apply(one_hot_op(), {indices}, {{"classes", classes}, {"dtype", dtype_value(dtype)}})[0];
}

void list_indexing(OpTable& table) {
  for (const Op* op : {&take_op(), &gather_op(), &index_add_op(), &scatter_add_op(), &one_hot_op()}) table.add(*op);
}

}  // namespace xtape
