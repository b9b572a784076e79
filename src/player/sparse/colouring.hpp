/// Patterns as graphs, for colourings.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "xtape/sparse.hpp"

namespace xtape {

/// Throws ShapeError unless the shape has two sizes, and Error, which begins with `what`, if the lists differ in length
/// or an element is outside of the shape or given twice.
void check_pattern(const SparsityPattern& pattern, const std::string& what);

/// Lists of numbers, one after the other in memory.
class Adjacency {
 public:
  /// Per number in 0 … count - 1 of `from`: the numbers of `to` at the same places, in their order.
  Adjacency(const std::vector<std::int64_t>& from, const std::vector<std::int64_t>& to, std::int64_t count);
  std::span<const std::int64_t> of(std::int64_t k) const {
    return {to_.data() + begins_[k], begins_[k + 1] - begins_[k]};
  }
  std::int64_t count() const { return static_cast<std::int64_t>(begins_.size()) - 1; }
  std::size_t most() const;  ///< The length of the longest list.

 private:
  std::vector<std::size_t> begins_;
  std::vector<std::int64_t> to_;
};

/// The number of colours.
std::int64_t colours_in(const std::vector<std::int64_t>& colours);

/// The pattern with (j, i) for each (i, j) of a square pattern, sorted.
SparsityPattern symmetrised(const SparsityPattern& pattern);

}  // namespace xtape
