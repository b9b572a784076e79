// Trains a small GPT-2 (models/gpt2.json) on the characters of a text with a custom training loop, on any number of
// processes. The loss and the weights are bitwise the same for 1 to 4 ranks.
// usage: mpirun -n 2 train_distributed [TEXT [STEPS]]
#include <cstdlib>
#include <iostream>
#include <string>
#include <xtape/mpi.hpp>
#include <xtape/xtape.hpp>

using namespace xtape;

namespace {

constexpr std::int64_t shards = 4;
constexpr std::int64_t rows = 3;  // rows per shard

std::string text_of(int argc, char** argv) {
  if (argc > 1) return read_text(argv[1]);
  std::string text;
  for (int i = 0; i < 100; ++i) text += "Peter Piper picked a peck of pickled peppers.\n";
  return text;
}

Model small_gpt2(const CharacterTokenizer& tokenizer, std::int64_t block_size) {
  ModelOptions options;
  options.seed = 1;
  options.hyper = {{"vocab_size", std::to_string(tokenizer.size())},
                   {"n_positions", std::to_string(block_size)},
                   {"n_embd", "64"},
                   {"n_layer", "2"},
                   {"n_head", "4"}};
  return Model::load("gpt2", options);
}

/// Returns the rows of one shard in an array of a batch.
ArrayView shard_of(const Array& array, std::int64_t shard) {
  Layout layout = Layout::dense({rows, array.shape()[1]});
  layout.offset = shard * rows * array.shape()[1];
  return {array.data(), array.dtype(), layout};
}

}  // namespace

int main(int argc, char** argv) try {
  const std::shared_ptr<Communicator> ranks = mpi_communicator();
  share_cores(ranks);
  const int steps = argc > 2 ? std::atoi(argv[2]) : 100;
  if (argc > 3 || steps < 1) throw Error("usage: train_distributed [TEXT [STEPS]]");
  const TextSplit split = split_text(text_of(argc, argv), 0.9);
  const CharacterTokenizer tokenizer(split.training + split.validation);
  TextBatchesOptions sizes;
  sizes.rows = shards * rows;
  const TextBatches batches(tokenizer.encode(split.training), tokenizer.encode(split.validation), sizes);

  Model model = small_gpt2(tokenizer, sizes.block_size);
  DistributedOptions options;  // AdamW
  options.shards = shards;
  options.communicator = ranks;
  DistributedOptimizer optimizer(model, model.weights().names(), options);  // before anything is recorded

  Tape tape(Mode::train);
  const NamedVars inputs = model.inputs(tape, "loss", {{"b", rows}, {"t", sizes.block_size}});
  const NamedVars results = model.record(tape, "loss", inputs);  // a sum of losses, and the number of targets
  Vars weights;
  for (const auto& [name, weight] : model.weights(tape)) weights.push_back(weight);
  const Vars gradients = grad(results[0].value, weights);
  Vars outputs = gradients;
  for (const auto& [name, result] : results) outputs.push_back(result);
  Player player(tape, outputs);
  optimizer.arrange(gradients);

  double loss = 0;
  BatchArrays batch = batches.blank();
  for (int i = 0; i < steps; ++i) {
    batches.training(static_cast<std::uint64_t>(i), batch);
    optimizer.begin(shards);
    std::vector<double> sums;  // sums of this rank's shards
    for (std::int64_t shard = optimizer.first_shard(); shard < optimizer.last_shard(); ++shard) {
      const auto random_step = static_cast<std::uint64_t>(i * shards + shard);  // each shard has its own dropout
      player.play({{inputs.at("tokens"), shard_of(batch.at("tokens"), shard)},
                   {inputs.at("targets"), shard_of(batch.at("targets"), shard)}},
                  random_step, optimizer.expect(player, gradients));  // sends gradients during the play
      optimizer.add();
      sums.insert(sums.end(), {player.scalar(results[0].value), player.scalar(results[1].value)});
    }
    const std::vector<double> totals = optimizer.sum(sums);  // sums over all ranks
    loss = totals[0] / totals[1];
    optimizer.update(3e-3, 1 / totals[1], 1);  // learning rate 3e-3, the mean of the losses, clipped to a norm of 1
    if (ranks->rank() == 0 && i % 20 == 0) std::cout << "step " << i << ": loss " << loss << std::endl;
  }
  if (ranks->rank() == 0) std::cout << "loss " << loss << " on " << ranks->size() << " ranks" << std::endl;
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  mpi_abort(1);
}
