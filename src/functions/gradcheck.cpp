#include "xtape/gradcheck.hpp"

#include <cmath>
#include <random>

#include "xtape/grad.hpp"
#include "xtape/ops.hpp"
#include "xtape/player.hpp"

namespace xtape {

namespace {
/// Returns the sum of the float64 outputs times random cotangents.
Var with_random_cotangents(Tape& tape, const Vars& outputs, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  Var total;
  for (const Var& output : outputs) {
    if (output.dtype() != Dtype::float64) continue;  // indices and masks have no gradient
    Array cotangent(Dtype::float64, output.shape());
    for (std::int64_t i = 0; i < cotangent.count(); ++i) cotangent.as<double>()[i] = normal(random);
    const Var part = sum(output * tape.constant(cotangent));
    total = total.empty() ? part : total + part;
  }
  if (total.empty()) throw Error("gradcheck: the function returns no float64 output");
  return total;
}
}  // namespace

GradcheckReport gradcheck(const std::function<Vars(const Vars&)>& function, const std::vector<ArrayView>& points,
                          const GradcheckOptions& options) {
  if (!(options.step > 0) || !std::isfinite(options.step))
    throw Error("gradcheck: the step must be above 0 and finite");
  if (!(options.tolerance >= 0)) throw Error("gradcheck: the tolerance must be at least 0");
  std::mt19937_64 random(options.seed);
  Tape tape;
  tape.set_default_dtype(Dtype::float64);
  Vars inputs;
  std::vector<Array> values;
  for (const ArrayView& point : points) {
    if (point.dtype() != Dtype::float64)
      throw DtypeError(std::string("gradcheck: points must be float64, got ") + name_of(point.dtype()));
    values.emplace_back(point);
    inputs.push_back(tape.input(std::to_string(inputs.size()), values.back().shape(), Dtype::float64));
  }
  if (!function) throw Error("gradcheck: the function is empty");
  const GradOptions zeros{.materialize_grads = true};
  Var scalar = with_random_cotangents(tape, function(inputs), random);
  if (options.second) scalar = with_random_cotangents(tape, grad(scalar, inputs, zeros), random);
  const Vars gradients = grad(scalar, inputs, zeros);

  std::vector<Feed> feeds;  // views of `values`, which are changed in place below
  for (std::size_t i = 0; i < inputs.size(); ++i) feeds.emplace_back(inputs[i], ArrayView(values[i]));
  Player recorded(tape, gradients);
  PlayerOptions plain;
  plain.passes = Passes::reference();
  Player differences(tape, {scalar}, plain);
  recorded.play(feeds, 0);

  GradcheckReport report;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const double* gradient = recorded.view(gradients[i]).as<double>();
    for (std::int64_t k = 0; k < values[i].count(); ++k) {
      double& element = values[i].as<double>()[k];
      const double before = element;
      const auto value_at = [&](double moved) {
        element = moved;
        differences.play(feeds, 0);
        return differences.scalar(scalar);
      };
      const double difference =
          (value_at(before + options.step) - value_at(before - options.step)) / (2 * options.step);
      element = before;
      const double error = std::abs(gradient[k] - difference) / (1 + std::abs(difference));
      if (error <= report.worst) continue;  // false for NaN, so NaN counts as the worst error
      report.worst = error;
      report.message = "input " + std::to_string(i) + ", element " + std::to_string(k) + ": recorded " +
                       std::to_string(gradient[k]) + ", finite difference " + std::to_string(difference);
      if (std::isnan(error)) report.worst = std::numeric_limits<double>::infinity();
    }
  }
  report.passed = report.worst <= options.tolerance;
  return report;
}

}  // namespace xtape
