// Per-example gradient norms and clipped gradients beside a plain training step (forward and gradient) of a workload.
// Prints the time of a play and the peak memory of its plan. On a busy machine, compare the
// processor times of one thread.
//
// usage: per_example [--only NAME] [--steps N] [--threads N] [--profile KIND]
#include "xtape/per_example.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <string>

#include "bench.hpp"
#include "training_step.hpp"
#include "xtape/xtape.hpp"

namespace {
using namespace xtape;

/// The batch of a workload as examples of one row each, and the loss of one.
struct Examples {
  explicit Examples(const bench::Workload& w) : model(bench::make_model(w)) {
    inputs = model.inputs(tape, "loss", w.sizes);
    for (const auto& input : inputs) batch.push_back(input.value);
    for (const auto& weight : model.weights(tape)) weights.push_back(weight.value);
    std::mt19937_64 generator(0);
    for (const auto& input : inputs) fed.push_back(bench::random_tokens(input.value.shape(), w.vocabulary, generator));
    loss = [this](const Vars& example) {
      NamedVars row;
      for (std::size_t i = 0; i < example.size(); ++i) row.add(inputs.begin()[i].name, expand_dims(example[i], 0));
      const NamedVars results = model.record(tape, "loss", row);
      return results[0].value / cast(results[1].value, Dtype::float32);
    };
  }

  Model model;
  Tape tape = Tape(Mode::train);
  NamedVars inputs;
  Vars batch, weights;
  std::vector<Array> fed;
  ExampleLoss loss;
};

Vars outputs_of(const std::string& kind, Examples& examples) {
  const auto both = [](const Vars& gradients, const Var& norms) {
    Vars all = gradients;
    all.push_back(norms);
    return all;
  };
  if (kind == "norms") return {per_example_norms(examples.loss, examples.weights, examples.batch).norms};
  if (kind == "clipped") {
    const ClippedGradients clipped = clipped_gradients(examples.loss, examples.weights, examples.batch, 1.0);
    return both(clipped.gradients, clipped.norms);
  }
  if (kind == "second") {  // the gradient of the weighted losses, by a second backward pass
    const PerExampleNorms found = per_example_norms(examples.loss, examples.weights, examples.batch);
    const Var factors = stop_gradient(1.0 / maximum(found.norms, 1.0));
    return both(grad(sum(factors * found.losses), examples.weights), found.norms);
  }
  if (kind == "batched")  // the mean loss of mapped examples: what the map alone costs
    return grad(sum(vmap([&](const Vars& example) { return Vars{examples.loss(example)}; }, examples.batch)[0]),
                examples.weights);
  throw Error("there is no kind '" + kind + "'");
}

void measure(const std::string& kind, const bench::Workload& w, int steps, int threads, bool profile) {
  PlayerOptions options;
  options.threads = threads;
  options.profile = profile;
  std::optional<bench::TrainingStep> plain;
  std::optional<Examples> examples;
  Vars outputs;
  std::vector<Feed> feeds;
  Tape tape;
  if (kind == "plain") {
    plain.emplace(w);
    tape = plain->tape;
    outputs = plain->outputs;
    feeds = plain->feeds();
  } else {
    examples.emplace(w);
    tape = examples->tape;
    outputs = outputs_of(kind, *examples);
    for (std::size_t i = 0; i < examples->batch.size(); ++i) feeds.emplace_back(examples->batch[i], examples->fed[i]);
  }
  Player player(tape, outputs, options);
  std::vector<double> times, of_processor;
  for (int step = 0; step < steps + 2; ++step) {
    const double start = bench::seconds();
    const std::clock_t busy = std::clock();
    player.play(feeds, static_cast<std::uint64_t>(step));
    if (step < 2) continue;
    times.push_back(bench::seconds() - start);
    of_processor.push_back(static_cast<double>(std::clock() - busy) / CLOCKS_PER_SEC);
  }
  for (std::vector<double>* each : {&times, &of_processor}) std::sort(each->begin(), each->end());
  std::printf("%-12s %-10s %9.1f ms (processor %9.1f ms), plan %5.0f MiB, process %5ld MiB\n", w.name.c_str(),
              kind.c_str(), times[times.size() / 2] * 1e3, of_processor[times.size() / 2] * 1e3,
              static_cast<double>(player.plan().peak_bytes()) / (1 << 20), bench::peak_mebibytes());
  if (!profile) return;
  std::map<std::string, std::pair<double, int>> rows;
  for (std::size_t i = 0; i < player.seconds().size(); ++i) {
    const Plan::Step& step = player.plan().steps[i];
    auto& [seconds, count] = rows[step.op + " -> " + step.outputs];
    seconds += player.seconds()[i] / (steps + 2);
    ++count;
  }
  std::vector<std::pair<std::string, std::pair<double, int>>> sorted(rows.begin(), rows.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  for (std::size_t i = 0; i < std::min<std::size_t>(sorted.size(), 30); ++i)
    std::printf("%9.3f ms %4d x %s\n", sorted[i].second.first * 1e3, sorted[i].second.second, sorted[i].first.c_str());
}
}  // namespace

int main(int count, char** arguments) {
  try {
    std::string only = "gpt-baby", kinds = "plain,norms,clipped,second";
    int steps = 5, threads = 2;
    bool profile = false;
    for (int i = 1; i < count; ++i) {
      const std::string word = arguments[i];
      if (word == "--profile")
        profile = true;
      else if (i + 1 == count)
        throw Error("usage: per_example [--only NAME] [--kinds NAME[,NAME]] [--steps N] [--threads N] [--profile]");
      else if (word == "--only")
        only = arguments[++i];
      else if (word == "--kinds")
        kinds = arguments[++i];
      else if (word == "--steps")
        steps = std::max(1, std::atoi(arguments[++i]));
      else if (word == "--threads")
        threads = std::max(1, std::atoi(arguments[++i]));
    }
    std::istringstream names(kinds);
    for (std::string kind; std::getline(names, kind, ',');)
      bench::apart([&] { measure(kind, bench::workload_named(only), steps, threads, profile); });
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "per_example: %s\n", error.what());
    return 1;
  }
}
