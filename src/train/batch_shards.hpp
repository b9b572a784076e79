/// A batch and carried states, cut into shards by rows, and joined.
#pragma once

#include "carried.hpp"
#include "shard_tree.hpp"

namespace xtape::train {

std::int64_t rows_of(const BatchArrays& batch);
/// The rows of a shard: earlier shards have the extra ones.
inline ranks::Shards rows_of_shard(std::int64_t rows, std::int64_t shard, std::int64_t shards) {
  return ranks::shards_of(static_cast<int>(shard), static_cast<int>(shards), rows);
}
/// A copy of the shard's rows of every array.
BatchArrays shard_of(const BatchArrays& batch, std::int64_t shard, std::int64_t shards);

/// Per carried state of the function, the axis of the batch's rows. Throws DefinitionError if a state has none.
std::vector<std::size_t> row_axes(const Model& model, const std::string& function);
/// The elements [first, last) along an axis, as a copy.
Array part_of(const Array& whole, std::size_t axis, std::int64_t first, std::int64_t last);
/// The inverse: writes `part` to `whole`, from index `first` of the axis on.
void set_part(Array& whole, std::size_t axis, std::int64_t first, const Array& part);

}  // namespace xtape::train
