/// Cuts a batch and carried states into shards by rows, and joins them again.
#pragma once

#include "train/trainer/carried.hpp"
#include "ranks/shard_tree.hpp"

namespace xtape::train {

std::int64_t rows_of(const BatchArrays& batch);
/// Returns the rows of a shard. If the rows do not divide evenly, earlier shards have one more row.
inline ranks::Shards rows_of_shard(std::int64_t rows, std::int64_t shard, std::int64_t shards) {
  return ranks::shards_of(static_cast<int>(shard), static_cast<int>(shards), rows);
}
/// Returns a copy of the shard's rows of every array.
BatchArrays shard_of(const BatchArrays& batch, std::int64_t shard, std::int64_t shards);

/// Returns the rows of a draw that count, without the copies after them; the first row if none counts. Returns any other
/// batch as it is.
BatchArrays without_copies(BatchArrays batch);

/// Returns, for each carried state of the function, its axis of rows. Throws DefinitionError if a state has no such
/// axis.
std::vector<std::size_t> row_axes(const Model& model, const std::string& function);
/// Returns a copy of the elements [first, last) along an axis.
Array part_of(const Array& whole, std::size_t axis, std::int64_t first, std::int64_t last);
/// The inverse of part_of: writes `part` to `whole`, starting at index `first` of the axis.
void set_part(Array& whole, std::size_t axis, std::int64_t first, const Array& part);

}  // namespace xtape::train
