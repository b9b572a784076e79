#include "xtape/ops/reductions.hpp"

#include "onnx/operators.hpp"
#include "ops/indexing/scatter.hpp"
#include "xtape/ops.hpp"

namespace xtape::onnx {

namespace {
using Reduction = Var (*)(const Argument&, const Axes&, bool);

// Results that integers do not hold are computed in float64 and then rounded towards 0.
Var log_sum(const Argument& x, const Axes& axes, bool keepdims) {
  return log(sum(wide(x), axes, keepdims));
}
Var log_sum_of_exponentials(const Argument& x, const Axes& axes, bool keepdims) {
  return logsumexp(wide(x), axes, keepdims);
}
Var mean_of(const Argument& x, const Axes& axes, bool keepdims) {
  return mean(wide(x), axes, keepdims);
}
Var sum_of_squares(const Argument& x, const Axes& axes, bool keepdims) {
  return sum(square(x), axes, keepdims);
}
Var sum_of_magnitudes(const Argument& x, const Axes& axes, bool keepdims) {
  return sum(abs(x), axes, keepdims);
}
Var euclidean(const Argument& x, const Axes& axes, bool keepdims) {
  return vector_norm(wide(x), 2, axes, keepdims);
}

/// The extreme of no elements is the least element of the dtype for the largest, the greatest for the smallest.
template <Reduction of_bools, Reduction of_numbers, bool highest>
Var extreme(const Argument& x, const Axes& axes, bool keepdims) {
  if (x.dtype() == Dtype::boolean) return of_bools(x, axes, keepdims);
  if (count_of(x.shape()) > 0) return of_numbers(x, axes, keepdims);
  return lowest(x.tape(), sum(x, axes, keepdims).shape(), x.dtype(), highest);
}

/// The axes are an attribute or, in later versions, an input.
template <Reduction function>
Vars reduced(NodeCall& node) {
  const Var& x = node.at(0);
  const Integers axes = node.integers("axes", std::size_t{1}).value_or(Integers{});
  const bool keepdims = node.flag("keepdims", true);
  const bool empty_means_none = node.flag("noop_with_empty_axes", false);
  // A reduction over no axes reduces a new axis of size 1.
  if (axes.empty() && empty_means_none) return {function(expand_dims(x, -1), {-1}, false)};
  return {function(x, axes, keepdims)};
}

template <Var (*function)(const Argument&, std::int64_t, bool)>
Vars index_of(NodeCall& node) {
  const Var& x = node.at(0);
  const std::int64_t axis = node.integer("axis", 0);
  const bool keepdims = node.flag("keepdims", true);
  if (node.flag("select_last_index", false)) return {x.size(axis) - 1 - function(flip(x, {axis}), axis, keepdims)};
  return {function(x, axis, keepdims)};
}

/// An exclusive sum is the running sum of the array shifted by one element.
Vars running_sum(NodeCall& node) {
  Var x = node.at(0);
  const auto axis = static_cast<std::int64_t>(normal_axis(node.known_integer(1), x.rank()));
  const bool reverse = node.flag("reverse", false);
  if (node.flag("exclusive", false) && x.size(axis) > 0) {
    std::vector<std::int64_t> start(x.rank(), 0), stop(x.rank(), open_end), before(x.rank(), 0), after(x.rank(), 0);
    const auto at = static_cast<std::size_t>(axis);
    (reverse ? start[at] : stop[at]) = reverse ? 1 : -1;
    (reverse ? after : before)[at] = 1;
    x = pad(slice(x, start, stop), before, after);
  }
  return {cumsum(x, axis, reverse)};
}
}  // namespace

const Operators& reduction_operators() {
  static const Operators operators = {
      {"ArgMax", index_of<argmax>, own},
      {"ArgMin", index_of<argmin>, own},
      {"CumSum", running_sum, 0, wraps},
      {"ReduceL1", reduced<sum_of_magnitudes>, 0, wraps},
      {"ReduceL2", reduced<euclidean>, 0, wraps},
      {"ReduceLogSum", reduced<log_sum>, 0, wraps},
      {"ReduceLogSumExp", reduced<log_sum_of_exponentials>, 0, wraps},
      {"ReduceMax", reduced<extreme<any, max, false>>, 0, wraps},
      {"ReduceMean", reduced<mean_of>, 0, wraps},
      {"ReduceMin", reduced<extreme<all, min, true>>, 0, wraps},
      {"ReduceProd", reduced<prod>, 0, wraps},
      {"ReduceSum", reduced<sum>, 0, wraps},
      {"ReduceSumSquare", reduced<sum_of_squares>, 0, wraps},
  };
  return operators;
}

}  // namespace xtape::onnx
