#include <doctest/doctest.h>

#include "played.hpp"
#include "xtape/ops.hpp"

using namespace xtape;

namespace {
std::function<Var(const Vars&)> by(const std::string& pattern, const NamedSizes& sizes = {}) {
  return [=](const Vars& x) { return rearrange(x[0], pattern, sizes); };
}
}  // namespace

TEST_CASE("op rearrange: splits, reorders and joins axes") {
  const Doubles x = numbers({2, 3, 8});
  CHECK(played_one(by("b t (h e) -> b h t e", {{"h", 2}}), {x}) == made_from({2, 2, 3, 4}, [&](const Shape& i) {
          return element(x, {i[0], i[2], i[1] * 4 + i[3]});
        }));
  CHECK(played_one(by("b t (n h e) -> n b t h e", {{"n", 2}, {"e", 2}}), {x}) ==
        made_from({2, 2, 3, 2, 2}, [&](const Shape& i) {
          return element(x, {i[1], i[2], i[0] * 4 + i[3] * 2 + i[4]});
        }));
  CHECK(played_one(by("b t d -> (t b) d"), {x}) == made_from({6, 8}, [&](const Shape& i) {
          return element(x, {i[0] % 2, i[0] / 2, i[1]});
        }));
  CHECK(played_one(by("b ... -> ... b"), {x}) == made_from({3, 8, 2}, [&](const Shape& i) {
          return element(x, {i[2], i[0], i[1]});
        }));
  CHECK(shape_of(played_one(by("b t d -> b 1 t () d"), {x})) == Shape{2, 1, 3, 1, 8});
  CHECK(shape_of(played_one(by("b 1 t -> (b t)"), {numbers({2, 1, 3})})) == Shape{6});
  CHECK(shape_of(played_one(by("a b -> (b a)"), {numbers({0, 3})})) == Shape{0});
  CHECK(played_one(by("b t d->b t d"), {x}) == x);
}

TEST_CASE("op rearrange: gradients go back through the inverse pattern") {
  check_gradient(
      [](const Vars& v) {
        return square(rearrange(v[0], "b t (h e) -> h (t b) e", {{"h", 2}}));
      },
      {numbers({2, 3, 4})});
}

TEST_CASE("op rearrange: errors show the pattern with a caret") {
  Tape tape;
  const Var x = tape.input("x", {2, 3, 8});
  CHECK_THROWS_WITH_AS(rearrange(x, "b t d -> b t e"),
                       "rearrange: 'd' is on one side of the pattern only\n"
                       "  b t d -> b t e\n"
                       "      ^",
                       ShapeError);
  CHECK_THROWS_WITH_AS(rearrange(x, "b t (h e) -> b h t e"),
                       "rearrange: the sizes of 'h' and 'e' are both unknown: give one\n"
                       "  b t (h e) -> b h t e\n"
                       "         ^",
                       ShapeError);
  CHECK_THROWS_WITH_AS(rearrange(x, "b t (h e) -> b h t e", {{"h", 3}}),
                       "rearrange: axis 2 of (2, 3, 8) has size 8, which is not a multiple of 3\n"
                       "  b t (h e) -> b h t e\n"
                       "       ^",
                       ShapeError);
  CHECK_THROWS_WITH_AS(rearrange(x, "b t (h e -> b h t e"),
                       "rearrange: '(' is not closed\n"
                       "  b t (h e -> b h t e\n"
                       "      ^",
                       ShapeError);
  CHECK_THROWS_WITH_AS(rearrange(x, "b t d"), "rearrange: '->' is missing\n  b t d\n       ^", ShapeError);
  CHECK_THROWS_WITH_AS(rearrange(x, "b t -> t b"),
                       "rearrange: the left side has 2 axes, the array has shape (2, 3, 8)\n  b t -> t b\n  ^",
                       ShapeError);
  CHECK_THROWS_WITH_AS(rearrange(x, "b t d -> d t b", {{"heads", 2}}),
                       "rearrange: a size is given for 'heads', which the pattern 'b t d -> d t b' does not have",
                       ShapeError);
  for (const char* pattern : {"b b d -> b d", "b t d -> b t d d", "b t) d -> b t d", "b ((t) d) -> b t d",
                              "b t $ -> b t $", "(b ...) -> b ...", "b t 2 -> b t 2"}) {
    CAPTURE(pattern);
    CHECK_THROWS_AS(rearrange(x, pattern), ShapeError);
  }
  CHECK(tape.size() == 1);
}
