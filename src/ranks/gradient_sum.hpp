/// The sum of gradients over the shards of an update, which several ranks compute together, and the weights that they
/// share.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "optim/optimizer.hpp"
#include "ranks/rank_group.hpp"
#include "ranks/shard_tree.hpp"
#include "xtape/distributed.hpp"
#include "xtape/model.hpp"
#include "xtape/player.hpp"

namespace xtape::ranks {

// The locations of the gradients of all weights in one block of memory, and the rank that sums each piece.

/// A range of bytes.
struct Bytes {
  std::size_t first = 0;
  std::size_t last = 0;
  std::size_t count() const { return last - first; }
};

/// Gradients in the order in which they are computed. They form buckets that are sent as soon as they are complete. The
/// pieces of a bucket are distributed to all ranks in order, so the pieces of each rank are adjacent in memory.
struct GradientLayout {
  struct Bucket {
    std::vector<std::size_t> weights;
    std::vector<std::size_t> pieces;  ///< Indices, in the order of memory.
    std::vector<Bytes> of_rank;       ///< The location of the pieces of each rank. Empty if the rank has no pieces.
  };
  std::vector<Piece> pieces;           ///< In the order of weights.
  std::vector<std::size_t> piece_at;   ///< Per piece: its first byte in the memory.
  std::vector<int> owner;              ///< Per piece: its rank.
  std::vector<std::size_t> weight_at;  ///< Per weight: its first byte, a multiple of 64.
  std::vector<Bucket> buckets;
  std::size_t bytes = 0;  ///< The bytes of all gradients.
};

/// `order` contains the indices of the weights in the order in which their gradients are computed.
GradientLayout layout_of(const Store& weights, const std::vector<Piece>& pieces, const std::vector<std::size_t>& order,
                         int ranks);
/// The ranks of a training, as its optimiser sees them.
class PieceOwners : public UpdateGroup {
 public:
  /// `owner` contains the rank of each piece.
  PieceOwners(RankGroup& group, const std::vector<int>& owner) : group_(group), owner_(owner) {}
  int size() const override { return group_.size(); }
  bool owns(std::size_t piece) const override { return owner_[piece] == group_.rank(); }
  void share(std::vector<double>& of_piece) override;
  std::vector<std::string> all_gather(const std::string& own) override { return group_.all_gather(own); }

 private:
  RankGroup& group_;
  std::vector<int> owner_;
};

// Noise on sums of gradients.

/// Adds the noise of the piece to `sums`, which holds the summed gradients of the elements of the piece.
void add_noise(const Store& weights, const Piece& piece, const GradientNoise& noise, void* sums);

class GradientSum {
 public:
  /// `gradients` are the gradients of any recording, by weight; see DistributedOptimizer::arrange. `sequence` is true
  /// if shards have several micro-batches. With `overlap`, buckets are completed during a play.
  GradientSum(const Store& weights, const std::vector<Piece>& pieces, const Vars& gradients, std::int64_t shards,
              bool sequence, bool overlap, int threads, RankGroup& group);
  const GradientLayout& layout() const { return layout_; }

  void begin(std::int64_t shards);
  /// See DistributedOptimizer::expect and add. Without other ranks, the first play of an update returns {}.
  std::function<void(std::int64_t step)> expect(Player& player, const Vars& gradients, bool ends_shard);
  void add();
  /// Returns whether all shards of this rank have been played.
  bool is_played() const { return next_shard_ >= present(group_.rank()).last && !in_sequence_; }
  /// Returns one byte per weight: 1 if this rank's plays had a gradient for the weight, and otherwise 0.
  const std::string& reached() const { return reached_; }
  /// Waits until this rank has received the gradients of all ranks. Call it after all ranks of this host have played.
  void receive();
  /// Returns the range of shards that `rank` computes in this update.
  Shards present(int rank) const;
  /// Sums piece `index`, which this rank owns, over all shards. Returns the address of the sum.
  void* sum(std::size_t index);
  /// See DistributedOptimizer::sendings.
  std::vector<SentGradients> sendings() const;
  std::size_t bytes() const;  ///< The total memory for gradients.
  /// The part of `bytes()` that is not resident yet, because nothing was written there.
  std::size_t absent_bytes() const;

 private:
  /// A subtree of the sum that a rank has computed.
  struct Term {
    Shards shards;
    const std::byte* memory;  ///< All gradients or, if another host sent them, only those that this rank owns.
    bool sent;
  };
  /// The play of a micro-batch, from expect() to add().
  struct Play {
    const Player* player = nullptr;
    Vars gradients;
    bool ends_shard = true;
    std::vector<bool> moved;               ///< Per weight: whether the player writes the gradient to the slot.
    std::vector<std::int64_t> final_step;  ///< Per bucket: the step of the plan after which its gradients are final.
    std::size_t complete = 0;              ///< The number of complete buckets.
    int slot = 0;
    int lefts = 0;        ///< The number of slots before the slot to which the gradients are added.
    bool is_top = false;  ///< Whether the sum is one of `tops_`.
  };
  std::byte* slot(int index) const { return slots_.get() + static_cast<std::size_t>(index) * layout_.bytes; }
  void move_gradients(Player& player);
  void complete_until(std::int64_t step);
  void complete(const GradientLayout::Bucket& bucket);
  void find_terms();
  /// Returns the address of a piece in a term.
  const std::byte* at(const Term& term, std::size_t index) const {
    return term.memory + (term.sent ? received_at_[index] : layout_.piece_at[index]);
  }
  template <class T>
  const T* add_terms(const Shards& node, std::size_t& term, std::size_t index, std::int64_t begin, std::int64_t count,
                     T* to) const;
  template <class T>
  void sum_piece(std::size_t index);

  GradientLayout layout_;
  Store weights_;
  std::int64_t shards_;
  bool overlap_;
  int threads_;
  RankGroup& group_;
  Shards own_;
  int slot_count_;
  std::vector<std::shared_ptr<std::byte>> near_;  // per rank: its slots, or null for ranks of other hosts
  std::shared_ptr<std::byte> slots_;              // the slots of this rank
  std::vector<std::size_t> received_at_;          // per piece that this rank owns: its first byte in received terms
  std::size_t owned_bytes_ = 0;
  std::vector<Array> received_;             // per received term: the bytes that this rank owns
  std::vector<std::vector<Array>> arrays_;  // per slot: the gradients by weight
  // The current update:
  std::int64_t present_ = 0;
  TreeStack stack_{1};
  std::int64_t next_shard_ = 0;
  bool in_sequence_ = false;
  Play play_;
  bool playing_ = false;      // whether add() must follow
  std::vector<Shards> tops_;  // the subtrees (tops_of) that this rank will have summed after all plays
  std::string reached_;
  std::vector<Communicator::Request> requests_;
  std::vector<Term> terms_;
};

/// The trained weights in memory that the ranks of a host share, and the exchange of updated weights between hosts.
class SharedWeights {
 public:
  /// Moves the weights with these names to shared memory. They get the values of rank 0.
  SharedWeights(Model& model, const std::vector<std::string>& names, RankGroup& group);
  const Store& weights() const { return weights_; }
  /// Gives all weights to all ranks, after every rank has updated the pieces that it owns.
  void exchange(const GradientLayout& layout);

 private:
  void broadcast();
  RankGroup* group_;
  Store weights_;
};

}  // namespace xtape::ranks
