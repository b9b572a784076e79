#include "gradient_coverage.hpp"

#undef gradcheck

#include <cmath>
#include <vector>

#include "xtape/grad.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"
#include "xtape/vmap.hpp"
#include "xtape/xtensor.hpp"
#include "xview.hpp"

namespace xtape {
namespace {

std::set<std::string>& counted() {
  static std::set<std::string> names;
  return names;
}

/// Counts the ops through which a gradient flows from `outputs` to `inputs`.
void count_swept(const Vars& outputs, const Vars& inputs) {
  const Tape tape = inputs[0].tape();
  std::vector<bool> depends(tape.size(), false), reached(tape.size(), false);
  for (const Var& input : inputs) depends[static_cast<std::size_t>(input.id().node)] = true;
  for (std::size_t i = 0; i < tape.size(); ++i)
    for (const ValueId& id : tape.node(i).inputs)
      if (tape.node(i).op->differentiable && depends[static_cast<std::size_t>(id.node)]) depends[i] = true;
  for (const Var& output : outputs)
    if (is_floating(output.dtype())) reached[static_cast<std::size_t>(output.id().node)] = true;
  for (std::size_t i = tape.size(); i-- > 0;) {
    if (!reached[i] || !depends[i]) continue;
    counted().insert(tape.node(i).op->name);
    for (const ValueId& id : tape.node(i).inputs) reached[static_cast<std::size_t>(id.node)] = true;
  }
}

/// The computation of a function at some points. It can be recorded and played in several ways.
class Subject {
 public:
  Subject(const std::function<Vars(const Vars&)>& function, const std::vector<xt::xarray<double>>& points)
      : points_(points) {
    tape.set_default_dtype(Dtype::float64);
    for (const auto& point : points)
      inputs.push_back(
          tape.input(std::to_string(inputs.size()), Shape(point.shape().begin(), point.shape().end()), Dtype::float64));
    if (function) outputs = function(inputs);
  }
  /// Returns the float64 outputs.
  Vars floats() const {
    Vars found;
    for (const Var& output : outputs)
      if (output.dtype() == Dtype::float64) found.push_back(output);
    return found;
  }
  /// Returns standard normal numbers for each var.
  Vars directions(const Vars& vars) {
    Vars found;
    for (const Var& var : vars) {
      xt::xarray<double> numbers = xt::zeros<double>(std::vector<std::size_t>(var.shape().begin(), var.shape().end()));
      for (double& number : numbers) number = std::sin(static_cast<double>(++drawn_) * 1.7);
      found.push_back(tape.constant(ArrayView(numbers)));
    }
    return found;
  }
  /// Returns the values of vars as float64.
  std::vector<xt::xarray<double>> values(const Vars& vars) const {
    std::vector<Feed> feeds;
    for (std::size_t i = 0; i < inputs.size(); ++i) feeds.emplace_back(inputs[i], points_[i]);
    Vars wide;
    for (const Var& var : vars) wide.push_back(cast(var, Dtype::float64));
    Player player(tape, wide);
    player.play(feeds, 0);
    std::vector<xt::xarray<double>> found;
    for (const Var& var : wide) found.push_back(player.view(var).to<double>());
    return found;
  }
  Tape tape;
  Vars inputs, outputs;

