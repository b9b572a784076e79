#include "constants.hpp"
#include "error_of.hpp"
#include "indexed.hpp"

using namespace xtape;

namespace {
/// The first row of each group, and the end of the last one.
Integers starts_of(const Integers& sizes) {
  Integers starts{0};
  for (const std::int64_t size : sizes) starts.push_back(starts.back() + size);
  return starts;
}

Doubles dot_by_loops(const Doubles& x, const Doubles& weights, const Integers& sizes) {
  const Integers starts = starts_of(sizes);
  const Shape of_x = shape_of(x), of_weights = shape_of(weights);
  return made_from({of_x[0], of_weights[2]}, [&](const Shape& i) {
    double sum = 0;
    for (std::int64_t j = 0; j < of_weights[0]; ++j)
      for (std::int64_t k = 0; k < of_x[1] && starts[j] <= i[0] && i[0] < starts[j + 1]; ++k)
        sum += element(x, {i[0], k}) * element(weights, {j, k, i[1]});
    return sum;
  });
}

Doubles weights_by_loops(const Doubles& x, const Doubles& y, const Integers& sizes) {
  const Integers starts = starts_of(sizes);
  const auto groups = static_cast<std::int64_t>(sizes.size());
  return made_from({groups, shape_of(x)[1], shape_of(y)[1]}, [&](const Shape& i) {
    double sum = 0;
    for (std::int64_t row = starts[i[0]]; row < starts[i[0] + 1]; ++row)
      sum += element(x, {row, i[1]}) * element(y, {row, i[2]});
    return sum;
  });
}

/// Groups without rows, of one, and of numbers for which several products are needed; with and without rows at the end.
const std::vector<Integers> some_sizes = {{0, 9, 37, 1, 0}, {70, 0, 0}, {0, 0}, {2, 21, 47}, {5}};
constexpr std::int64_t rows = 70;
}  // namespace

TEST_CASE("op ragged_dot: is the product of each row with the matrix of its group") {
  for (const Integers& sizes : some_sizes) {
    const Doubles x = numbers({rows, 5}), weights = numbers({static_cast<std::int64_t>(sizes.size()), 5, 3}, 1);
    const auto recorded = [&](const Vars& v) { return ragged_dot(v[0], v[1], index(v[0], sizes, {}, Dtype::int32)); };
    CHECK(near(played_one(recorded, {x, weights}), dot_by_loops(x, weights, sizes), 1e-13));
    const auto turned = [&](const Vars& v) {  // strided operands
      return ragged_dot(transpose(v[0]), transpose(v[1], {2, 1, 0}), index(v[0], sizes));
    };
    CHECK(near(played_one(turned, {xt::transpose(x), xt::transpose(weights)}), dot_by_loops(x, weights, sizes), 1e-13));
  }
}

TEST_CASE("op ragged_dot_weights: is the sum of the products of each group's rows") {
  for (const Integers& sizes : some_sizes) {
    const Doubles x = numbers({rows, 3}), y = numbers({rows, 4}, 1);
    const auto recorded = [&](const Vars& v) { return ragged_dot_weights(v[0], v[1], index(v[0], sizes)); };
    CHECK(near(played_one(recorded, {x, y}), weights_by_loops(x, y, sizes), 1e-13));
  }
}

TEST_CASE("op ragged_dot: large groups have the bits of any number of threads") {
  const Integers sizes{100, 3, 0, 150};
  const Doubles x = numbers({260, 64}), weights = numbers({4, 64, 48}, 1);
  const auto values = played(
      [&](const Vars& v) {
        const Var of = index(v[0], sizes), y = ragged_dot(v[0], v[1], of);
        return Vars{y, ragged_dot(y, transpose(v[1], {0, 2, 1}), of), ragged_dot_weights(v[0], y, of)};
      },
      {x, weights}, 1e-12, 1e-4);
  CHECK(near(values[0], dot_by_loops(x, weights, sizes), 1e-12));
  CHECK(near(values[2], weights_by_loops(x, values[0], sizes), 1e-12));
}

TEST_CASE("op ragged_dot, op ragged_dot_weights: gradients, and gradients of gradients") {
  for (const Integers& sizes : {Integers{2, 0, 3}, Integers{0, 1, 1}}) {
    check_gradient([&](const Vars& v) { return ragged_dot(v[0], v[1], index(v[0], sizes)); },
                   {numbers({5, 2}), numbers({3, 2, 3}, 1)});
    check_gradient([&](const Vars& v) { return ragged_dot_weights(v[0], v[1], index(v[0], sizes)); },
                   {numbers({5, 2}), numbers({5, 3}, 1)});
  }
}

