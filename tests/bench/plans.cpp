// The plans of the workloads, and the digests of a play: what a change that must not change results is compared by
// (scripts/replay.py).
//
// usage: plans
#include <iostream>
#include <random>

#include "workload.hpp"
#include "xtape/decode.hpp"
#include "xtape/xtape.hpp"

using namespace xtape;

namespace {
struct Step {
  Tape tape;
  NamedVars inputs;
  Vars outputs;  // the gradients, then the loss
};

Step recorded(Model& model, const bench::Workload& w) {
  Step step{Tape(Mode::train), {}, {}};
  step.inputs = model.inputs(step.tape, "loss", w.sizes);
  const NamedVars results = model.record(step.tape, "loss", step.inputs);
  const Var loss = results[0].value / cast(results[1].value, Dtype::float32);
  Vars weights;
  for (const auto& weight : model.weights(step.tape)) weights.push_back(weight.value);
  step.outputs = grad(loss, weights, {.materialize_grads = true});
  step.outputs.push_back(loss);
  return step;
}

/// Prints the plan of a training step and the digests of its first play.
void print_step(const Step& step, const bench::Workload& w, const std::string& name, PlayerOptions options) {
  options.threads = 2;
  options.digests = true;
  Player player(step.tape, step.outputs, options);
  std::cout << w.name << ", " << name << "\n" << player.plan();
  std::mt19937_64 generator(0);
  std::vector<Array> fed;
  for (const auto& input : step.inputs)
    fed.push_back(bench::random_tokens(input.value.shape(), w.vocabulary, generator));
  std::vector<Feed> feeds;
  for (std::size_t i = 0; i < fed.size(); ++i) feeds.emplace_back(step.inputs[i].value, fed[i]);
  player.play(feeds, 1);
  for (const Digest& each : player.digests())
    std::cout << each.node << " " << each.output << " " << each.op << " " << each.type << " " << std::hex << each.hash
              << std::dec << " " << each.site << "\n";
}

void print_tokens(Model& model, const bench::Workload& w) {
  PredictorOptions options;
  options.limit = w.sizes.at("t");
  options.player.emplace();
  Predictor predictor(model, "logits", options);
  GenerateOptions generating;
  generating.context = w.sizes.at("t");
  generating.tokens = 40;
  std::cout << w.name << ":";
  generating.each = [](std::int32_t token) {
    std::cout << ' ' << token;
    return false;
  };
  generate(predictor, {1, 2, 3, 4, 5, 6, 7}, generating);
  std::cout << "\n";
}
}  // namespace

int main() {
  for (const bench::Workload& w : bench::all_workloads()) {
    Model model = bench::make_model(w);
    if (w.decodes) {
      print_tokens(model, w);
      continue;
    }
    const Step step = recorded(model, w);
    PlayerOptions each_call, halves, least;
    each_call.passes = Passes::unfused();
    halves.precision = Precision::bf16x3;
    print_step(step, w, "as it is", {});
    print_step(step, w, "without rules", each_call);
    print_step(step, w, "bf16x3", halves);
    if (w.name != "gpt-char") continue;  // the search for a budget takes long for large models
    least.memory = memory_curve(step.tape, step.outputs, least).back().bytes;
    print_step(step, w, "in the least memory", least);
  }
}
