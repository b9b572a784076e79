/// Updates of weights with gradients that are summed over shards of a batch, by one process or several. The bits do not
/// depend on the number of processes. Trainer and custom training loops can use these updates.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "xtape/communicator.hpp"
#include "xtape/model.hpp"
#include "xtape/optim.hpp"
#include "xtape/owner.hpp"
#include "xtape/precision.hpp"

namespace xtape {

/// Makes the part of its host's cores that belongs to this rank the default number of threads of this process, for all
/// that it does, such as loading a model. All ranks must call this function together, before other threads use xtape.
void share_cores(const std::shared_ptr<Communicator>& communicator);

struct DistributedOptions {
  OptimizerOptions optimizer = {};                  ///< The optimizer of weights that no group matches.
  std::int64_t shards = 1;                          ///< The number of parts that the batch of an update is split into.
  std::int64_t micro_batches = 1;                   ///< The most plays per shard. Their gradients are added in order.
  std::shared_ptr<Communicator> communicator = {};  ///< Null: only this process.
  int threads = 0;                                  ///< As in PlayerOptions. Ranks share the cores of a host.
  bool overlap = true;  ///< Whether gradients are sent to other hosts during a play instead of after it.
  std::vector<OptimizerGroup> groups = {};
  Bits bits = Bits::usual;  ///< Whether muon's products have the same bits on every processor.
};

/// Gradients that a rank sends together.
struct SentGradients {
  double after = 1;  ///< The part of the time of a play after which they are complete.
  std::int64_t bytes = 0;
};

/// Gaussian noise that an update adds once to the sums of gradients, for any number of ranks. (seed, weight, element,
/// update) determine the noise of each element.
struct GradientNoise {
  double deviation = 0;  ///< The standard deviation for each element of the sums. 0: no noise.
  std::uint64_t seed = 0;
  std::uint64_t update = 0;
};

/// An optimiser for gradients that are computed in shards. Each rank computes a contiguous range of shards. A binary
/// tree whose shape depends only on the number of shards gives the sum over all shards. Each rank then updates its
/// share of the weights, and holds only the moments of this share (ZeRO stage 1: Rajbhandari et al., 2020). During a
/// play, gradients are sent to other hosts as soon as they are final. Ranks of one host share the memory of the
/// weights, and read each other's gradients in place.
///
/// All ranks must make the same calls in the same order, except that each rank plays its own shards. If a call throws
/// CommunicationError on one rank, the others cannot continue.
class DistributedOptimizer {
 public:
  /// Trains the weights of `model` whose names are in `trained`. All ranks take the values of rank 0. The constructor
  /// moves the weights to memory that the ranks of a host share, so tapes must be recorded afterwards. Throws Error if
  /// an option is out of range or there are more ranks than shards. Errors of Optimizer propagate.
  DistributedOptimizer(Model& model, const std::vector<std::string>& trained, const DistributedOptions& options);

  const Store& trained() const;
  /// The shards that this rank computes: [first_shard(), last_shard()).
  std::int64_t first_shard() const;
  std::int64_t last_shard() const;
  /// Reserves memory for gradients. `gradients` come from any recording, with one var per trained weight, or an empty
  /// var if a weight has no gradient. The order of their nodes determines the order of sending. Call this function
  /// before the first update.
  void arrange(const Vars& gradients);

  /// Begins an update in which only the first `shards` shards have rows.
  void begin(std::int64_t shards);
  /// Prepares a play of one micro-batch of the next shard of this rank. `gradients` are outputs of the player, which
  /// will write them to the memory of the sums. `ends_shard` is true for the last micro-batch of the shard. Pass the
  /// result to Player::play, and call `add` after the play:
  ///
  ///   player.play(feeds, step, optimizer.expect(player, gradients));
  ///   optimizer.add();
  std::function<void(std::int64_t)> expect(Player& player, const Vars& gradients, bool ends_shard = true);
  /// Adds the gradients of the play to the sums.
  void add();
  /// Sums numbers over all shards, in the order of the binary tree. Call this function after the plays. `values` are
  /// the numbers of this rank's shards, one shard after the other. A rank without shards passes the numbers of one
  /// shard, which do not count.
  std::vector<double> sum(const std::vector<double>& values);
  /// Updates the weights like Optimizer::update. Call this function after `sum`, unless the update is abandoned. Errors
  /// of Optimizer::update occur on all ranks. The noise is added before any other operation on the sums.
  double update(double rate, double scale = 1, double clip = 0, const GradientNoise& noise = {});
  /// Returns the seconds spent waiting for other ranks since the last call.
  double take_waited();
  /// Returns the gradients that ranks send together, and when they are complete. They belong to the player of the last
  /// play, which must exist and have PlayerOptions::profile.
  std::vector<SentGradients> sendings() const;

  /// The bytes of gradients: those of a play, partial sums over shards, and data from other ranks.
  std::size_t gradient_bytes() const;
  std::size_t moment_bytes() const;  ///< The bytes of the moments on this rank.
  /// The part of the gradient and moment bytes that is reserved, but not written yet. This part takes no memory.
  std::size_t absent_bytes() const;
  /// The state of the optimiser, like Optimizer::state. With several ranks, it contains only "updates".
  const Store& state() const;
  /// Writes the state of all ranks to a safetensors file, on rank 0. Throws FileError on rank 0.
  void save(const std::string& path);
  /// Throws FileError if the file is damaged, or does not contain a state for these weights and this optimiser.
  void check(const std::string& path) const;
  /// Reads the state. Errors are those of `check`.
  void load(const std::string& path);

 private:
  struct Data;
  Owner<Data> data_;
};

}  // namespace xtape