TEST_CASE("op ragged_dot, op ragged_dot_weights: batches of any operands, with rows of no group") {
  const Doubles sizes = as_numbers({2, 1, 0, 4, 0, 0}, {3, 2});
  const auto of = [](const Var& v) { return cast(v, Dtype::int64); };
  check_vmap([&](const Vars& v) { return ragged_dot(v[0], v[1], of(v[2])); },
             {numbers({3, 4, 2}), numbers({3, 2, 2, 3}, 1), sizes});
  check_vmap([&](const Vars& v) { return ragged_dot_weights(v[0], v[1], of(v[2])); },
             {numbers({3, 4, 2}), numbers({3, 4, 3}, 1), sizes});
}

TEST_CASE("op ragged_dot: NaN stays in its row and its group") {
  Doubles x = numbers({6, 2}), weights = numbers({3, 2, 2}, 1);
  x(1, 0) = x(5, 1) = weights(1, 0, 0) = not_a_number;
  const auto recorded = [&](const Vars& v) { return ragged_dot(v[0], v[1], index(v[0], {3, 0, 1})); };
  CHECK(near(played_one(recorded, {x, weights}), dot_by_loops(x, weights, {3, 0, 1}), 1e-13));
  const auto sums = [&](const Vars& v) { return ragged_dot_weights(v[0], v[0], index(v[0], {3, 0, 1})); };
  CHECK(near(played_one(sums, {x}), weights_by_loops(x, x, {3, 0, 1}), 1e-13));
}

TEST_CASE("op ragged_dot: weights of halves are read as they are") {
  Tape tape;
  const auto as = [&](const Doubles& v, Dtype dtype) { return cast(tape.constant(v), dtype); };
  for (const Dtype half : {Dtype::bfloat16, Dtype::float16}) {
    const Var x = as(numbers({5, 4}), half), weights = as(numbers({2, 4, 3}, 1), half), sizes = index(x, {2, 2});
    const Var wide = ragged_dot(cast(x, Dtype::float32), cast(weights, Dtype::float32), sizes);
    CHECK(ragged_dot(x, weights, sizes).dtype() == half);
    CHECK(value<float>(cast(ragged_dot(x, weights, sizes), Dtype::float32)) ==
          value<float>(cast(cast(wide, half), Dtype::float32)));
  }
}

TEST_CASE("op ragged_dot: errors name the group, and shapes that do not fit") {
  Tape tape;
  const Var x = tape.input("x", {4, 2}), w = tape.input("w", {2, 2, 3}), sizes = tape.input("sizes", {2}, Dtype::int32);
  const Caller at = Caller::here(__FILE__, __LINE__ + 1);
  const Var y = ragged_dot(x, w, sizes);
  Player player(tape, {y});
  const xt::xarray<float> ones = xt::ones<float>({4, 2}), weights = xt::ones<float>({2, 2, 3});
  const auto error_with = [&](const xt::xarray<std::int32_t>& given) {
    return test::error_of([&] { player.play({{x, ones}, {w, weights}, {sizes, given}}); });
  };
  const std::string where = to_string(at) + ": ragged_dot: group 1 has size ";
  CHECK(error_with({1, -1}) ==
        where + "-1: it must be between 0 and 3, the number of rows that the groups before it leave");
  CHECK(error_with({3, 2}) ==
        where + "2: it must be between 0 and 1, the number of rows that the groups before it leave");
  CHECK(error_with({3, 1}).empty());
  CHECK_THROWS_WITH_AS(
      ragged_dot(x, x, sizes),
      "ragged_dot: x [m, k], weights [g, k, n], and group_sizes [g] are needed, got (4, 2), (4, 2) and (2,)",
      ShapeError);
  CHECK_THROWS_WITH_AS(
      ragged_dot(x, tape.input("v", {3, 2, 3}), sizes),
      "ragged_dot: 'weights' of shape (3, 2, 3) must have shape (2, 2, 3), a matrix for each group, with "
      "a row for each column of x",
      ShapeError);
  CHECK_THROWS_WITH_AS(ragged_dot_weights(x, tape.input("z", {3, 5}), sizes),
                       "ragged_dot_weights: 'y' of shape (3, 5) must have shape (4, 5), as many rows as x", ShapeError);
}
