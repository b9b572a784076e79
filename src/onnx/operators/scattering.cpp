// Operators with indices of several axes, scattering, and the largest elements.
#include "onnx/operators.hpp"
#include "xtape/ops.hpp"
#include "xtape/ops/indexing.hpp"
#include "xtape/ops/order.hpp"

namespace xtape::onnx {

namespace {
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

const Operators& scattering_operators() {
  static const Operators operators = {
      {"GatherND", gathered_places},
      {"Scatter", scattered_elements},
      {"ScatterElements", scattered_elements},
      {"ScatterND", scattered_places},
      {"TopK", largest},
  };
  return operators;
}

}  // namespace xtape::onnx
