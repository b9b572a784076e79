// The main benchmark: whole training steps (forward, backward, gradients clipped to norm 1, AdamW) of models on random
// tokens, and generation of one token at a time. Prints one JSON line per workload, with the same keys as the benchmark
// of other frameworks (see scripts/compare.sh).
//
// usage: workloads [--only NAME[,NAME]] [--steps N] [--threads N] [--precision NAME] [--bits NAME] [--weights DTYPE]
//                  [--profile]
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <sstream>

#include "bench.hpp"
#include "decode.hpp"
#include "workload.hpp"
#include "xtape/optim.hpp"
#include "xtape/xtape.hpp"

namespace {

using namespace xtape;
using bench::all_workloads;
using bench::make_model;
using bench::peak_mebibytes;
using bench::random_tokens;
using bench::seconds;
using bench::Workload;
using bench::workload_named;

constexpr std::size_t slowest_shown = 16;

struct Words {
  std::vector<std::string> only;
  int steps = 9;
  int threads = 2;
  bool profile = false;
  Precision precision = Precision::float32;
  Bits bits = Bits::usual;
  Dtype weights = Dtype::float32;  // of generation
};

/// Prints the time of a play to stderr, as the mean of `plays` plays: by op, and of the slowest groups of equal steps.
void print_profile(const Player& player, int plays) {
  struct Row {
    double seconds = 0, flops = 0;
    int steps = 0;
  };
  std::map<std::string, Row> by_op, by_type;
  const std::vector<double> times = player.seconds();
  for (std::size_t i = 0; i < times.size(); ++i) {
    const Plan::Step& step = player.plan().steps[i];
    for (Row* row : {&by_op[step.op], &by_type[step.op + " -> " + step.outputs]}) {
      row->seconds += times[i] / plays;
      row->flops += step.flops;
      ++row->steps;
    }
  }
  const double total = std::accumulate(times.begin(), times.end(), 0.0) / plays;
  std::fprintf(stderr, "%9.3f ms in %zu steps\n", total * 1e3, times.size());
  for (const auto* table : {&by_op, &by_type}) {
    std::vector<std::pair<std::string, Row>> rows(table->begin(), table->end());
    std::sort(rows.begin(), rows.end(),
              [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
    if (table == &by_type && rows.size() > slowest_shown) rows.resize(slowest_shown);
    for (const auto& [name, row] : rows)
      std::fprintf(stderr, "%9.3f ms %5.1f %% %6.1f GFLOP/s %5d x %s\n", row.seconds * 1e3, 100 * row.seconds / total,
                   row.flops / row.seconds * 1e-9, row.steps, name.c_str());
  }
}

/// Generates one token at a time for one row, and in the same run measures the time to read the weights once.
void run_decoding(const Workload& w, const Words& words) {
  Model model = make_model(w);
  model.store_weights_as(words.weights);
  const bench::DecodeTimes times =
      bench::time_decoding(model, w.vocabulary, w.sizes.at("t"), std::int64_t{8} * words.steps, words.threads);
  std::printf(
      "{\"workload\": \"%s\", \"peer\": \"xtape\", \"ms\": %.3f, \"tokens_per_s\": %.1f, \"gflops\": 0.0, "
      "\"peak_mb\": %ld, \"loss\": 0.0, \"first_token_ms\": %.1f, \"read_weights_ms\": %.3f, \"ratio\": %.3f}\n",
      w.name.c_str(), times.token * 1e3, 1 / times.token, peak_mebibytes(), times.first_token * 1e3, times.read * 1e3,
      times.token / times.read);
  std::fflush(stdout);
}

void run(const Workload& w, const Words& words) {
  if (w.decodes) {
    run_decoding(w, words);
    return;
  }
  Model model = make_model(w);
  Tape tape(Mode::train);
  const NamedVars inputs = model.inputs(tape, "loss", w.sizes);
  const NamedVars results = model.record(tape, "loss", inputs);
  const Var loss = results[0].value / cast(results[1].value, Dtype::float32);
  Vars weights;
  for (const auto& weight : model.weights(tape)) weights.push_back(weight.value);
  const Vars gradients = grad(loss, weights, {.materialize_grads = true});
  Vars outputs = gradients;
  outputs.push_back(loss);
  PlayerOptions options;
  options.threads = words.threads;
  options.profile = words.profile;
  options.precision = words.precision;
  options.bits = words.bits;
  Player player(tape, outputs, options);

  Optimizer optimizer(model.weights(), bench::adamw(), words.threads);
  std::size_t planned = player.plan().peak_bytes();
  for (const Store::Entry& entry : optimizer.state()) planned += entry.value.bytes();

  std::mt19937_64 generator(0);
  std::vector<Array> fed;
  std::vector<Feed> feeds;
  for (const auto& input : inputs) fed.push_back(random_tokens(input.value.shape(), w.vocabulary, generator));
  for (std::size_t i = 0; i < inputs.size(); ++i) feeds.emplace_back(inputs[i].value, fed[i]);

  std::vector<double> times;
  std::vector<ArrayView> views;
  double last_loss = 0;
  for (int step = 0; step < words.steps + 2; ++step) {
    const double start = seconds();
    player.play(feeds, static_cast<std::uint64_t>(step));
    views.clear();
    for (const Var& gradient : gradients) views.push_back(player.view(gradient));
    optimizer.update(views, 1e-3, 1, 1.0);
    last_loss = player.scalar(loss);
    if (step >= 2) times.push_back(seconds() - start);
  }
  std::sort(times.begin(), times.end());
  const double time = times[times.size() / 2];
  const double count = static_cast<double>(inputs.at("targets").size(0) * inputs.at("targets").size(1));
  std::int64_t parameters = model.parameter_count();
  for (const std::string& table : w.tables) parameters -= model.weights().at(table).count();

  std::printf(
      "{\"workload\": \"%s\", \"peer\": \"xtape\", \"ms\": %.3f, \"tokens_per_s\": %.1f, \"gflops\": %.1f, "
      "\"peak_mb\": %ld, "
      "\"planned_peak_mb\": %.0f, \"loss\": %.4f}\n",
      w.name.c_str(), time * 1e3, count / time, 6 * static_cast<double>(parameters) * count / time / 1e9,
      peak_mebibytes(), static_cast<double>(planned) / (1 << 20), last_loss);
  std::fflush(stdout);
  if (words.profile) print_profile(player, words.steps + 2);
}

Words parse(int count, char** arguments) {
  Words words;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    const auto value = [&]() -> std::string {
      if (i + 1 >= count) throw Error(word + " needs a value");
      return arguments[++i];
    };
    if (word == "--only") {
      std::istringstream names(value());
      for (std::string name; std::getline(names, name, ',');) words.only.push_back(name);
    } else if (word == "--steps") {
      words.steps = std::max(1, std::atoi(value().c_str()));
    } else if (word == "--threads") {
      words.threads = std::max(1, std::atoi(value().c_str()));
    } else if (word == "--profile") {
      words.profile = true;
    } else if (word == "--precision") {
      words.precision = precision_named(value());
    } else if (word == "--bits") {
      words.bits = bits_named(value());
    } else if (word == "--weights") {
      words.weights = dtype_named(value());
    } else {
      throw Error(
          "usage: workloads [--only NAME[,NAME]] [--steps N] [--threads N] [--precision NAME] [--bits NAME] "
          "[--weights DTYPE] [--profile]");
    }
  }
  if (words.only.empty()) {
    for (const Workload& w : all_workloads()) words.only.push_back(w.name);
  }
  return words;
}

/// Runs a workload in a child process, so that the peak memory is that of the workload.
void run_apart(const Workload& w, const Words& words) {
  const pid_t child = fork();
  if (child < 0) throw Error("cannot start a process");
  if (child == 0) {
    try {
      run(w, words);
      _exit(0);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "workloads: %s: %s\n", w.name.c_str(), error.what());
      _exit(1);
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) throw Error(w.name + " failed");
}

}  // namespace

int main(int count, char** arguments) {
  try {
    const Words words = parse(count, arguments);
    for (const std::string& name : words.only) run_apart(workload_named(name), words);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "workloads: %s\n", error.what());
    return 1;
  }
}
