/// Sets of indices, for sparsity patterns.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace xtape {

/// Sorted sets of indices from 0 to count - 1. Equal sets are stored once and have the same id. A set that many
/// elements share is therefore stored once, and comparing two sets only compares ids.
class IndexSets {
 public:
  using Id = std::int32_t;
  static constexpr Id none = 0;                                ///< The empty set.
  static constexpr std::int64_t most = std::int64_t{1} << 30;  ///< The limit of indices in all sets together.

  /// Throws ShapeError if there are more than 2^31 - 1 indices.
  explicit IndexSets(std::int64_t count);

  Id single(std::int64_t index);
  Id united(Id a, Id b);
  /// Returns the union of all sets in `ids`. Reorders `ids`.
  Id united(std::vector<Id>& ids);
  std::span<const std::int32_t> of(Id id) const {
    return {indices_.data() + begins_[id], begins_[id + 1] - begins_[id]};
  }

 private:
  Id interned(std::span<const std::int32_t> set);
  void grow();

  std::vector<std::int32_t> indices_;      // the indices of all sets, one set after the other
  std::vector<std::size_t> begins_{0, 0};  // per set: the index of its first entry; at the end: the end of the last set
  std::vector<std::uint64_t> hashes_{0};   // per set
  std::vector<Id> table_;                  // open addressing by hash; `none` where empty
  std::vector<bool> seen_;                 // per index: scratch of a union; all false between calls
  std::vector<std::int32_t> fresh_, together_;  // scratch
};

}  // namespace xtape
