#include <doctest/doctest.h>

#include "played.hpp"
#include "xtape/ops.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

TEST_CASE("op pad: adds elements around an array") {
  const Doubles x = numbers({2, 3});
  const auto record = [](const Vars& v) { return pad(v[0], {1, 0}, {2, 1}, -0.5); };
  CHECK(played_one(record, {x}) == made_from({5, 4}, [&](const Shape& i) {
          return i[0] >= 1 && i[0] < 3 && i[1] < 3 ? element(x, {i[0] - 1, i[1]}) : -0.5;
        }));
  CHECK(played_one(
            [](const Vars& v) {
              return pad(transpose(v[0]), {0, 1}, {0, 0});
            },
            {x}) == made_from({3, 3}, [&](const Shape& i) {
          return i[1] > 0 ? element(x, {i[1] - 1, i[0]}) : 0.0;
        }));
  CHECK(played_one([](const Vars& v) { return pad(v[0], {1}, {1}, 3); }, {numbers({0})}) == Doubles{3, 3});
  check_gradient([&](const Vars& v) { return square(record(v)); }, {x});
}

TEST_CASE("op pad: rows of any length, between values at any side, in any layout and of any size of element") {
  struct Padding {
    Shape shape;
    std::vector<std::int64_t> before, after;
  };
  for (const Padding& each : {Padding{{3, 4, 5, 6}, {0, 0, 1, 1}, {0, 0, 1, 1}},
                              {{2, 3, 7, 33}, {0, 2, 0, 3}, {1, 0, 4, 0}},
                              {{2, 5, 4, 8}, {1, 1, 0, 0}, {0, 2, 0, 0}},
                              {{1, 2, 3, 1100}, {0, 0, 2, 0}, {0, 1, 0, 5}},
                              {{2, 2, 2, 9000}, {0, 1, 0, 0}, {0, 1, 0, 1}},
                              {{1, 1, 2, 20000}, {0, 0, 0, 3}, {0, 2, 0, 1}},
                              {{3, 2, 1, 8}, {0, 0, 0, 0}, {0, 0, 0, 0}},
                              {{4, 1, 5, 17}, {2, 0, 1, 0}, {2, 0, 1, 0}}})
    for (const Dtype dtype :
         {Dtype::float64, Dtype::float32, Dtype::int32, Dtype::bfloat16, Dtype::int8, Dtype::boolean})
      for (const bool turned : {false, true}) {
        CAPTURE(to_string(each.shape));
        CAPTURE(name_of(dtype));
        CAPTURE(turned);
        const double value = dtype == Dtype::boolean ? 1 : -3;
        const Doubles x = made_from(each.shape, [&](const Shape& i) {
          const std::int64_t k = 17 * i[0] + 13 * i[1] + 5 * i[2] + i[3];
          return static_cast<double>(dtype == Dtype::boolean ? k % 2 : k % 100);
        });
        Shape shape = each.shape;
        for (std::size_t i = 0; i < shape.size(); ++i) shape[i] += each.before[i] + each.after[i];
        const Doubles found = played_one(
            [&](const Vars& v) {
              Var from = cast(v[0], dtype);
              if (turned) from = flip(transpose(from, {0, 2, 1, 3}), {3});
              const auto in_order = [&](std::vector<std::int64_t> sizes) {
                if (turned) std::swap(sizes[1], sizes[2]);
                return sizes;
              };
              Var padded = pad(from, in_order(each.before), in_order(each.after), value);
              if (turned) padded = transpose(padded, {0, 2, 1, 3});
              return cast(padded, Dtype::float64);
            },
            {x});
        CHECK(found == made_from(shape, [&](const Shape& i) {
                Shape inner = i;
                for (std::size_t k = 0; k < i.size(); ++k) {
                  inner[k] -= each.before[k];
                  if (inner[k] < 0 || inner[k] >= each.shape[k]) return value;
                }
                if (turned) inner[3] = each.shape[3] - 1 - inner[3];
                return element(x, inner);
              }));
      }
}

