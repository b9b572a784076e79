// ragged_dot, which computes the products of mixtures of experts, and its gradient with respect to the weights.
#include "kernels/indexing/index_kernels.hpp"
#include "ops/recording/op_helpers.hpp"
#include "xtape/ops/indexing.hpp"

namespace xtape {

namespace {
/// Throws ShapeError if the first input is not [m, k], if the second input, called `other`, does not have the rank
/// `rank`, or if the group sizes are not [g].
void require_ranks(const OpCall& call, const char* other, std::size_t rank) {
  if (call.shape(0).size() != 2 || call.shape(1).size() != rank || call.shape(2).size() != 1)
    throw ShapeError("x [m, k], " + std::string(other) + ", and group_sizes [g] are needed, got " +
                     to_string(call.shape(0)) + ", " + to_string(call.shape(1)) + " and " + to_string(call.shape(2)));
}

std::vector<ValueType> ragged_dot_shape(const OpCall& call) {
  require_ranks(call, "weights [g, k, n]", 3);
  const std::int64_t n = call.shape(1)[2];
  require_shape(call, 1, {call.shape(2)[0], call.shape(0)[1], n},
                "a matrix for each group, with a row for each column of x");
  return {{call.dtype(0), {call.shape(0)[0], n}}};
}

std::vector<ValueType> ragged_dot_weights_shape(const OpCall& call) {
  require_ranks(call, "y [m, n]", 2);
  const std::int64_t n = call.shape(1)[1];
  require_shape(call, 1, {call.shape(0)[0], n}, "as many rows as x");
  return {{call.dtype(0), {call.shape(2)[0], call.shape(0)[1], n}}};
}

/// Returns the transposed matrices of weights [g, k, n], as a view.
Var transposed(const Var& weights) {
  return transpose(weights, {0, 2, 1});
}

/// Returns the group of each of `rows` rows, or the number of groups for a row without a group.
Var groups_of_rows(const Var& sizes, std::int64_t rows) {
  const Var ends = cumsum(cast(sizes, Dtype::int64), 0);
  const Var places = iota(sizes.tape(), {rows, 1}, 0, Dtype::int64);
  return sum(cast(ends <= places, Dtype::int64), {1});  // [rows]
}

/// The expansions of the two ops. Both create an array with one matrix per row of x. For ragged_dot, it is the weight
/// matrix of the row's group. For ragged_dot_weights, it is the outer product of the rows of x and y, and these
/// products are then summed by group.
Vars expand_ragged_dot(const ExpandCall& call) {
  const Var &x = call.inputs[0], &weights = call.inputs[1], &sizes = call.inputs[2];
  const Shape shape = weights.shape();
  const Var nothing = zeros(call.tape, {1, shape[1], shape[2]}, weights.dtype());
  const Var groups = groups_of_rows(sizes, x.shape()[0]);       // [m]
  const Var own = take(concat({weights, nothing}, 0), groups);  // [m, k, n]
  return {masked_fill(einsum("mk,mkn->mn", x, own), expand_dims(groups == shape[0], -1), 0)};
}

Vars expand_ragged_dot_weights(const ExpandCall& call) {
  const Var &x = call.inputs[0], &y = call.inputs[1], &sizes = call.inputs[2];
  const std::int64_t groups = sizes.shape()[0], k = x.shape()[1], n = y.shape()[1];
  const Var sums = index_add(zeros(call.tape, {groups + 1, k, n}, x.dtype()), 0, groups_of_rows(sizes, x.shape()[0]),
                             einsum("mk,mn->mkn", x, y));
  return {slice(sums, {0, 0, 0}, {groups, k, n})};
}

/// Reshapes arrays [b, i, …] to [b * i, …].
Var flat(const Var& x) {
  Shape shape = x.shape();
  shape[1] = shape[0] * shape[1];  // no overflow, because the tape has the array
  shape.erase(0);
  return reshape(x, shape);
}

/// Returns the sizes of the groups of all examples, each with `rows` rows: [b * (g + 1)]. The sizes of an example are
/// [g]. One additional group per example contains the remaining rows.
Var sizes_of_all(const BatchCall& call, std::int64_t rows) {
  const Var sizes = cast(call.whole(2), Dtype::int64);
  return flat(concat({sizes, rows - sum(sizes, {1}, true)}, 1));
}

/// The groups of all examples become separate groups with their own weights.
Vars batch_ragged_dot(const BatchCall& call) {
  const Var x = call.whole(0), weights = call.whole(1);  // [b, m, k], [b, g, k, n]
  const std::int64_t rows = x.shape()[1], n = weights.shape()[3];
  const Var nothing = zeros(call.tape, {call.size, 1, weights.shape()[2], n}, weights.dtype());
  const Var sizes = sizes_of_all(call, rows);
  const Var y = reshape(ragged_dot(flat(x), flat(concat({weights, nothing}, 1)), sizes), {call.size, rows, n});
  const Var ends = sum(cast(call.whole(2), Dtype::int64), {1}, true);  // [b, 1]
  return {masked_fill(y, expand_dims(ends <= iota(call.tape, {1, rows}, 1, Dtype::int64), -1), 0)};
}

Vars batch_ragged_dot_weights(const BatchCall& call) {
  const Var x = call.whole(0), y = call.whole(1);  // [b, m, k], [b, m, n]
  const std::int64_t groups = call.node.outputs[0].shape[0], k = x.shape()[2], n = y.shape()[2];
  const Var sums = ragged_dot_weights(flat(x), flat(y), sizes_of_all(call, x.shape()[1]));
  return {slice(reshape(sums, {call.size, groups + 1, k, n}), {0, 0, 0, 0}, {call.size, groups, k, n})};
}

/// Each row is multiplied by one matrix.
double ragged_flops(const OpCall& call) {
  const double terms = 2.0 * static_cast<double>(call.shape(0)[0]) * static_cast<double>(call.shape(0)[1]);
  return terms * static_cast<double>(call.shape(1).back());
}

Lowering ragged_lowering(Kernel (*make)(const KernelForm&)) {
  return {.kernel = [make](const KernelCall& call) { return make(form_of(call, call.attributes)); },
          .layouts = {.any_in = true},
          .dtypes = {.widens = {0, 1}},
          .cost = {ragged_flops}};
}

const Op& ragged_dot_op() {
  static const Op entry{
      .name = "ragged_dot",
      .doc = R"(Multiplies groups of rows, each by its own matrix, as jax.lax.ragged_dot. The rows of x [m, k] are
           sorted by group. With weights [g, k, n], the result is y [m, n], where y[i] = x[i] weights[j] for a row i of
           group j. group_sizes [g] has the number of rows of each group; rows of y beyond the sum of the sizes are 0. A
           size below 0, or a sum above m, is an error when played.)",
      .inputs = {{"x", Accept::floating}, {"weights", Accept::floating}, {"group_sizes", Accept::integer}},
      .shape = ragged_dot_shape,
      .gradient =
          +[](const GradientCall& call) {
            const Var &x = call.inputs[0], &weights = call.inputs[1], &sizes = call.inputs[2], dy = call.cotangent();
            return Vars{call.needs[0] ? ragged_dot(dy, transposed(weights), sizes) : Var(),
                        call.needs[1] ? ragged_dot_weights(x, dy, sizes) : Var(), Var()};
          },
      .batch = batch_ragged_dot,
      .expand = expand_ragged_dot,
      .lowering = ragged_lowering(make_ragged_dot)};
  return entry;
}

const Op& ragged_dot_weights_op() {
  static const Op entry{
      .name = "ragged_dot_weights",
      .doc = R"(The gradient of ragged_dot with respect to its weights. The rows of x [m, k] and y [m, n] are sorted by
           group. The result is [g, k, n]: for each group, the sum of x[i]' y[i] over the rows i of the group.
           group_sizes [g] has the number of rows of each group; rows beyond the sum of the sizes do not count. A size
           below 0, or a sum above m, is an error when played.)",
      .inputs = {{"x", Accept::floating}, {"y", Accept::floating}, {"group_sizes", Accept::integer}},
      .outputs = {"weights"},
      .shape = ragged_dot_weights_shape,
      .gradient =
          +[](const GradientCall& call) {
            const Var &x = call.inputs[0], &y = call.inputs[1], &sizes = call.inputs[2], d = call.cotangent();
            return Vars{call.needs[0] ? ragged_dot(y, transposed(d), sizes) : Var(),
                        call.needs[1] ? ragged_dot(x, d, sizes) : Var(), Var()};
          },
      .batch = batch_ragged_dot_weights,
      .expand = expand_ragged_dot_weights,
      .lowering = ragged_lowering(make_ragged_dot_weights)};
  return entry;
}
}  // namespace

Var ragged_dot(const Argument& x, const Var& weights, const Var& group_sizes) {
  return apply(ragged_dot_op(), {x, weights, group_sizes})[0];
}
Var ragged_dot_weights(const Argument& x, const Var& y, const Var& group_sizes) {
  return apply(ragged_dot_weights_op(), {x, y, group_sizes})[0];
}

void list_ragged(OpTable& table) {
  table.add(ragged_dot_op());
  table.add(ragged_dot_weights_op());
}

}  // namespace xtape
