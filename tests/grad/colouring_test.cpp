// Colourings of patterns.
#include <doctest/doctest.h>

#include <random>

#include "grad/sparse_functions.hpp"

using namespace xtape;
using namespace xtape::sparse_tests;

TEST_CASE("columns of one colour have no elements in one row") {
  std::mt19937 random(3);
  for (int trial = 0; trial < 40; ++trial) {
    const std::int64_t rows = 1 + random() % 12, columns = 1 + random() % 12;
    Places places;
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j)
        if (random() % 4 == 0) places.emplace(i, j);
    const SparsityPattern pattern = pattern_of(rows, columns, places);
    const auto by_column = colour_columns(pattern), by_row = colour_rows(pattern);
    REQUIRE(by_column.size() == static_cast<std::size_t>(columns));
    REQUIRE(by_row.size() == static_cast<std::size_t>(rows));
    for (const auto& [i, j] : places)
      for (const auto& [k, l] : places) {
        if (i == k && j != l) CHECK(by_column[j] != by_column[l]);
        if (j == l && i != k) CHECK(by_row[i] != by_row[k]);
      }
  }
}

TEST_CASE("in a star colouring neighbours differ and no path of four vertices has two colours") {
  std::mt19937 random(4);
  for (int trial = 0; trial < 60; ++trial) {
    const std::int64_t n = 2 + random() % 9, one_in = 1 + random() % 5;
    Places places;
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = i; j < n; ++j)
        if (random() % one_in == 0) places.emplace(i, j);
    const auto colours = colour_symmetric(pattern_of(n, n, places));
    REQUIRE(colours.size() == static_cast<std::size_t>(n));
    const auto near = [&](std::int64_t i, std::int64_t j) {
      return i != j && (places.count({i, j}) != 0 || places.count({j, i}) != 0);
    };
    for (std::int64_t a = 0; a < n; ++a)
      for (std::int64_t b = 0; b < n; ++b) {
        if (!near(a, b)) continue;
        CHECK(colours[a] != colours[b]);
        for (std::int64_t c = 0; c < n; ++c)
          for (std::int64_t d = 0; d < n; ++d)
            if (c != a && d != a && d != b && near(b, c) && near(c, d))
              CHECK(!(colours[a] == colours[c] && colours[b] == colours[d]));
      }
  }
}

TEST_CASE("an arrow needs two colours, a tridiagonal matrix three, wherever the point of the arrow is") {
  for (const std::int64_t point : {0, 7, 19}) {
    Places places;
    for (std::int64_t i = 0; i < 20; ++i) {
      places.emplace(i, i);
      places.emplace(std::max(i, point), std::min(i, point));
    }
    const auto colours = colour_symmetric(pattern_of(20, 20, places));
    CHECK(std::set<std::int64_t>(colours.begin(), colours.end()).size() == 2);
  }
  Tape tape;
  const Var x = tape.input("x", {20}, Dtype::float64);
  CHECK(sparse_hessian(banded(x), x).colours == 3);
  CHECK(sparse_hessian(arrow(x), x).colours == 2);
  const Var y = pad(slice(x, {1}, {open_end}), {0}, {1}) * x;
  CHECK(sparse_jacobian(y, x).colours == 2);
}
