#include "xtape/ops/reductions.hpp"

#include "operators.hpp"
#include "xtape/ops.hpp"

namespace xtape::onnx {

namespace {
using Reduction = Var (*)(const Argument&, const Axes&, bool);

Var log_sum(const Argument& x, const Axes& axes, bool keepdims) {
  return log(sum(x, axes, keepdims));
}
Var sum_of_squares(const Argument& x, const Axes& axes, bool keepdims) {
  return sum(square(x), axes, keepdims);
}
Var sum_of_magnitudes(const Argument& x, const Axes& axes, bool keepdims) {
  return sum(abs(x), axes, keepdims);
}
Var euclidean(const Argument& x, const Axes& axes, bool keepdims) {
  return sqrt(sum(square(x), axes, keepdims));
}

Var largest(const Argument& x, const Axes& axes, bool keepdims) {
  return x.dtype() == Dtype::boolean ? any(x, axes, keepdims) : max(x, axes, keepdims);
}
Var smallest(const Argument& x, const Axes& axes, bool keepdims) {
  return x.dtype() == Dtype::boolean ? all(x, axes, keepdims) : min(x, axes, keepdims);
}

/// The axes are an attribute or, in later versions, an input. The result has the type of x.
template <Reduction function>
Vars reduced(NodeCall& node) {
  const Var& x = node.at(0);
  const Integers axes = node.integers("axes", std::size_t{1}).value_or(Integers{});
  const bool keepdims = node.integer("keepdims", 1) != 0;
  const bool empty_means_none = node.integer("noop_with_empty_axes", 0) != 0;
  // A reduction over no axes reduces a new axis of size 1.
  if (axes.empty() && empty_means_none) return {cast(function(expand_dims(x, -1), {-1}, false), x.dtype())};
  return {cast(function(x, axes, keepdims), x.dtype())};
}

template <Var (*function)(const Argument&, std::int64_t, bool)>
Vars index_of(NodeCall& node) {
  const Var& x = node.at(0);
  const std::int64_t axis = node.integer("axis", 0);
  const bool keepdims = node.integer("keepdims", 1) != 0;
  if (node.integer("select_last_index", 0) == 0) return {function(x, axis, keepdims)};
  return {x.size(axis) - 1 - function(flip(x, {axis}), axis, keepdims)};
}

/// An exclusive sum is the running sum of the array shifted by one element.
Vars running_sum(NodeCall& node) {
  Var x = node.at(0);
  const auto axis = static_cast<std::int64_t>(normal_axis(node.known_integer(1), x.rank()));
  const bool reverse = node.integer("reverse", 0) != 0;
  if (node.integer("exclusive", 0) != 0 && x.size(axis) > 0) {
    std::vector<std::int64_t> start(x.rank(), 0), stop(x.rank(), open_end), before(x.rank(), 0), after(x.rank(), 0);
    const auto at = static_cast<std::size_t>(axis);
    (reverse ? start[at] : stop[at]) = reverse ? 1 : -1;
    (reverse ? after : before)[at] = 1;
    x = pad(slice(x, start, stop), before, after);
  }
  return {cast(cumsum(x, axis, reverse), x.dtype())};
}
}  // namespace

const Operators& reduction_operators() {
  static const Operators operators = {
      {"ArgMax", index_of<argmax>},
      {"ArgMin", index_of<argmin>},
      {"CumSum", running_sum},
      {"ReduceL1", reduced<sum_of_magnitudes>},
      {"ReduceL2", reduced<euclidean>},
      {"ReduceLogSum", reduced<log_sum>},
      {"ReduceLogSumExp", reduced<logsumexp>},
      {"ReduceMax", reduced<largest>},
      {"ReduceMean", reduced<mean>},
      {"ReduceMin", reduced<smallest>},
      {"ReduceProd", reduced<prod>},
      {"ReduceSum", reduced<sum>},
      {"ReduceSumSquare", reduced<sum_of_squares>},
  };
  return operators;
}

}  // namespace xtape::onnx
