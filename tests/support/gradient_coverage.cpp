#include "gradient_coverage.hpp"

#undef gradcheck

#include <optional>

#include "xtape/op.hpp"

namespace xtape {
namespace {

std::set<std::string>& counted() {
  static std::set<std::string> names;
  return names;
}

}  // namespace

GradcheckReport counted_gradcheck(const std::function<Vars(const Vars&)>& function,
                                  const std::vector<xt::xarray<double>>& points, const GradcheckOptions& options) {
  std::optional<Tape> tape;
  const auto keeps_tape = [&](const Vars& inputs) {
    Vars outputs = function(inputs);
    if (!outputs.empty() && !outputs[0].empty()) tape = outputs[0].tape();
    return outputs;
  };
  const GradcheckReport report = gradcheck(keeps_tape, points, options);
  if (!report.passed || !tape) return report;
  // A first gradient is one sweep; a second gradient sweeps again, over the nodes of the first sweep.
  for (const Adjoint& adjoint : tape->adjoints()) {
    const Node& node = tape->node(static_cast<std::size_t>(adjoint.forward));
    const bool of_first_sweep = adjoint.sweep == 0;
    if (adjoint.of_output && (of_first_sweep || options.second)) counted().insert(node.op->name);
  }
  return report;
}

const std::set<std::string>& gradient_checked_ops() {
  return counted();
}

}  // namespace xtape
