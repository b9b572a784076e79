#include "functions/sparse/index_sets.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>

#include "base/arrays/mix.hpp"
#include "xtape/error.hpp"

namespace xtape {

IndexSets::IndexSets(std::int64_t count) : table_(64, none) {
  if (count > std::numeric_limits<std::int32_t>::max())
    throw ShapeError("sparsity: the input has " + std::to_string(count) + " elements, more than 2^31 - 1");
  seen_.resize(static_cast<std::size_t>(count));
}

IndexSets::Id IndexSets::single(std::int64_t index) {
  const auto narrow = static_cast<std::int32_t>(index);
  return interned({&narrow, 1});
}

IndexSets::Id IndexSets::united(Id a, Id b) {
  if (a == b || b == none) return a;
  if (a == none) return b;
  if (of(a).size() < of(b).size()) std::swap(a, b);
  const auto larger = of(a), smaller = of(b);
  fresh_.clear();
  for (const std::int32_t index : smaller)
    if (!std::binary_search(larger.begin(), larger.end(), index)) fresh_.push_back(index);
  if (fresh_.empty()) return a;
  together_.clear();
  std::merge(larger.begin(), larger.end(), fresh_.begin(), fresh_.end(), std::back_inserter(together_));
  return interned(together_);
}

IndexSets::Id IndexSets::united(std::vector<Id>& ids) {
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  if (ids.empty()) return none;
  if (ids.size() <= 2) return united(ids.front(), ids.back());
  fresh_.clear();
  for (const Id id : ids)
    for (const std::int32_t index : of(id)) {
      if (seen_[index]) continue;
      seen_[index] = true;
      fresh_.push_back(index);
    }
  for (const std::int32_t index : fresh_) seen_[index] = false;
  std::ranges::sort(fresh_);
  return interned(fresh_);
}

IndexSets::Id IndexSets::interned(std::span<const std::int32_t> set) {
  if (set.empty()) return none;
  std::uint64_t hash = set.size();
  for (const std::int32_t index : set) mix(hash, static_cast<std::uint64_t>(index));
  const std::size_t mask = table_.size() - 1;
  std::size_t slot = (hash >> 20) & mask;
  for (; table_[slot] != none; slot = (slot + 1) & mask) {
    const Id id = table_[slot];
    const auto present = of(id);
    if (hashes_[id] == hash && std::equal(present.begin(), present.end(), set.begin(), set.end())) return id;
  }
  if (indices_.size() + set.size() > static_cast<std::size_t>(most))
    throw Error(
        "sparsity: the sets of dependencies have more than 2^30 elements together: the Jacobian is not sparse, "
        "or give a pattern");
  const auto id = static_cast<Id>(hashes_.size());
  table_[slot] = id;
  indices_.insert(indices_.end(), set.begin(), set.end());
  begins_.push_back(indices_.size());
  hashes_.push_back(hash);
  if (2 * hashes_.size() > table_.size()) grow();
  return id;
}

void IndexSets::grow() {
  table_.assign(2 * table_.size(), none);
  const std::size_t mask = table_.size() - 1;
  for (std::size_t id = 1; id < hashes_.size(); ++id) {
    std::size_t slot = (hashes_[id] >> 20) & mask;
    while (table_[slot] != none) slot = (slot + 1) & mask;
    table_[slot] = static_cast<Id>(id);
  }
}

}  // namespace xtape