TEST_CASE("op pad: sizes that do not fit are refused") {
  Tape tape;
  const Var x = tape.input("x", {2, 3});
  CHECK_THROWS_WITH_AS(pad(x, {1}, {1}),
                       "pad: before (1,) and after (1,) must each have one size of at least 0 for every axis of (2, 3)",
                       ShapeError);
  CHECK_THROWS_AS(pad(x, {0, -1}, {0, 0}), ShapeError);
}

TEST_CASE("op shift_right: shifts by one, except in mode predict") {
  const Doubles x = numbers({2, 3, 2});
  CHECK(played_one([](const Vars& v) { return shift_right(v[0]); }, {x}) == made_from({2, 3, 2}, [&](const Shape& i) {
          return i[1] == 0 ? 0.0 : element(x, {i[0], i[1] - 1, i[2]});
        }));
  CHECK(played_one([](const Vars& v) { return shift_right(v[0], -1, 7); }, {x}) ==
        made_from({2, 3, 2}, [&](const Shape& i) {
          return i[2] == 0 ? 7.0 : element(x, {i[0], i[1], 0});
        }));
  CHECK(played_one([](const Vars& v) { return shift_right(v[0]); }, {numbers({2, 0})}).size() == 0);
  check_gradient([](const Vars& v) { return square(shift_right(v[0], 0, 2)); }, {numbers({3, 2})});
  Tape predicting(Mode::predict);
  const Var tokens = predicting.input("tokens", {2, 1}, Dtype::int32);
  CHECK(shift_right(tokens).id() == tokens.id());
  CHECK_THROWS_AS(shift_right(Tape().input("x", {2})), Error);
}

TEST_CASE("op tile: repeats an array along its axes") {
  const Doubles x = numbers({2, 1, 3});
  CHECK(played_one(
            [](const Vars& v) {
              return tile(v[0], {2, 3, 2});
            },
            {x}) == made_from({4, 3, 6}, [&](const Shape& i) {
          return element(x, {i[0] % 2, 0, i[2] % 3});
        }));
  CHECK(played_one([](const Vars& v) { return tile(v[0], {1, 1, 1}); }, {x}) == x);
  CHECK(shape_of(played_one([](const Vars& v) { return tile(v[0], {2, 0, 1}); }, {x})) == Shape{4, 0, 3});
  const Doubles many = numbers({2, 1, 2, 1, 2, 1, 2});  // more axes than one round can repeat
  CHECK(played_one(
            [](const Vars& v) {
              return tile(v[0], {2, 2, 1, 2, 2, 1, 2});
            },
            {many}) == made_from({4, 2, 2, 2, 4, 1, 4}, [&](const Shape& i) {
          return element(many, {i[0] % 2, 0, i[2], 0, i[4] % 2, 0, i[6] % 2});
        }));
  check_gradient([](const Vars& v) { return square(tile(v[0], {2, 3})); }, {numbers({2, 2})});
  Tape tape;
  CHECK_THROWS_WITH_AS(tile(tape.input("x", {2, 3}), {2}),
                       "tile: repeats (2,) must have one count of at least 0 for every axis of (2, 3)", ShapeError);
}

TEST_CASE("op pad: the value of integers is exact, or an error") {
  constexpr std::int64_t odd = 9007199254740993;  // 2^53 + 1, which a double cannot represent
  Tape tape;
  const Var seven = tape.constant(xt::xarray<std::int64_t>{7});
  const Var padded = pad(seven, {1}, {0}, odd);
  Player player(tape, {padded});
  player.play();
  CHECK(player.value<std::int64_t>(padded) == xt::xarray<std::int64_t>{odd, 7});
  CHECK_THROWS_WITH_AS(pad(tape.input("x", {2}, Dtype::int32), {1}, {1}, 0.5),
                       "pad: value 0.5 does not fit int32, "
                       "which holds the integers from -2147483648 to 2147483647: use a float dtype",
                       DtypeError);
}

TEST_CASE("op shift_right: the value of integers is exact, or an error, in every mode") {
  for (Mode mode : {Mode::train, Mode::predict}) {
    Tape tape(mode);
    CHECK_THROWS_WITH_AS(shift_right(tape.input("x", {2}, Dtype::int64), 0, -1.5),
                         "shift_right: value -1.5 does not fit int64, "
                         "which holds the integers from -9223372036854775808 to 9223372036854775807: use a float dtype",
                         DtypeError);
  }
}
