/// The order in which shards are added: a binary tree whose shape depends only on the number of shards. For a node over
/// n > 1 shards, the left subtree has the largest power of two below n, and the right subtree has the rest. If the last
/// shards are removed, the tree has the shape for the remaining number of shards.
#pragma once

#include <cstdint>
#include <vector>

namespace xtape::ranks {

/// The limits of the shards of a batch and of the micro-batches of an update. An update with millions of plays would
/// practically never end, so such a number is a mistake.
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

/// Returns the contiguous range of shards that a rank computes. If the shards do not divide evenly, the first ranks
/// have one shard more.
Shards shards_of(int rank, int ranks, std::int64_t shards);

/// Returns the number of shards in the left subtree of a node over `count` > 1 shards.
std::int64_t left_count(std::int64_t count);

/// Returns whether the two nodes are the children of one node of the tree over `shards`.
bool are_siblings(const Shards& left, const Shards& right, std::int64_t shards);

/// Returns the largest nodes of the tree over `shards` that lie inside `range`, from left to right.
std::vector<Shards> tops_of(const Shards& range, std::int64_t shards);

/// Returns the sum over the tree of one value per shard.
double tree_sum(const double* values, std::int64_t count);

/// A sum that is computed while shards arrive from left to right. It keeps the complete subtrees whose siblings have
/// not arrived. Subtree i, counted from the left, is in slot i of some memory.
class TreeStack {
 public:
  explicit TreeStack(std::int64_t shards) : shards_(shards) {}
  /// Returns the slot for the value of the next shard.
  int next_slot() const { return static_cast<int>(tops_.size()); }
  /// Adds the next shard, whose value is in slot next_slot(). Returns the number of preceding slots to which the value
  /// must be added, starting with the nearest slot. The sum goes into the last of these slots.
  int push(const Shards& shard);
  const std::vector<Shards>& tops() const { return tops_; }

 private:
  std::int64_t shards_;
  std::vector<Shards> tops_;
};

/// Returns the number of slots that the sum over the shards of `range` needs.
int slots_for(const Shards& range, std::int64_t shards);

}  // namespace xtape::ranks
