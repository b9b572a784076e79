#include <doctest/doctest.h>

#include "played.hpp"
#include "xtape/ops.hpp"

using namespace xtape;

TEST_CASE("op concat: joins arrays along an axis") {
  const Doubles a = numbers({2, 3}), b = numbers({2, 1}, 1), c = numbers({2, 2}, 2);
  const auto record = [](const Vars& v) { return concat(v, -1); };
  const auto value = [&](const Shape& i) {
    return i[1] < 3 ? element(a, i) : i[1] < 4 ? element(b, {i[0], 0}) : element(c, {i[0], i[1] - 4});
  };
  CHECK(played_one(record, {a, b, c}) == made_from({2, 6}, value));
  CHECK(played_one(
            [](const Vars& v) {
              return transpose(concat({transpose(v[0]), transpose(v[1])}, 0));
            },
            {a, b}) == made_from({2, 4}, value));
  CHECK(played_one(record, {a, numbers({2, 0})}) == a);
  CHECK(played_one(record, {a}) == a);
  // The inputs' producers may write directly into the result. The values must be right if they have other users too.
  const auto shared = [](const Vars& v) {
    const Var x = exp(v[0]), y = v[0] * 2.0;
    return Vars{concat({x, y, x}, 0), x, y + x};
  };
  const Doubles all = played(shared, {a})[0];
  CHECK(near(all,
             made_from({6, 3},
                       [&](const Shape& i) {
                         const double x = element(a, {i[0] % 2, i[1]});
                         return i[0] / 2 == 1 ? 2 * x : std::exp(x);
                       }),
             1e-12));
}

TEST_CASE("op concat: the gradients are slices of the cotangent") {
  check_gradient(
      [](const Vars& v) {
        return square(concat({v[0], v[1], v[0]}, 1));
      },
      {numbers({2, 2}), numbers({2, 1}, 1)});
}

TEST_CASE("op concat: shapes that do not fit are refused") {
  Tape tape;
  const Var a = tape.input("a", {2, 3}), b = tape.input("b", {3, 3});
  CHECK_THROWS_WITH_AS(concat({a, b}, 1),
                       "concat: arrays of shapes (2, 3) and (3, 3) must have equal sizes except along axis 1",
                       ShapeError);
  CHECK_THROWS_AS(concat({a, tape.input("c", {2})}, 0), ShapeError);
  CHECK_THROWS_AS(concat({a, b}, 2), ShapeError);
  CHECK_THROWS_AS(concat({}, 0), Error);
}

TEST_CASE("op stack: joins arrays along a new axis") {
  const Doubles a = numbers({2, 3}), b = numbers({2, 3}, 1);
  for (std::int64_t axis : {0, 1, 2, -1}) {
    const auto at = static_cast<std::size_t>(axis < 0 ? 2 : axis);
    Shape shape{2, 3};
    shape.insert(at, 2);
    CHECK(played_one([&](const Vars& v) { return stack(v, axis); }, {a, b}) == made_from(shape, [&](Shape i) {
            const bool first = i[at] == 0;
            i.erase(at);
            return element(first ? a : b, i);
          }));
  }
  check_gradient([](const Vars& v) { return square(stack({v[0], v[1]}, -1)); }, {numbers({2, 2}), numbers({2, 2}, 1)});
  Tape tape;
  CHECK_THROWS_WITH_AS(stack({tape.input("a", {2}), tape.input("b", {3})}),
                       "stack: arrays must have one shape, got (2,) and (3,)", ShapeError);
}

TEST_CASE("op split: splits an axis into parts") {
  const Doubles x = numbers({2, 6});
  const std::vector<Doubles> parts = played([](const Vars& v) { return split(v[0], {1, 0, 5}, 1); }, {x});
  REQUIRE(parts.size() == 3);
  CHECK(parts[0] == made_from({2, 1}, [&](const Shape& i) { return element(x, i); }));
  CHECK(shape_of(parts[1]) == Shape{2, 0});
  CHECK(parts[2] == made_from({2, 5}, [&](const Shape& i) { return element(x, {i[0], i[1] + 1}); }));
  CHECK(played([](const Vars& v) { return split(v[0], 3, -1); }, {x})[2] == made_from({2, 2}, [&](const Shape& i) {
          return element(x, {i[0], i[1] + 4});
        }));
  check_gradients(
      [](const Vars& v) {
        const Vars p = split(v[0], {1, 2, 1}, 1);
        return Vars{square(p[0]), p[2] * p[2] * p[0]};  // nothing depends on p[1]
      },
      {numbers({2, 4})});
  Tape tape;
  const Var var = tape.input("x", {2, 6});
  CHECK_THROWS_WITH_AS(split(var, std::vector<std::int64_t>{2, 3}, 1),
                       "split: sizes (2, 3) must add up to 6, the size of axis 1 of (2, 6)", ShapeError);
  CHECK_THROWS_WITH_AS(split(var, 4, 1), "split: axis 1 of (2, 6) does not divide into 4 equal parts", ShapeError);
}

TEST_CASE("op unstack: gives the slices along an axis") {
  const Doubles x = numbers({2, 3, 2});
  const std::vector<Doubles> parts = played([](const Vars& v) { return unstack(v[0], 1); }, {x});
  REQUIRE(parts.size() == 3);
  for (std::int64_t k = 0; k < 3; ++k)
    CHECK(parts[static_cast<std::size_t>(k)] == made_from({2, 2}, [&](const Shape& i) {
            return element(x, {i[0], k, i[1]});
          }));
  check_gradients(
      [](const Vars& v) {
        const Vars p = unstack(v[0], -1);
        return Vars{p[0] * p[2]};
      },
      {numbers({2, 3})});
  Tape tape;
  CHECK_THROWS_WITH_AS(unstack(tape.input("x", {2, 0}), 1), "unstack: axis 1 of (2, 0) has no slices", ShapeError);
}
