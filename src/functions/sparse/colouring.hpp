/// Represents patterns as graphs and colours these graphs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "xtape/sparse.hpp"

namespace xtape {

/// Throws ShapeError if the shape does not have two sizes. Throws Error if the lists differ in length, or an element is
/// outside of the shape or occurs twice. The text of the Error begins with `what`.
void check_pattern(const SparsityPattern& pattern, const std::string& what);

/// Lists of numbers, stored one after the other.
class Adjacency {
 public:
  /// Creates a list for each number in 0 … count - 1. The list contains, in order, the entries of `to` at the places
  /// where `from` has this number.
  Adjacency(const std::vector<std::int64_t>& from, const std::vector<std::int64_t>& to, std::int64_t count);
  std::span<const std::int64_t> of(std::int64_t k) const {
    return {to_.data() + begins_[k], begins_[k + 1] - begins_[k]};
  }
  std::int64_t count() const { return std::ssize(begins_) - 1; }
  std::size_t most() const;  ///< The length of the longest list.

 private:
  std::vector<std::size_t> begins_;
  std::vector<std::int64_t> to_;
};

/// Returns the number of colours.
std::int64_t colours_in(const std::vector<std::int64_t>& colours);

/// Adds (j, i) for each (i, j) of a square pattern and sorts the result.
SparsityPattern symmetrised(const SparsityPattern& pattern);

}  // namespace xtape
