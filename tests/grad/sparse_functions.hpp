/// Functions and patterns that the tests of sparse derivatives share.
#pragma once

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "xtape/ops.hpp"
#include "xtape/sparse.hpp"
#include "xtape/xtensor.hpp"

namespace xtape::sparse_tests {

using Numbers = xt::xarray<double>;
using Places = std::set<std::pair<std::int64_t, std::int64_t>>;

/// Distinct numbers, none of them 0.
inline Numbers spread(std::vector<std::size_t> shape) {
  Numbers numbers = Numbers::from_shape(shape);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    numbers.flat(i) = 0.3 + 0.37 * static_cast<double>(i % 7) + 0.01 * static_cast<double>(i);
  return numbers;
}

inline SparsityPattern pattern_of(std::int64_t rows, std::int64_t columns, const Places& places) {
  SparsityPattern pattern{{rows, columns}, {}, {}};
  for (const auto& [row, column] : places) {
    pattern.rows.push_back(row);
    pattern.columns.push_back(column);
  }
  return pattern;
}

/// x_i^2 + sin(x_i x_{i+1}), summed.
inline Var banded(const Var& x) {
  const Var left = slice(x, {0}, {-1}), right = slice(x, {1}, {open_end});
  return sum(square(x)) + sum(sin(left * right));
}
/// x_i^2 x_0, summed.
inline Var arrow(const Var& x) {
  return sum(square(x) * slice(x, {0}, {1}));
}

}  // namespace xtape::sparse_tests
