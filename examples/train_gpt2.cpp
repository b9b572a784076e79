// Trains a small GPT-2 (models/gpt2.json) on the characters of a text, with a custom training loop instead of Trainer,
// then generates text from a prompt.
// usage: train_gpt2 [TEXT [STEPS]]
#include <cstdlib>
#include <iostream>
#include <string>
#include <xtape/xtape.hpp>

using namespace xtape;

namespace {

const std::string rhyme =
    "One, two, buckle my shoe; three, four, knock at the door; five, six, pick up sticks; seven, eight, lay them "
    "straight; nine, ten, a big fat hen.\n";

std::string text_of(int argc, char** argv) {
  if (argc > 1) return read_text(argv[1]);
  std::string text;
  for (int i = 0; i < 20; ++i) text += rhyme;
  return text;
}

Model small_gpt2(const CharacterTokenizer& tokenizer, std::int64_t block_size) {
  ModelOptions options;
  options.seed = 1;
  options.hyper = {{"vocab_size", std::to_string(tokenizer.size())},
                   {"n_positions", std::to_string(block_size)},
                   {"n_embd", "64"},
                   {"n_layer", "2"},
                   {"n_head", "4"},
                   {"dropout_rate", "0"}};
  return Model::load("gpt2", options);
}

}  // namespace

int main(int argc, char** argv) try {
  const int steps = argc > 2 ? std::atoi(argv[2]) : 200;
  if (argc > 3 || steps < 1) throw Error("usage: train_gpt2 [TEXT [STEPS]]");
  const std::string text = text_of(argc, argv);
  const TextSplit split = split_text(text, 0.9);
  const CharacterTokenizer tokenizer(text);
  TextBatchesOptions sizes;
  sizes.rows = 12;
  const TextBatches batches(tokenizer.encode(split.training), tokenizer.encode(split.validation), sizes);

  Model model = small_gpt2(tokenizer, sizes.block_size);
  Tape tape(Mode::train);
  const NamedVars inputs = model.inputs(tape, "loss", {{"b", sizes.rows}, {"t", sizes.block_size}});
  const NamedVars results = model.record(tape, "loss", inputs);  // the sum of the losses, and the number of targets
  StepOptions options;
  options.clip = 1;  // the norm of the gradients
  Step step(results[0].value / cast(results[1].value, model.dtype()), model.weights(), AdamW{3e-3}, options);
  BatchArrays batch = batches.blank();
  for (int i = 0; i < steps; ++i) {
    batches.training(static_cast<std::uint64_t>(i), batch);
    const double loss = step({{inputs.at("tokens"), batch.at("tokens")}, {inputs.at("targets"), batch.at("targets")}});
    if (i % 20 == 0) std::cout << "step " << i << ": loss " << loss << std::endl;
  }
  std::cout << "held-out loss " << evaluate(model, batches).loss << '\n';

  GenerateOptions generation;
  generation.tokens = 120;
  generation.context = sizes.block_size;
  generation.sampling.temperature = 0.5;
  const Tokens tokens = tokenizer.encode(text), prompt(tokens.begin(), tokens.begin() + 8);
  std::cout << tokenizer.decode(prompt) << tokenizer.decode(generate(model, prompt, generation)) << '\n';
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
