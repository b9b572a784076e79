#include <doctest/doctest.h>

#include "played.hpp"
#include "xtape/ops.hpp"

using namespace xtape;

TEST_CASE("op tril: keeps the elements on and below a diagonal") {
  const Doubles x = numbers({2, 3, 4});
  for (std::int64_t diagonal : {-4, -1, 0, 2, 5}) {
    CAPTURE(diagonal);
    const auto record = [&](const Vars& v) { return tril(v[0], diagonal); };
    const auto expected = [&](const Shape& i) { return i[2] - i[1] <= diagonal ? element(x, i) : 0.0; };
    CHECK(played_one(record, {x}) == made_from({2, 3, 4}, expected));
    check_gradient([&](const Vars& v) { return square(record(v)); }, {numbers({2, 3})});
  }
  CHECK(played_one([](const Vars& v) { return tril(v[0] * 2.0); }, {x}) ==
        made_from({2, 3, 4}, [&](const Shape& i) { return i[2] <= i[1] ? 2 * element(x, i) : 0.0; }));
  CHECK(played_one([](const Vars& v) { return tril(v[0]); }, {numbers({0, 2})}).size() == 0);
}

TEST_CASE("op triu: keeps the elements on and above a diagonal") {
  const Doubles x = numbers({2, 4, 3});
  for (std::int64_t diagonal : {-5, -1, 0, 1, 4}) {
    CAPTURE(diagonal);
    const auto record = [&](const Vars& v) { return triu(v[0], diagonal); };
    const auto expected = [&](const Shape& i) { return i[2] - i[1] >= diagonal ? element(x, i) : 0.0; };
    CHECK(played_one(record, {x}) == made_from({2, 4, 3}, expected));
    check_gradient([&](const Vars& v) { return square(record(v)); }, {numbers({3, 2})});
  }
}

TEST_CASE("op triu: needs matrices") {
  Tape tape;
  const Var x = tape.input("x", {3});
  CHECK_THROWS_WITH_AS(triu(x), "triu: needs at least two axes, got an array of shape (3,)", ShapeError);
  CHECK_THROWS_AS(tril(x), ShapeError);
}
