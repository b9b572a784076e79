// Trains a small GPT-2 (models/gpt2.json) on the characters of a text, with a custom training loop instead of Trainer,
// then generates text from a prompt.
// usage: train_gpt2 [TEXT [STEPS]]
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

/// The training step on a tape: the mean loss, and its gradient with respect to each weight.
struct TrainingStep {
  Tape tape{Mode::train};
  NamedVars inputs;
  Var loss;
  Vars gradients;

  TrainingStep(const Model& model, const TextBatchesOptions& sizes)
      : inputs(model.inputs(tape, "loss", {{"b", sizes.rows}, {"t", sizes.block_size}})) {
    const NamedVars results = model.record(tape, "loss", inputs);
    loss = results[0].value / cast(results[1].value, model.dtype());
    Vars weights;
    for (const auto& [name, weight] : model.weights(tape)) weights.push_back(weight);
    gradients = grad(loss, weights);
  }
  Vars outputs() const {
    Vars all = gradients;
    all.push_back(loss);
    return all;
  }
};

}  // namespace

int main(int argc, char** argv) try {
  const std::string text = text_of(argc, argv);
  const int steps = argc > 2 ? std::stoi(argv[2]) : 200;
  const TextSplit split = split_text(text, 0.9);
  const CharacterTokenizer tokenizer(text);
  TextBatchesOptions sizes;
  sizes.rows = 12;
  const TextBatches batches(tokenizer.encode(split.training), tokenizer.encode(split.validation), sizes);

  Model model = small_gpt2(tokenizer, sizes.block_size);
  const TrainingStep step(model, sizes);
  Player player(step.tape, step.outputs());
  Optimizer optimizer(model.weights(), {});  // AdamW
  const double first_loss = sampled_loss(model, batches, 1);
  BatchArrays batch = batches.blank();
  std::vector<ArrayView> gradients;
  for (int i = 0; i < steps; ++i) {
    batches.training(static_cast<std::uint64_t>(i), batch);
    player.play({{step.inputs.at("tokens"), batch.at("tokens")}, {step.inputs.at("targets"), batch.at("targets")}},
                static_cast<std::uint64_t>(i));
    gradients.clear();
    for (const Var& gradient : step.gradients) gradients.push_back(player.view(gradient));
    optimizer.update(gradients, 3e-3, 1, 1);  // learning rate 3e-3, no scaling, clipped to a norm of 1
    if (i % 20 == 0) std::cout << "step " << i << " loss " << player.scalar(step.loss) << std::endl;
  }

  const double loss = evaluate(model, batches).loss;
  GenerateOptions options;
  options.tokens = 120;
  options.context = sizes.block_size;
  options.sampling.temperature = 0.5;
  const Tokens whole = tokenizer.encode(text);
  const Tokens prompt(whole.begin(), whole.begin() + 8);
  std::cout << "validation loss " << loss << "\n"
            << tokenizer.decode(prompt) << tokenizer.decode(generate(model, prompt, options)) << '\n';
  return loss < first_loss ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << error.what() << '\n';
  return 2;
}
