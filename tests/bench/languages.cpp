// Trains a GPT-2 of two layers on batches of 4 rows, so that languages.py can count what a step costs here and in
// Python.
//
// usage: languages STEPS TOKENS WIDTH
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "xtape/xtape.hpp"

namespace {

using namespace xtape;

double train(int steps, std::int64_t tokens, const std::string& width) {
  ModelOptions options;
  options.seed = 1;
  options.hyper = {{"vocab_size", "27"}, {"n_positions", std::to_string(tokens)},
                   {"n_embd", width},    {"n_layer", "2"},
                   {"n_head", "4"},      {"dropout_rate", "0"}};
  Model model = Model::load("gpt2", options);
  Tape tape(Mode::train);
  const NamedVars inputs = model.inputs(tape, "loss", {{"b", 4}, {"t", tokens}});
  const NamedVars results = model.record(tape, "loss", inputs);
  StepOptions with;
  with.clip = 1;
  Step step(results[0].value / cast(results[1].value, model.dtype()), model.weights(), AdamW{1e-2}, with);
  Array from(Dtype::int64, {4, tokens}), to(Dtype::int64, {4, tokens});
  double loss = 0;
  for (int i = 0; i < steps; ++i) {
    for (std::int64_t j = 0; j < 4 * tokens; ++j) {
      from.as<std::int64_t>()[j] = (j + i) % 27;
      to.as<std::int64_t>()[j] = (j + i + 1) % 27;
    }
    loss = step({{inputs.at("tokens"), from}, {inputs.at("targets"), to}});
  }
  return loss;
}

}  // namespace

int main(int count, char** words) {
  try {
    if (count != 4) throw xtape::Error("the usage is at the top of tests/bench/languages.cpp");
    std::printf("%.6f\n", train(std::atoi(words[1]), std::atoi(words[2]), words[3]));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "languages: %s\n", error.what());
    return 1;
  }
}
