#include <doctest/doctest.h>

#include "played.hpp"
#include "xtape/ops.hpp"

using namespace xtape;

namespace {
/// The matrix product along the last two axes, the others broadcast, by explicit loops.
Doubles naive_product(const Doubles& a, const Doubles& b, const Shape& result) {
  return made_from(result, [&](const Shape& index) {
    const std::size_t rank = index.size();
    const auto at = [&](const Doubles& x, std::int64_t row, std::int64_t column) {
      Shape place;
      const Shape shape = shape_of(x);
      for (std::size_t i = 0; i + 2 < shape.size(); ++i) place.push_back(index[rank - shape.size() + i] % shape[i]);
      place.push_back(row);
      place.push_back(column);
      return element(x, place);
    };
    double sum = 0;
    for (std::int64_t k = 0; k < shape_of(a).back(); ++k) sum += at(a, index[rank - 2], k) * at(b, k, index[rank - 1]);
    return sum;
  });
}
Var product(const Vars& x) {
  return matmul(x[0], x[1]);
}
}  // namespace

TEST_CASE("op matmul: matrices and batches of them, as in NumPy") {
  struct Example {
    Shape a, b, result;
  };
  for (const Example& example :
       {Example{{2, 3}, {3, 4}, {2, 4}}, Example{{5, 2, 3}, {5, 3, 4}, {5, 2, 4}},
        Example{{5, 2, 3}, {3, 4}, {5, 2, 4}}, Example{{2, 3}, {5, 3, 4}, {5, 2, 4}},
        Example{{2, 1, 2, 3}, {4, 3, 2}, {2, 4, 2, 2}}, Example{{1, 2, 3}, {5, 3, 1}, {5, 2, 1}}}) {
    CAPTURE(example.a);
    CAPTURE(example.b);
    const Doubles a = numbers(example.a), b = numbers(example.b, 1);
    CHECK(near(played_one(product, {a, b}), naive_product(a, b, example.result), 1e-12));
    check_gradient(product, {a, b});
  }
}

TEST_CASE("op matmul: the result does not have the axes of vectors") {
  const Doubles v = numbers({3}), m = numbers({3, 2}, 1), batch = numbers({4, 2, 3}, 2);
  CHECK(near(played_one(product, {v, m}),
             made_from({2}, [&](const Shape& i) { return v(0) * m(0, i[0]) + v(1) * m(1, i[0]) + v(2) * m(2, i[0]); }),
             1e-12));
  CHECK(near(played_one(product, {v, v}), Doubles(v(0) * v(0) + v(1) * v(1) + v(2) * v(2)), 1e-12));
  CHECK(near(played_one(product, {batch, v}),
             made_from({4, 2},
                       [&](const Shape& i) {
                         double sum = 0;
                         for (std::int64_t k = 0; k < 3; ++k) sum += element(batch, {i[0], i[1], k}) * element(v, {k});
                         return sum;
                       }),
             1e-12));
  for (const auto& points : {std::vector<Doubles>{v, m}, {v, v}, {batch, v}, {numbers({2}), batch}})
    check_gradient(product, points);
}

TEST_CASE("op matmul: sums over no terms are zeros") {
  CHECK(played_one(product, {numbers({2, 0}), numbers({0, 3})}) == made_from({2, 3}, [](const Shape&) { return 0.0; }));
}

TEST_CASE("op matmul: shapes that do not fit are refused") {
  Tape tape;
  const Var a = tape.input("a", {2, 3}), b = tape.input("b", {4, 5}), s = tape.input("s", {});
  CHECK_THROWS_WITH_AS(
      matmul(a, b),
      "matmul: cannot multiply (2, 3) by (4, 5): the last axis of the first, 3, must be as long as the "
      "second-to-last axis of the second, 4",
      ShapeError);
  CHECK_THROWS_WITH_AS(matmul(a, s),
                       "matmul: cannot multiply (2, 3) by (): both need at least one axis; use mul for scalars",
                       ShapeError);
  const Var c = tape.input("c", {2, 3, 4}), d = tape.input("d", {3, 4, 5});
  CHECK_THROWS_WITH_AS(matmul(c, d),
                       "matmul: cannot multiply (2, 3, 4) by (3, 4, 5): the axes before the last two must broadcast",
                       ShapeError);
}
