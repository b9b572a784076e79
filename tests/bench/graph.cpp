// A training step of a network of two graph convolutions: each node sums the features that its neighbours send, over
// their number. graph.py computes the same with PyTorch.
//
// usage: graph [NODES] [EDGES] [THREADS]
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "bench.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"
#include "xtape/ops/indexing.hpp"
#include "xtape/player.hpp"

using namespace xtape;

namespace {
Array ends(std::int64_t edges, std::int64_t nodes, std::int64_t factor) {
  Array array(Dtype::int64, {edges});
  for (std::int64_t i = 0; i < edges; ++i) array.as<std::int64_t>()[i] = i * factor % nodes;
  return array;
}
}  // namespace

int main(int argc, char** argv) {
  const std::int64_t nodes = argc > 1 ? std::atoll(argv[1]) : 10007, edges = argc > 2 ? std::atoll(argv[2]) : 100000;
  PlayerOptions options;
  options.threads = argc > 3 ? std::atoi(argv[3]) : 1;
  constexpr std::int64_t features = 64, hidden = 64, classes = 16;

  Tape tape;
  const Var senders = tape.constant(ends(edges, nodes, 7919)), receivers = tape.constant(ends(edges, nodes, 104729)),
            x = tape.input("x", {nodes, features}), labels = tape.constant(ends(nodes, classes, 31));
  Vars weights;
  for (const Shape& shape :
       {Shape{features, hidden}, Shape{features, hidden}, Shape{hidden, classes}, Shape{hidden, classes}})
    weights.push_back(tape.parameter("w" + std::to_string(weights.size()),
                                     bench::waves(shape, 0.71 + static_cast<double>(weights.size()))));
  const Var ones_of_edges = ones(tape, {edges, 1}, Dtype::float32);
  const Var counts = maximum(segment_sum(ones_of_edges, receivers, nodes), 1);
  const auto layer = [&](const Var& h, const Var& own, const Var& sent) {
    const Var messages = segment_sum(take(h, senders), receivers, nodes) / counts;
    return matmul(h, own) + matmul(messages, sent);
  };
  const Var logits = layer(relu(layer(x, weights[0], weights[1])), weights[2], weights[3]);
  const Var loss = cross_entropy_sum(logits, labels).first / static_cast<double>(nodes);
  Vars outputs{loss};
  const Vars gradients = grad(loss, weights);
  for (std::size_t i = 0; i < weights.size(); ++i) outputs.push_back(weights[i] - 0.1 * gradients[i]);

  Player player(tape, outputs, options);
  const Array fed = bench::waves({nodes, features}, 0.37);
  double best = 1e9;
  for (int round = 0; round < 20; ++round) {
    const double begin = bench::seconds();
    player.play({{x, fed}});
    best = std::min(best, bench::seconds() - begin);
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf("xtape, %lld nodes, %lld edges, %d threads: %.1f ms, %.0f MB; loss %.6f, a new weight %.6f\n",
              static_cast<long long>(nodes), static_cast<long long>(edges), options.threads, best * 1e3,
              static_cast<double>(usage.ru_maxrss) / 1024, player.view(loss).as<float>()[0],
              player.view(outputs[1]).as<float>()[7]);
}
