// The time per node of recording, planning and the first play: on tapes of many small ops, and of planning on the
// training steps of workloads.
//
// usage: planning [NODES|WORKLOAD…]   (default: 10000, 100000 and 1000000 nodes)
#include <sys/resource.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench.hpp"
#include "training_step.hpp"
#include "xtape/player.hpp"

using namespace xtape;

namespace {
double peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

/// Layers of a residual network, with products, elementwise ops, reductions and views, and the gradient by its weight.
Vars recorded(Tape& tape, std::size_t nodes) {
  Array values(Dtype::float32, {4, 4});
  std::fill_n(values.as<float>(), values.count(), 0.1f);
  const Var w = tape.parameter("w", values);
  Var x = tape.parameter("x", Array(values));
  while (tape.size() * 4 < nodes) {
    const Var y = transpose(tanh(einsum("ij,jk->ik", x, w) + 0.5));
    x = x + y * sigmoid(x) - mean(y, {1}, true);
  }
  const Var loss = sum(x);
  return {loss, grad(loss, {w})[0]};
}

void measure(std::size_t nodes) {
  const double before = peak_bytes(), start = bench::seconds();
  Tape tape;
  const Vars outputs = recorded(tape, nodes);
  const double after = bench::seconds(), held = peak_bytes();
  PlayerOptions options;
  options.threads = 1;
  Player player(tape, outputs, options);
  const double planned = bench::seconds(), peak = peak_bytes();
  player.play();
  const double played = bench::seconds();
  const double count = static_cast<double>(tape.size());
  std::printf(
      "%8zu nodes: recording %.2f us and %.2f KiB a node, planning %.2f us and %.2f KiB, first play %.2f us; %zu steps\n",
      tape.size(), (after - start) / count * 1e6, (held - before) / count / 1024, (planned - after) / count * 1e6,
      (peak - held) / count / 1024, (played - planned) / count * 1e6, player.plan().steps.size());
  std::fflush(stdout);
}
/// Prints the least of five times: a plan is made again for other sizes of a batch.
void measure(const bench::Workload& workload) {
  const bench::TrainingStep step(workload);
  double least = 1e300;
  std::size_t steps = 0;
  for (int i = 0; i < 5; ++i) {
    const double start = bench::seconds();
    const Player player(step.tape, step.outputs);
    least = std::min(least, bench::seconds() - start);
    steps = player.plan().steps.size();
  }
  std::printf("%s, %zu nodes: planning %.1f ms, %.2f us a node; %zu steps\n", workload.name.c_str(), step.tape.size(),
              least * 1e3, least / static_cast<double>(step.tape.size()) * 1e6, steps);
  std::fflush(stdout);
}
}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty()) words = {"10000", "100000", "1000000"};
  for (const std::string& word : words)
    if (std::isdigit(static_cast<unsigned char>(word[0])) != 0)
      measure(std::strtoull(word.c_str(), nullptr, 10));
    else
      measure(bench::workload_named(word));
}
