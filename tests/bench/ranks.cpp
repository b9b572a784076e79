// Training steps of the workloads on several ranks: each update's batch is cut into shards, which are summed by the
// fixed tree. Rank 0 prints one JSON line. scripts/ranks.py compares numbers of ranks, threads and programs with it.
//
// usage: [mpirun -n N] ranks WORKLOAD [--steps N] [--threads N] [--shards N] [--scale N] [--allreduce] [--no-overlap]
//   --scale N     the batch has N times as many rows
//   --allreduce   for comparison: one shard per rank, summed by MPI_Allreduce in an order that MPI chooses, and every
//                 rank updates all weights
//   --no-overlap  gradients are sent after the play, not while it goes on
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bench.hpp"
#include "workload.hpp"
#include "xtape/mpi.hpp"
#include "xtape/xtape.hpp"

namespace {

using namespace xtape;
using bench::seconds;

struct Words {
  std::string workload;
  int steps = 9, threads = 1;
  std::int64_t shards = 2, scale = 1;
  bool allreduce = false, overlap = true;
};

Words parse(int count, char** arguments) {
  Words words;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    const auto number = [&] { return i + 1 < count ? std::max(1, std::atoi(arguments[++i])) : 1; };
    if (word == "--steps")
      words.steps = number();
    else if (word == "--threads")
      words.threads = number();
    else if (word == "--shards")
      words.shards = number();
    else if (word == "--scale")
      words.scale = number();
    else if (word == "--allreduce")
      words.allreduce = true;
    else if (word == "--no-overlap")
      words.overlap = false;
    else
      words.workload = word;
  }
  return words;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// The recorded training step of one shard.
struct Shard {
  Tape tape{Mode::train};
  NamedVars inputs;
  Var loss, count;
  Vars gradients;
  std::vector<Array> fed;

