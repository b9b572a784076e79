#include <doctest/doctest.h>

#include <limits>

#include "golden.hpp"
#include "played.hpp"
#include "xtape/ops.hpp"
#include "xtape/ops/convolution.hpp"

using namespace xtape;

namespace {
constexpr double infinity = std::numeric_limits<double>::infinity();
}

TEST_CASE("op max_pool: gives PyTorch's values and gradients, also of equal elements") {
  check_golden("ops_convolution.json", "max_pool", 1e-10);
}
TEST_CASE("op avg_pool: gives PyTorch's values and gradients") {
  check_golden("ops_convolution.json", "avg_pool", 1e-10);
}
TEST_CASE("op adaptive_max_pool: gives PyTorch's values and gradients") {
  check_golden("ops_convolution.json", "adaptive_max_pool", 1e-10);
}
TEST_CASE("op adaptive_avg_pool: gives PyTorch's values and gradients") {
  check_golden("ops_convolution.json", "adaptive_avg_pool", 1e-10);
}

TEST_CASE("op max_pool: the indices are those of the first largest element") {
  const Doubles x = xt::round(3 * numbers({2, 3, 6, 7}));
  const std::vector<Doubles> both = played(
      [](const Vars& v) {
        const auto [y, index] = max_pool2d_with_indices(v[0], {3, 2}, {2, 3}, {1, 0}, {1, 2});
        return Vars{y, index};
      },
      {x});
  Doubles index = made_from({2, 3, 3, 2}, [](const Shape&) { return -1.0; });
  double* next = index.data();
  const Doubles y = made_from({2, 3, 3, 2}, [&](const Shape& at) {
    double largest = -infinity;
    for (std::int64_t k = 0; k < 3; ++k)
      for (std::int64_t l = 0; l < 2; ++l) {
        const std::int64_t i = at[2] * 2 + k - 1, j = at[3] * 3 + l * 2;
        if (i < 0 || i >= 6 || element(x, {at[0], at[1], i, j}) <= largest) continue;
        largest = element(x, {at[0], at[1], i, j});
        *next = static_cast<double>(i * 7 + j);
      }
    ++next;
    return largest;
  });
  CHECK(both[0] == y);
  CHECK(both[1] == index);
}

TEST_CASE("op max_pool: where all elements are -inf, the index is inside of x") {
  const Doubles x = made_from({1, 4}, [](const Shape&) { return -infinity; });
  const std::vector<Doubles> both = played(
      [](const Vars& v) {
        const auto [y, index] = max_pool1d_with_indices(v[0], {3}, {2}, {1});
        return Vars{y, index};
      },
      {x});
  CHECK(both[0] == Doubles{{-infinity, -infinity}});
  CHECK(both[1] == Doubles{{0, 1}});
}

TEST_CASE("op max_pool: gradients") {
  check_gradient([](const Vars& v) { return square(max_pool2d(v[0], 2, 1)); }, {numbers({1, 2, 4, 3})});
}
TEST_CASE("op avg_pool: gradients") {
  check_gradient(
      [](const Vars& v) {
        return square(avg_pool2d(v[0], {3, 2}, {1}, {1}, false, false));
      },
      {numbers({1, 2, 4, 3})});
  check_gradient([](const Vars& v) { return square(avg_pool1d(v[0], {2})); }, {numbers({2, 5})});
}
TEST_CASE("op adaptive_max_pool: gradients") {
  check_gradient([](const Vars& v) { return square(adaptive_max_pool1d(v[0], {3})); }, {numbers({2, 7})});
  check_gradient([](const Vars& v) { return square(adaptive_max_pool2d(v[0], {2})); }, {numbers({2, 4, 5})});
}
TEST_CASE("op adaptive_avg_pool: gradients") {
  check_gradient([](const Vars& v) { return square(adaptive_avg_pool2d(v[0], {3, 1})); }, {numbers({2, 7, 3})});
  check_gradient([](const Vars& v) { return square(adaptive_avg_pool1d(v[0], {2})); }, {numbers({2, 4})});
}

TEST_CASE("op avg_pool: refuses what does not fit") {
  Tape tape;
  const Var x = tape.input("x", {2, 3, 5});
  CHECK_THROWS_WITH_AS(max_pool1d(x, {7}),
                       "max_pool: a window over 7 elements does not fit axis 2 of (2, 3, 5) with "
                       "padding 0",
                       ShapeError);
  CHECK_THROWS_AS(avg_pool1d(x, {3}, {1}, {2}), ShapeError);
  CHECK_THROWS_AS(avg_pool1d(x, {3}, {0}), ShapeError);
  CHECK_THROWS_AS(avg_pool1d(x, {3, 3}), ShapeError);
  CHECK_THROWS_AS(avg_pool2d(tape.input("y", {3}), {1}), ShapeError);
  CHECK_THROWS_AS(adaptive_avg_pool1d(x, {0}), ShapeError);
  const Var none = tape.input("z", {2, 0});
  CHECK_THROWS_AS(adaptive_max_pool1d(none, {1}), ShapeError);
  CHECK_THROWS_AS(max_pool1d(none, 2, 2, 1), ShapeError);  // windows of padding alone
  CHECK_THROWS_AS(avg_pool1d(none, 2, 2, 1), ShapeError);
  CHECK_THROWS_WITH_AS(max_pool1d_with_indices(x, 7),
                       "max_pool: a window over 7 elements does not fit axis 2 of (2, 3, 5) with padding 0",
                       ShapeError);
  CHECK_THROWS_WITH_AS(max_pool1d_with_indices(cast(x, Dtype::int32), 2),
                       "max_pool: x must be a float to be pooled with its indices", DtypeError);
  CHECK_THROWS_AS(avg_pool1d(tape.input("i", {2, 3, 5}, Dtype::boolean), {-1}), ShapeError);
}
