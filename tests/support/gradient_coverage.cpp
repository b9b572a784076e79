#include "gradient_coverage.hpp"

#undef gradcheck

#include <vector>

#include "xtape/grad.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"
#include "xtape/xtensor.hpp"

namespace xtape {
namespace {

std::set<std::string>& counted() {
  static std::set<std::string> names;
  return names;
}

/// The ops through which a gradient flows from `outputs` to `inputs`.
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

}  // namespace

GradcheckReport counted_gradcheck(const std::function<Vars(const Vars&)>& function,
                                  const std::vector<xt::xarray<double>>& points, const GradcheckOptions& options) {
  const GradcheckReport report = gradcheck(function, points, options);
  if (!report.passed || points.empty()) return report;
  Tape tape;  // records the function once more
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
