/// Updates of weights by gradients that are summed over shards of a batch, by one process or several, with the same
/// bits for any number of processes. Trainer uses it; it also serves training loops of your own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "xtape/communicator.hpp"
#include "xtape/model.hpp"
#include "xtape/optim.hpp"
#include "xtape/owner.hpp"

namespace xtape {

struct DistributedOptions {
  OptimizerOptions optimizer;                  ///< For weights that no group matches.
  std::int64_t shards = 1;                     ///< Into how many parts the batch of an update is cut.
  std::int64_t micro_batches = 1;              ///< Plays per shard, at most; their gradients are added in order.
  std::shared_ptr<Communicator> communicator;  ///< Null: this process alone.
  int threads = 0;                             ///< 0: omp_get_max_threads().
  bool overlap = true;  ///< False: gradients are sent to other hosts after a play, not during it.
  std::vector<OptimizerGroup> groups = {};
};

/// Gaussian noise that an update adds to the sums of gradients, once, whatever the number of ranks: each element has
/// its own by (seed, weight, element, update).
struct GradientNoise {
  double deviation = 0;  ///< Standard deviation for each element of the sums; 0: no noise.
  std::uint64_t seed = 0;
  std::uint64_t update = 0;
};

/// An optimiser for gradients that are computed in shards. Each rank computes a contiguous range of them; the sum over
/// all is that of one binary tree, whose shape depends on the number of shards alone. Each rank then updates its share
/// of the weights, and holds the moments of only these (ZeRO stage 1: Rajbhandari et al., 2020). While a play goes on,
/// gradients are sent to other hosts as soon as they are final. Ranks of one host share the memory of the weights, and
/// read each other's gradients in place.
///
/// All ranks make the same calls in the same order, except that each plays its own shards. If a call throws
/// CommunicationError on one rank, the others cannot go on.
class DistributedOptimizer {
 public:
  /// Trains the weights of `model` named `trained`, which take the values that they have on rank 0, and moves them to
  /// memory that the ranks of a host share: tapes must be recorded afterwards. Throws Error if an option is out of
  /// range, if there are more ranks than shards, or as Optimizer does.
  DistributedOptimizer(Model& model, const std::vector<std::string>& trained, const DistributedOptions& options);

  const Store& trained() const;
  /// The shards that this rank computes: [first_shard(), last_shard()).
  std::int64_t first_shard() const;
  std::int64_t last_shard() const;
  /// Reserves memory for gradients. `gradients`, one var per trained weight, empty if there is none, are those of any
  /// recording: the order of their nodes is the order of sending. To be called before the first update.
  void arrange(const Vars& gradients);

  /// Begins an update of which only the first `shards` shards have rows.
  void begin(std::int64_t shards);
  /// Plays one micro-batch of the next own shard, of which `gradients` are outputs. `ends_shard`: it is the shard's
  /// last.
  void play(Player& player, const Vars& gradients, const std::vector<Feed>& feeds, std::uint64_t step,
            bool ends_shard = true);
  /// After the plays: the sums over all shards, by the tree, of numbers that each shard has: `values` are those of this
  /// rank's shards, one shard after the other; a rank without shards gives those of one, which do not count.
  std::vector<double> sum(const std::vector<double>& values);
  /// Then, unless the update is given up: updates the weights, as Optimizer::update does. Throws as it does, on all
  /// ranks. The noise is added before anything else is done with the sums.
  double update(double rate, double scale = 1, double clip = 0, const GradientNoise& noise = {});
  /// Seconds spent waiting for other ranks since the last call.
  double take_waited();

  /// The bytes that gradients take: those of a play, partial sums over shards, and what other ranks send.
  std::size_t gradient_bytes() const;
  std::size_t moment_bytes() const;  ///< The bytes of this rank.
  /// The part of both that takes no memory yet, because nothing was written there.
  std::size_t absent_bytes() const;
  /// The state of the optimiser, as of Optimizer::state; with several ranks, only "updates".
  const Store& state() const;
  /// Writes the state of all ranks to a safetensors file, on rank 0. Throws FileError there.
  void save(const std::string& path);
  /// Throws FileError unless the file has a state for these weights and this optimiser, undamaged.
  void check(const std::string& path) const;
  /// Reads the state. Throws as `check`.
  void load(const std::string& path);

 private:
  struct Data;
  Owner<Data> data_;
};

}  // namespace xtape
