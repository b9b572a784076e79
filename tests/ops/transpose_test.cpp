#include <doctest/doctest.h>

#include "played.hpp"
#include "xtape/ops.hpp"

using namespace xtape;

TEST_CASE("op transpose: reorders the axes") {
  const Doubles x = numbers({2, 3, 4});
  CHECK(played_one(
            [](const Vars& v) {
              return transpose(v[0], {1, 2, 0});
            },
            {x}) == made_from({3, 4, 2}, [&](const Shape& i) {
          return element(x, {i[2], i[0], i[1]});
        }));
  CHECK(played_one([](const Vars& v) { return transpose(v[0]); }, {x}) == made_from({4, 3, 2}, [&](const Shape& i) {
          return element(x, {i[2], i[1], i[0]});
        }));
  CHECK(played_one(
            [](const Vars& v) {
              return transpose(v[0], {0, -1, -2});
            },
            {x}) == made_from({2, 4, 3}, [&](const Shape& i) {
          return element(x, {i[0], i[2], i[1]});
        }));
  CHECK(shape_of(played_one([](const Vars& v) { return transpose(v[0]); }, {numbers({0, 3})})) == Shape{3, 0});
  CHECK(shape_of(played_one([](const Vars& v) { return transpose(v[0]); }, {numbers({})})) == Shape{});
}

TEST_CASE("op transpose: gradients have the inverse order") {
  check_gradient([](const Vars& v) { return square(transpose(v[0], {2, 0, 1})); }, {numbers({2, 3, 2})});
  check_gradient([](const Vars& v) { return transpose(v[0]) * v[1]; }, {numbers({2, 3}), numbers({3, 2}, 1)});
}

TEST_CASE("op transpose: axes that are not a permutation are refused") {
  Tape tape;
  const Var x = tape.input("x", {2, 3, 4});
  CHECK_THROWS_WITH_AS(transpose(x, {0, 1}), "transpose: axes (0, 1) must name each of the 3 axes of (2, 3, 4) once",
                       ShapeError);
  CHECK_THROWS_AS(transpose(x, {0, 1, 1}), ShapeError);
  CHECK_THROWS_WITH_AS(transpose(x, {0, 1, 3}), "transpose: axis 3 is out of range for an array of 3 axes", ShapeError);
}
