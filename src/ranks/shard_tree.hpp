/// The order in which shards are added: a binary tree whose shape depends on the number of shards alone. The left
/// subtree of a node over n > 1 shards has the largest power of two below n; the right one has the rest. Without its
/// last shards, the tree is that of the remaining number.
#pragma once

#include <cstdint>
#include <vector>

namespace xtape::ranks {

/// The most shards of a batch, and the most micro-batches of an update. Millions of plays for one update are a mistake:
/// it would not end.
inline constexpr std::int64_t most_shards = 65536, most_micro_batches = 1 << 20;

/// The shards [first, last).
struct Shards {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t count() const { return last - first; }
};
inline bool operator==(const Shards& a, const Shards& b) {
  return a.first == b.first && a.last == b.last;
}

/// The shards that a rank computes: contiguous ranges, of which the first ones have one shard more.
Shards shards_of(int rank, int ranks, std::int64_t shards);

/// The number of shards in the left subtree of a node over `count` > 1 shards.
std::int64_t left_count(std::int64_t count);

/// Whether the two are the children of a node of the tree over `shards`.
bool are_siblings(const Shards& left, const Shards& right, std::int64_t shards);

/// The nodes of the tree over `shards` that lie in `range` while their parents do not, from left to right.
std::vector<Shards> tops_of(const Shards& range, std::int64_t shards);

/// The sum over the tree of a value per shard.
double tree_sum(const double* values, std::int64_t count);

/// A sum that is computed while shards arrive from left to right. It keeps the complete subtrees whose siblings have
/// not arrived, from left to right, subtree i in slot i of some memory.
class TreeStack {
 public:
  explicit TreeStack(std::int64_t shards) : shards_(shards) {}
  /// The slot for the value of the next shard.
  int next_slot() const { return static_cast<int>(tops_.size()); }
  /// Adds the next shard, whose value is in next_slot(). Returns the number of slots before that one to add to it, the
  /// nearest first; the sum belongs into the last of them.
  int push(const Shards& shard);
  const std::vector<Shards>& tops() const { return tops_; }

 private:
  std::int64_t shards_;
  std::vector<Shards> tops_;
};

/// The number of slots that the sum over the shards of `range` needs.
int slots_for(const Shards& range, std::int64_t shards);

}  // namespace xtape::ranks
