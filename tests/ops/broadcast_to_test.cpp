#include <doctest/doctest.h>

#include "ops/recording/op_helpers.hpp"
#include "played.hpp"
#include "xtape/ops.hpp"

using namespace xtape;

TEST_CASE("op broadcast_to: repeats axes of size 1 and adds axes in front") {
  const Doubles x = numbers({2, 1, 3});
  const Doubles y = played_one([](const Vars& v) { return broadcast_to(v[0], {4, 2, 5, 3}); }, {x});
  CHECK(y == made_from({4, 2, 5, 3}, [&](const Shape& i) { return element(x, {i[1], 0, i[3]}); }));
  CHECK(played_one([](const Vars& v) { return broadcast_to(v[0], {2, 0, 3}); }, {x}).size() == 0);
  CHECK(played_one([](const Vars& v) { return broadcast_to(v[0], {2, 2}); }, {numbers({})})(1, 1) == numbers({})());
}

TEST_CASE("op broadcast_to: gradients are summed over repeated axes") {
  check_gradient([](const Vars& v) { return square(broadcast_to(v[0], {2, 2, 3, 3})); }, {numbers({2, 1, 3})});
  check_gradient([](const Vars& v) { return square(broadcast_to(v[0], {2, 3})); }, {numbers({})});
}

TEST_CASE("op broadcast_to: shapes that do not broadcast are refused") {
  Tape tape;
  const Var x = tape.input("x", {2, 3});
  CHECK_THROWS_WITH_AS(
      broadcast_to(x, {2, 4}),
      "broadcast_to: an array of shape (2, 3) does not broadcast to (2, 4): counted from the back, its "
      "sizes must be 1 or those of that shape",
      ShapeError);
  CHECK_THROWS_AS(broadcast_to(x, {3}), ShapeError);
  CHECK_THROWS_AS(broadcast_to(x, {-1, 2, 3}), ShapeError);
  CHECK(tape.size() == 1);
}

TEST_CASE("sum_to is the adjoint of broadcasting") {
  const Doubles x = numbers({4, 2, 5, 3});
  const Doubles y = played_one([](const Vars& v) { return sum_to(v[0], {2, 1, 3}); }, {x});
  const Doubles expected = made_from({2, 1, 3}, [&](const Shape& i) {
    double total = 0;
    for (std::int64_t a = 0; a < 4; ++a)
      for (std::int64_t b = 0; b < 5; ++b) total += element(x, {a, i[0], b, i[2]});
    return total;
  });
  CHECK(near(y, expected, 1e-13));
  CHECK(near(played_one(
                 [](const Vars& v) {
                   return sum_to(v[0], {1, 3});
                 },
                 {numbers({0, 3})}),
             made_from({1, 3}, [](const Shape&) { return 0.0; }), 0));
}