  Shard(const Model& model, const bench::Workload& workload, std::int64_t rows) {
    NamedSizes sizes = workload.sizes;
    sizes.set("b", rows);
    inputs = model.inputs(tape, "loss", sizes);
    const NamedVars results = model.record(tape, "loss", inputs);
    loss = results[0].value;
    count = results[1].value;
    Vars weights;
    for (const auto& weight : model.weights(tape)) weights.push_back(weight.value);
    gradients = grad(loss, weights, {.materialize_grads = true});
    std::mt19937_64 generator(0);
    for (const auto& input : inputs)
      fed.push_back(bench::random_tokens(input.value.shape(), workload.vocabulary, generator));
  }
  Vars outputs() const {
    Vars all = gradients;
    all.insert(all.end(), {loss, count});
    return all;
  }
  std::vector<Feed> feeds() const {
    std::vector<Feed> feeds;
    for (std::size_t i = 0; i < inputs.size(); ++i) feeds.emplace_back(inputs[i].value, fed[i]);
    return feeds;
  }
};

struct Times {
  std::vector<double> whole, plays, waits;
  double loss = 0;
};

Times by_tree(Model& model, const bench::Workload& workload, const Words& words,
              const std::shared_ptr<Communicator>& communicator) {
  DistributedOptions options;
  options.optimizer = bench::adamw();
  options.shards = words.shards;
  options.communicator = communicator;
  options.threads = words.threads;
  options.overlap = words.overlap;
  DistributedOptimizer optimizer(model, model.weights().names(), options);
  const Shard shard(model, workload, workload.sizes.at("b") * words.scale / words.shards);
  PlayerOptions playing;
  playing.threads = words.threads;
  Player player(shard.tape, shard.outputs(), playing);
  optimizer.arrange(shard.gradients);
  Times times;
  for (int step = 0; step < words.steps + 2; ++step) {
    communicator->barrier();
    optimizer.take_waited();
    const double start = seconds();
    optimizer.begin(words.shards);
    std::vector<double> values;
    for (std::int64_t i = optimizer.first_shard(); i < optimizer.last_shard(); ++i) {
      player.play(shard.feeds(), static_cast<std::uint64_t>(step * words.shards + i),
                  optimizer.expect(player, shard.gradients));
      optimizer.add();
      values.insert(values.end(), {player.scalar(shard.loss), player.scalar(shard.count)});
    }
    const double played = seconds();
    const std::vector<double> sums = optimizer.sum(values);
    optimizer.update(1e-3, 1 / sums[1], 1);
    if (step < 2) continue;
    times.whole.push_back(seconds() - start);
    times.plays.push_back(played - start);
    times.waits.push_back(optimizer.take_waited());
    times.loss = sums[0] / sums[1];
  }
  return times;
}

Times by_allreduce(Model& model, const bench::Workload& workload, const Words& words,
                   const std::shared_ptr<Communicator>& communicator) {
  const Shard shard(model, workload, workload.sizes.at("b") * words.scale / communicator->size());
  PlayerOptions playing;
  playing.threads = words.threads;
  Player player(shard.tape, shard.outputs(), playing);
  Optimizer optimizer(model.weights(), bench::adamw(), words.threads);
  std::int64_t total = 0;
  const auto rounded = [](const Array& array) { return (array.count() + 15) / 16 * 16; };
  for (const Store::Entry& weight : model.weights()) total += rounded(weight.value);
  Array flat(Dtype::float32, {total});
  std::vector<Array> parts;
  std::vector<ArrayView> views;
  const std::shared_ptr<std::byte> memory(static_cast<std::byte*>(flat.data()), [](std::byte*) {});
  std::int64_t at = 0;
  for (const Store::Entry& weight : model.weights()) {
    parts.emplace_back(std::shared_ptr<std::byte>(memory, memory.get() + at * 4), Dtype::float32, weight.value.shape());
    views.emplace_back(parts.back());
    at += rounded(weight.value);
  }
  const std::vector<bool> moved = player.move_outputs(shard.gradients, parts);
  Times times;
  for (int step = 0; step < words.steps + 2; ++step) {
    communicator->barrier();
    const double start = seconds();
    player.play(shard.feeds(), static_cast<std::uint64_t>(step * communicator->size() + communicator->rank()));
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (!moved[i]) parts[i].assign(player.view(shard.gradients[i]));
    const double played = seconds();
    double sums[] = {player.scalar(shard.loss), player.scalar(shard.count)};
    MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, flat.data(), static_cast<int>(total), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    const double reduced = seconds();
    optimizer.update(views, 1e-3, 1 / sums[1], 1);
    if (step < 2) continue;
    times.whole.push_back(seconds() - start);
    times.plays.push_back(played - start);
    times.waits.push_back(reduced - played);
    times.loss = sums[0] / sums[1];
  }
  return times;
}

void run(const Words& words) {
  const std::shared_ptr<Communicator> communicator =
      mpi_communicator({600, std::getenv("XTAPE_SHARED_MEMORY") == nullptr ||
                                 std::strcmp(std::getenv("XTAPE_SHARED_MEMORY"), "0") != 0});
  const bench::Workload workload = bench::workload_named(words.workload);
  Model model = bench::make_model(workload);
  const Times times = words.allreduce ? by_allreduce(model, workload, words, communicator)
                                      : by_tree(model, workload, words, communicator);
  if (communicator->rank() != 0) return;
  std::printf(
      "{\"workload\": \"%s\", \"ranks\": %d, \"threads\": %d, \"shards\": %lld, \"ms\": %.3f, \"play_ms\": %.3f, "
      "\"wait_ms\": %.3f, \"peak_mb\": %ld, \"loss\": %.9g}\n",
      words.workload.c_str(), communicator->size(), words.threads,
      static_cast<long long>(words.allreduce ? communicator->size() : words.shards), median(times.whole) * 1e3,
      median(times.plays) * 1e3, median(times.waits) * 1e3, bench::peak_mebibytes(), times.loss);
}

}  // namespace

int main(int count, char** arguments) try {
  run(parse(count, arguments));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "ranks: %s\n", error.what());
  xtape::mpi_abort(1);
}
