// Operators with indices, scattering, the largest elements, and losses over classes.
#include "xtape/ops/indexing.hpp"

#include "base/arrays/visit.hpp"
#include "onnx/operators.hpp"
#include "xtape/ops.hpp"
#include "xtape/ops/losses.hpp"
#include "xtape/ops/order.hpp"

namespace xtape::onnx {

namespace {
/// Converts negative indices, which count from the back.
Var from_front(const Var& indices, std::int64_t size) {
  return where(less(indices, 0), indices + size, indices);
}

Vars gathered(NodeCall& node) {
  const Var& x = node.at(0);
  const std::int64_t axis = node.integer("axis", 0);
  return {take(x, from_front(node.at(1), x.size(axis)), axis)};
}

Vars gathered_elements(NodeCall& node) {
  const Var& x = node.at(0);
  const std::int64_t axis = node.integer("axis", 0);
  return {gather(x, axis, from_front(node.at(1), x.size(axis)))};
}

/// Selects the slices whose condition is true. The condition must be known at record time, because it determines the
/// shape.
Vars compressed(NodeCall& node) {
  const bool flat = !node.has("axis");
  const Var x = flat ? reshape(node.at(0), {-1}) : node.at(0);
  const Integers conditions = node.known_integers(1);
  Integers chosen;
  for (std::size_t i = 0; i < conditions.size(); ++i)
    if (conditions[i] != 0) chosen.push_back(static_cast<std::int64_t>(i));
  return {take(x, constant_integers(node.tape(), chosen), flat ? 0 : node.integer("axis"))};
}

/// Returns the places of the elements that are not zero, as columns. The input must be known at record time, because it
/// determines the shape.
Vars places(NodeCall& node) {
  const Array x = node.known(0);
  std::vector<Integers> found(x.shape().size());
  visit_elements(x, [&](const auto* elements) {
    for (std::int64_t i = 0; i < x.count(); ++i) {
      if (static_cast<double>(elements[i]) == 0) continue;
      std::int64_t left = i;
      for (std::size_t axis = found.size(); axis-- > 0; left /= x.shape()[axis])
        found[axis].push_back(left % x.shape()[axis]);
    }
  });
  if (found.empty()) node.fail("a scalar has no places");
  Vars rows;
  for (const Integers& row : found) rows.push_back(constant_integers(node.tape(), row));
  return {stack(rows)};
}

/// Reverses the first `lengths[i]` steps of row i.
Vars reversed_sequences(NodeCall& node) {
  const Var& x = node.at(0);
  const std::int64_t time = node.integer("time_axis", 0), batch = node.integer("batch_axis", 1);
  Shape rows = Shape::filled(x.rank(), 1);
  rows[normal_axis(batch, x.rank())] = x.size(batch);
  const Var lengths = reshape(node.at(1), rows), steps = iota(node.tape(), x.shape(), time);
  return {gather(x, time, where(less(steps, lengths), lengths - 1 - steps, steps))};
}

/// The classes become axis `axis` of the result.
Vars one_hot_of(NodeCall& node) {
  const Var& given = node.at(0);
  const Var indices = is_integer(given.dtype()) ? given : cast(given, Dtype::int64);
  const std::int64_t classes = node.known_integer(1);
  const Var& values = node.at(2);  // the value elsewhere, and the value at the class
  Axes order;
  const auto place = normal_axis(node.integer("axis", -1), indices.rank() + 1);
  for (std::size_t i = 0; i < indices.rank(); ++i) order.push_back(static_cast<std::int64_t>(i));
  order.insert(order.begin() + static_cast<std::ptrdiff_t>(place), static_cast<std::int64_t>(indices.rank()));
  const Var chosen = transpose(one_hot(from_front(indices, classes), classes, Dtype::boolean), order);
  const Vars two = unstack(values);
  if (two.size() != 2) node.fail("values have the shape " + to_string(values.shape()) + ", not (2,)");
  return {where(chosen, two[1], two[0])};
}

/// Computes the loss from log-probabilities.
Var class_loss(NodeCall& node, const Var& log_probabilities) {
  const std::string reduction = node.text("reduction", "mean");
  const std::int64_t ignored = node.integer("ignore_index", -100);
  if (!node.has(2)) return nll_loss(log_probabilities, node.at(1), reduction, ignored);
  return nll_loss(log_probabilities, node.at(1), node.at(2), reduction, ignored);
}

Vars softmax_loss(NodeCall& node) {
  const Var log_probabilities = log_softmax(node.at(0), 1);
  return {class_loss(node, log_probabilities), log_probabilities};
}

/// The first `batch_dims` axes of x, of the indices and of the result correspond to each other.
Vars gathered_places(NodeCall& node) {
  const Var& x = node.at(0);
  const Var& indices = node.at(1);
  const std::int64_t batch = node.integer("batch_dims", 0);
  if (batch < 0 || batch >= static_cast<std::int64_t>(std::min(x.rank(), indices.rank())))
    node.fail("batch_dims " + std::to_string(batch) + " does not fit");
  if (batch == 0) return {gather_nd(x, indices)};
  Shape one = indices.shape();
  one.back() = 1;
  Vars columns;
  for (std::int64_t axis = 0; axis < batch; ++axis) columns.push_back(iota(node.tape(), one, axis));
  columns.push_back(cast(indices, Dtype::int64));
  return {gather_nd(x, concat(columns, -1))};
}

/// Returns the name of a reduction in xtape.
std::string reduction_of(NodeCall& node) {
  const std::string given = node.text("reduction", "none");
  for (const auto& [theirs, ours] :
       {std::pair{"none", "set"}, {"add", "sum"}, {"mul", "prod"}, {"max", "amax"}, {"min", "amin"}})
    if (given == theirs) return ours;
  node.fail("reduction '" + given + "' is not known");
}

Vars scattered_elements(NodeCall& node) {
  return {scatter_reduce(node.at(0), node.integer("axis", 0), node.at(1), node.at(2), reduction_of(node))};
}

Vars scattered_places(NodeCall& node) {
  return {scatter_nd(node.at(0), node.at(1), node.at(2), reduction_of(node))};
}

Vars largest(NodeCall& node) {
  const std::int64_t k = node.has("k") ? node.integer("k") : node.known_integer(1);
  node.ignore("sorted");  // the results are always sorted
  const auto [values, indices] = top_k(node.at(0), k, node.integer("axis", -1), node.flag("largest", true));
  return {values, indices};
}
}  // namespace

const Operators& indexing_operators() {
  static const Operators operators = {
      {"Compress", compressed},
      {"Gather", gathered},
      {"GatherElements", gathered_elements},
      {"GatherND", gathered_places},
      {"NegativeLogLikelihoodLoss", [](NodeCall& node) -> Vars { return {class_loss(node, node.at(0))}; }},
      {"NonZero", places, own},
      {"OneHot", one_hot_of, 2},
      {"ReverseSequence", reversed_sequences},
      {"Scatter", scattered_elements},
      {"ScatterElements", scattered_elements},
      {"ScatterND", scattered_places},
      {"SoftmaxCrossEntropyLoss", softmax_loss},
      {"TopK", largest},
  };
  return operators;
}

}  // namespace xtape::onnx
