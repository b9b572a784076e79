#include <doctest/doctest.h>

#include "played.hpp"
#include "xtape/ops.hpp"

using namespace xtape;

TEST_CASE("op slice: follows Python") {
  const Doubles x = numbers({7});
  struct Example {
    std::int64_t start, stop, step;
    std::vector<std::int64_t> indices;
  };
  for (const Example& example :
       {Example{0, open_end, 1, {0, 1, 2, 3, 4, 5, 6}}, Example{2, 5, 1, {2, 3, 4}}, Example{-3, -1, 1, {4, 5}},
        Example{1, 100, 3, {1, 4}}, Example{5, 2, 1, {}}, Example{open_end, open_end, -1, {6, 5, 4, 3, 2, 1, 0}},
        Example{5, 1, -2, {5, 3}}, Example{-1, -100, -3, {6, 3, 0}}, Example{-100, 2, 1, {0, 1}},
        Example{100, 4, -1, {6, 5}}, Example{0, open_end, -1, {0}}}) {
    CAPTURE(example.start);
    CAPTURE(example.stop);
    CAPTURE(example.step);
    const auto record = [&](const Vars& v) { return slice(v[0], {example.start}, {example.stop}, {example.step}); };
    const Doubles expected = made_from({static_cast<std::int64_t>(example.indices.size())}, [&](const Shape& i) {
      return x(example.indices[static_cast<std::size_t>(i[0])]);
    });
    CHECK(played_one(record, {x}) == expected);
    if (!example.indices.empty()) check_gradient([&](const Vars& v) { return square(record(v)); }, {x});
  }
}

TEST_CASE("op slice: several axes, views, and some axes only") {
  const Doubles x = numbers({4, 5, 3});
  CHECK(played_one(
            [](const Vars& v) {
              return slice(transpose(v[0]), {1, open_end}, {open_end, open_end}, {1, -2});
            },
            {x}) == made_from({2, 3, 4}, [&](const Shape& i) {
          return element(x, {i[2], 4 - 2 * i[1], i[0] + 1});
        }));
  Tape tape;
  const Var var = tape.input("x", {4, 5});
  CHECK_THROWS_WITH_AS(slice(var, {0, 0, 0}, {1, 1, 1}), "slice: got 3 entries for an array of 2 axes", ShapeError);
  CHECK_THROWS_WITH_AS(slice(var, {0}, {1}, {0}), "slice: a step must not be 0", ShapeError);
}

TEST_CASE("op update_slice: overwrites a slice of an array") {
  const Doubles x = numbers({4, 5}), part = numbers({2, 3}, 1);
  const auto record = [](const Vars& v) { return update_slice(v[0], v[1], {1, -4}, {2, 1}); };
  CHECK(played_one(record, {x, part}) == made_from({4, 5}, [&](const Shape& i) {
          const bool inside = i[0] % 2 == 1 && i[1] >= 1 && i[1] < 4;
          return inside ? element(part, {i[0] / 2, i[1] - 1}) : element(x, i);
        }));
  check_gradient([&](const Vars& v) { return square(record(v)); }, {x, part});
  check_gradient([](const Vars& v) { return square(update_slice(v[0], v[1], {3}, {-1})); },
                 {numbers({4}), numbers({4}, 1)});
  // An array that is read later must not be overwritten.
  const auto both = [&](const Vars& v) {
    const Var y = v[0] * 2.0;
    return Vars{record({y, v[1]}), y};
  };
  CHECK(played(both, {x, part})[1] == made_from({4, 5}, [&](const Shape& i) { return 2 * element(x, i); }));
  CHECK(played_one([](const Vars& v) { return update_slice(v[0], v[1], {2}); }, {numbers({3}), numbers({0})}) ==
        numbers({3}));
}

TEST_CASE("op update_slice: slices that do not lie inside x are refused") {
  Tape tape;
  const Var x = tape.input("x", {4, 5}), part = tape.input("part", {2, 3});
  CHECK_THROWS_WITH_AS(update_slice(x, part, {3, 0}),
                       "update_slice: 'part' of shape (2, 3) from index 3 on axis 0 does not lie inside (4, 5)",
                       ShapeError);
  CHECK_THROWS_AS(update_slice(x, part, {-5, 0}), ShapeError);
  CHECK_THROWS_AS(update_slice(x, part, {0, 0}, {1, 3}), ShapeError);
  CHECK_THROWS_WITH_AS(update_slice(x, tape.input("v", {2}), {0}),
                       "update_slice: 'part' of shape (2,) must have as many axes as x, (4, 5)", ShapeError);
}

TEST_CASE("op flip: reverses axes") {
  const Doubles x = numbers({2, 3});
  CHECK(played_one([](const Vars& v) { return flip(v[0], {-1}); }, {x}) == made_from({2, 3}, [&](const Shape& i) {
          return element(x, {i[0], 2 - i[1]});
        }));
  CHECK(played_one([](const Vars& v) { return flip(v[0], {}); }, {x}) == made_from({2, 3}, [&](const Shape& i) {
          return element(x, {1 - i[0], 2 - i[1]});
        }));
  CHECK(played_one([](const Vars& v) { return flip(v[0], {0}); }, {numbers({0, 3})}).size() == 0);
  check_gradient([](const Vars& v) { return flip(v[0], {0}) * v[1]; }, {numbers({3, 2}), numbers({3, 2}, 1)});
  check_gradient([](const Vars& v) { return square(flip(v[0], {1})); }, {numbers({3, 2})});
  Tape tape;
  CHECK_THROWS_AS(flip(tape.input("x", {2}), {1}), ShapeError);
}
