#include <doctest/doctest.h>

#include "played.hpp"
#include "xtape/ops.hpp"

using namespace xtape;

TEST_CASE("op diag_embed: puts vectors on diagonals, zeros elsewhere") {
  const Doubles x = numbers({2, 3});
  const auto expected = [&](const Shape& i) { return i[1] == i[2] ? element(x, {i[0], i[1]}) : 0.0; };
  CHECK(played_one([](const Vars& v) { return diag_embed(v[0]); }, {x}) == made_from({2, 3, 3}, expected));
  const Doubles y = played_one([](const Vars& v) { return diag_embed(transpose(v[0])); }, {x});
  CHECK(y == made_from({3, 2, 2}, [&](const Shape& i) { return i[1] == i[2] ? element(x, {i[1], i[0]}) : 0.0; }));
  CHECK(shape_of(played_one([](const Vars& v) { return diag_embed(v[0]); }, {numbers({2, 0})})) == Shape{2, 0, 0});
}

TEST_CASE("op diag_embed: an infinity stays on the diagonal and does not give NaN next to it") {
  const Doubles x{1, std::numeric_limits<double>::infinity()};
  const Doubles y = played_one([](const Vars& v) { return diag_embed(v[0]); }, {x});
  CHECK(y == Doubles{{1, 0}, {0, std::numeric_limits<double>::infinity()}});
}

TEST_CASE("op diag_embed: gradients are the diagonal of the cotangent") {
  check_gradient([](const Vars& v) { return square(diag_embed(v[0])); }, {numbers({2, 3})});
  Tape tape;
  CHECK_THROWS_WITH_AS(diag_embed(tape.input("x", {})), "diag_embed: needs at least one axis, got an array of shape ()",
                       ShapeError);
}

TEST_CASE("op diagonal: takes the elements with equal indices") {
  const Doubles x = numbers({3, 2, 3, 4});
  CHECK(played_one([](const Vars& v) { return diagonal(v[0], 0, 2); }, {x}) ==
        made_from({2, 4, 3}, [&](const Shape& i) {
          return element(x, {i[2], i[0], i[2], i[1]});
        }));
  CHECK(played_one([](const Vars& v) { return diagonal(v[0], -2, 0); }, {x}) ==
        made_from({2, 4, 3}, [&](const Shape& i) {
          return element(x, {i[2], i[0], i[2], i[1]});
        }));
}

TEST_CASE("op diagonal: gradients go back to the diagonal") {
  check_gradient([](const Vars& v) { return square(diagonal(v[0], 0, 1)); }, {numbers({3, 3})});
  check_gradient([](const Vars& v) { return square(diagonal(v[0], 2, 0)); }, {numbers({3, 2, 3})});
}

TEST_CASE("op diagonal: needs two axes of equal size") {
  Tape tape;
  const Var x = tape.input("x", {2, 3, 2});
  CHECK_THROWS_WITH_AS(diagonal(x, 0, 1), "diagonal: needs two axes of one size, got axes 0 and 1 of (2, 3, 2)",
                       ShapeError);
  CHECK_THROWS_AS(diagonal(x, 0, 0), ShapeError);
  CHECK_THROWS_AS(diagonal(x, 0, 3), ShapeError);
}
