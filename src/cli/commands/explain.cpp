/// xtape explain: shows how the gradient of a loss reaches a weight.
#include <cstdio>
#include <iostream>
#include <memory>

#include "base/messages/wording.hpp"
#include "cli/play_of.hpp"
#include "xtape/op/op.hpp"

namespace xtape::cli {
namespace {

struct ExplainArguments {
  PlayArguments play;
  std::string weight;
  bool all = false;
};

/// Returns the float parameters by name.
NamedVars parameters_of(const Tape& tape) {
  NamedVars parameters;
  for (std::size_t i = 0; i < tape.size(); ++i) {
    const Node& node = tape.node(i);
    if (node.op == &parameter_op() && is_floating(node.outputs[0].dtype) && !parameters.has(node.name))
      parameters.add(node.name, tape.var({static_cast<std::int32_t>(i), 0}));
  }
  return parameters;
}

void print(const FlowValue& step, double of) {
  std::printf("  %9.3e", step.norm);
  if (of > 0) std::printf(" (%5.1f %%)", 100 * step.norm / of);
  std::printf("  %s -> %s%s%s", step.node.c_str(), step.type.c_str(), step.site.empty() ? "" : "  at ",
              step.site.c_str());
  if (step.zeros > 0) std::printf("  (%.1f %% of its gradient is 0)", 100 * step.zeros);
  std::printf("\n");
}

void print(const GradientFlow& flow, bool all) {
  constexpr std::size_t most = 24;  // number of steps of the path, unless all are wanted
  std::printf("%s: the norm of its gradient is %.3e\n", flow.name.c_str(), flow.norm);
  if (flow.uses.empty()) std::printf("the loss does not depend on it\n");
  if (flow.uses.size() > 1) {
    std::printf("the calls that read it, and the norm of what flows back through each:\n");
    for (const FlowValue& use : flow.uses) print(use, flow.norm);
  }
  if (!flow.path.empty()) std::printf("the way to the loss, and the norm of the gradient of each value:\n");
  for (std::size_t i = 0; i < flow.path.size(); ++i) {
    if (!all && flow.path.size() > most && i == most / 2) {
      std::printf("  … %zu more (--all)\n", flow.path.size() - most);
      i = flow.path.size() - most / 2;
    }
    print(flow.path[i], 0);
  }
  if (!flow.cuts.empty()) std::printf("what cuts it:\n");
  for (const FlowCut& cut : flow.cuts)
    std::printf("  %s: %s%s%s\n", cut.node.c_str(), cut.why.c_str(), cut.site.empty() ? "" : "  at ", cut.site.c_str());
}

void run(const ExplainArguments& arguments) {
  const RecordedPlay play = play_of(arguments.play);
  const NamedVars parameters = parameters_of(play.tape);
  if (arguments.weight.empty()) {
    const std::vector<std::string> without = as_wrong_input([&] { return parameters_without_gradient(play); });
    std::printf("%zu of %zu weights have no gradient\n", without.size(), parameters.size());
    for (const std::string& name : without) std::printf("  %s\n", name.c_str());
    const std::vector<std::string> zero = parameters_with_zero_gradient(play);
    std::printf("%zu have a gradient that is 0 everywhere\n", zero.size());
    for (const std::string& name : zero) std::printf("  %s\n", name.c_str());
    return;
  }
  const Var* weight = parameters.find(arguments.weight);
  if (weight == nullptr)
    throw WrongInput("the tape has no weight '" + arguments.weight + "'" +
                     did_you_mean(arguments.weight, parameters.names()));
  print(as_wrong_input([&] { return explain_gradient(play, *weight); }), arguments.all);
}

}  // namespace

void add_explain(CLI::App& program) {
  const auto [command, arguments] =
      add_command<ExplainArguments>(program, "explain", "Show how the gradient of the loss reaches a weight", run);
  add_play(command, arguments.play);
  add_option(command, "--weight", arguments.weight,
             "The weight (default: list the weights without gradient, or with one of zeros)");
  command.add_flag("--all", arguments.all, "Print every step of the way to the loss");
}

}  // namespace xtape::cli