 private:
  const std::vector<xt::xarray<double>>& points_;
  int drawn_ = 0;
};

/// Returns "" if the numbers are close or both NaN, and otherwise a description of the difference.
std::string difference(const std::string& what, const xt::xarray<double>& found, const xt::xarray<double>& wanted,
                       double tolerance) {
  if (found.shape() != wanted.shape()) return what + ": other shapes";
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const double a = found.flat(i), b = wanted.flat(i);
    const bool close = a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= tolerance * (1 + std::abs(b));
    if (!close)
      return what + ": element " + std::to_string(i) + " is " + std::to_string(a) + ", not " + std::to_string(b);
  }
  return "";
}

/// Checks that <u, jvp(t)> equals <grad(u), t>.
std::string check_jvp(const std::function<Vars(const Vars&)>& function, const std::vector<xt::xarray<double>>& points,
                      double tolerance) {
  Subject subject(function, points);
  const Vars outputs = subject.floats();
  const Vars tangents = subject.directions(subject.inputs), cotangents = subject.directions(outputs);
  const Vars forward = jvp(outputs, subject.inputs, tangents);
  const Vars reverse = grad(outputs, subject.inputs, cotangents, {.materialize_grads = true});
  Var by_jvp = zeros(subject.tape, {}, Dtype::float64), by_grad = by_jvp;
  for (std::size_t k = 0; k < outputs.size(); ++k) by_jvp = by_jvp + sum(forward[k] * cotangents[k]);
  for (std::size_t i = 0; i < tangents.size(); ++i) by_grad = by_grad + sum(reverse[i] * tangents[i]);
  const auto values = subject.values({by_jvp, by_grad});
  return difference("jvp", values[0], values[1], tolerance);
}

/// Returns the results and gradients of one example.
Vars results_of(const std::function<Vars(const Vars&)>& function, const Vars& inputs) {
  Vars results = function(inputs);
  Var total;
  for (const Var& output : results)
    if (output.dtype() == Dtype::float64) total = total.empty() ? sum(sin(output)) : total + sum(sin(output));
  const Vars gradients = grad(total, inputs, {.materialize_grads = true});
  results.insert(results.end(), gradients.begin(), gradients.end());
  return results;
}

/// Checks that vmap equals a loop over the examples. `mapped` says which inputs differ between the examples.
std::string check_vmap(const std::function<Vars(const Vars&)>& function, const std::vector<xt::xarray<double>>& points,
                       const std::vector<bool>& mapped, double tolerance) {
  constexpr int examples = 3;
  const auto example = [&](std::size_t i, int k) -> xt::xarray<double> {
    return mapped[i] ? xt::xarray<double>(points[i] * (1 + 0.03 * k)) : points[i];
  };
  std::vector<xt::xarray<double>> batch;
  VmapOptions options;
  options.randomness = Randomness::same;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (!mapped[i]) {
      batch.push_back(points[i]);
      options.in_axes.push_back(std::nullopt);
      continue;
    }
    std::vector<std::size_t> shape(points[i].shape().begin(), points[i].shape().end());
    shape.insert(shape.begin(), examples);
    xt::xarray<double> all = xt::zeros<double>(shape);
    for (int k = 0; k < examples; ++k) xt::view(all, k) = example(i, k);
    batch.push_back(all);
    options.in_axes.push_back(0);
  }
  const auto whole = [&](const Vars& inputs) { return results_of(function, inputs); };
  Subject together({}, batch);
  const auto found = together.values(vmap(whole, together.inputs, options));
  for (int k = 0; k < examples; ++k) {
    std::vector<xt::xarray<double>> of_one;
    for (std::size_t i = 0; i < points.size(); ++i) of_one.push_back(example(i, k));
    Subject alone(whole, of_one);
    const auto wanted = alone.values(alone.outputs);
    for (std::size_t r = 0; r < wanted.size(); ++r) {
      const std::string different = difference("vmap, example " + std::to_string(k) + ", result " + std::to_string(r),
                                               xt::view(found[r], k), wanted[r], tolerance);
      if (!different.empty()) return different;
    }
  }
  return "";
}

/// Checks the tangents of the function, and the function mapped over all inputs and over each input alone. Returns a
/// description of the first error, or "" if there is none.
std::string check_transformed(const std::function<Vars(const Vars&)>& function,
                              const std::vector<xt::xarray<double>>& points, double tolerance) {
  std::string wrong = check_jvp(function, points, tolerance);
  if (wrong.empty()) wrong = check_vmap(function, points, std::vector<bool>(points.size(), true), tolerance);
  for (std::size_t i = 0; points.size() > 1 && wrong.empty() && i < points.size(); ++i) {
    std::vector<bool> one(points.size(), false);
    one[i] = true;
    wrong = check_vmap(function, points, one, tolerance);
  }
  return wrong;
}

}  // namespace

GradcheckReport counted_gradcheck(const std::function<Vars(const Vars&)>& function,
                                  const std::vector<xt::xarray<double>>& points, const GradcheckOptions& options) {
  GradcheckReport report = gradcheck(function, points, options);
  if (!report.passed || points.empty()) return report;
  report.message = check_transformed(function, points, options.tolerance);
  report.passed = report.message.empty();
  if (!report.passed) return report;
  Tape tape;  // a tape on which the function is recorded once more
  tape.set_default_dtype(Dtype::float64);
  Vars inputs;
  for (const auto& point : points)
    inputs.push_back(
        tape.input(std::to_string(inputs.size()), Shape(point.shape().begin(), point.shape().end()), Dtype::float64));
  Var total;
  const Vars outputs = function(inputs);
  count_swept(outputs, inputs);
  if (!options.second) return report;
  for (const Var& output : outputs)
    if (is_floating(output.dtype())) total = total.empty() ? sum(sin(output)) : total + sum(sin(output));
  count_swept(grad(total, inputs, {.materialize_grads = true}), inputs);
  return report;
}

const std::set<std::string>& gradient_checked_ops() {
  return counted();
}

}  // namespace xtape
