/// A training step of a workload, as a tape: for benchmarks that look at one play.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <vector>

#include "workload.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"

namespace bench {

/// The loss and the gradients by all weights, with random tokens for the inputs.
struct TrainingStep {
  explicit TrainingStep(const Workload& w) : model(make_model(w)) {
    inputs = model.inputs(tape, "loss", w.sizes);
    const xtape::NamedVars results = model.record(tape, "loss", inputs);
    const xtape::Var loss = results[0].value / cast(results[1].value, xtape::Dtype::float32);
    xtape::Vars weights;
    for (const auto& weight : model.weights(tape)) weights.push_back(weight.value);
    outputs = grad(loss, weights, {.materialize_grads = true});
    outputs.push_back(loss);
    std::mt19937_64 generator(0);
    for (const auto& input : inputs) fed.push_back(random_tokens(input.value.shape(), w.vocabulary, generator));
  }
  std::vector<xtape::Feed> feeds() const {
    std::vector<xtape::Feed> feeds;
    for (std::size_t i = 0; i < fed.size(); ++i) feeds.emplace_back(inputs[i].value, fed[i]);
    return feeds;
  }

  xtape::Model model;
  xtape::Tape tape = xtape::Tape(xtape::Mode::train);
  xtape::NamedVars inputs;
  xtape::Vars outputs;  ///< The gradients, then the loss.
  std::vector<xtape::Array> fed;
};

/// Calls `body` in a child process, so that the peak memory is that of this call. Throws Error if it fails.
template <class Body>
void apart(const Body& body) {
  const pid_t child = fork();
  if (child < 0) throw xtape::Error("cannot start a process");
  if (child == 0) {
    try {
      body();
      std::fflush(stdout);
      _exit(0);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      _exit(1);
    }
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (status != 0) throw xtape::Error("a child process failed");
}

}  // namespace bench
