#include <doctest/doctest.h>

#include "play.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
/// [2, 3, 4], each element 100 i + 10 j + k.
xt::xarray<double> numbered() {
  xt::xarray<double> x = xt::xarray<double>::from_shape({2, 3, 4});
  for (std::size_t i = 0; i < 2; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      for (std::size_t k = 0; k < 4; ++k) x(i, j, k) = static_cast<double>(100 * i + 10 * j + k);
  return x;
}

/// Checks the shape of the part, and its elements in row-major order.
void check_part(const std::function<Var(const Var&)>& part, const Shape& shape, const std::vector<double>& elements) {
  Tape tape(Dtype::float64);
  const Var x = tape.parameter("x", numbered());
  const Array got = evaluate(part(x));
  CHECK(got.shape() == shape);
  REQUIRE(got.count() == static_cast<std::int64_t>(elements.size()));
  for (std::size_t i = 0; i < elements.size(); ++i) CHECK(got.as<double>()[i] == elements[i]);
}
}  // namespace

TEST_CASE("at: places drop their axes, slices keep them, other axes stay whole") {
  check_part([](const Var& x) { return x.at(1, 2, 3); }, {}, {123});
  check_part([](const Var& x) { return x.at(-1, -3, -4); }, {}, {100});
  check_part([](const Var& x) { return x.at(0, 1); }, {4}, {10, 11, 12, 13});
  check_part([](const Var& x) { return x.at(all, all, 2); }, {2, 3}, {2, 12, 22, 102, 112, 122});
  check_part([](const Var& x) { return x.at("...", -1); }, {2, 3}, {3, 13, 23, 103, 113, 123});
  check_part([](const Var& x) { return x.at(1, "...", 0); }, {3}, {100, 110, 120});
  check_part([](const Var& x) { return x.at(0, 0, 1, "..."); }, {}, {1});
  check_part([](const Var& x) { return x.at(Slice(1), 0, Slice(1, 3)); }, {1, 2}, {101, 102});
  check_part([](const Var& x) { return x.at(0, Slice(-2), Slice(0, open_end, 3)); }, {2, 2}, {10, 13, 20, 23});
  check_part([](const Var& x) { return x.at(0, Slice(2, open_end, -1), 0); }, {3}, {20, 10, 0});
  check_part([](const Var& x) { return x.at(nullptr, 1, 0, Slice(3)); }, {1, 1}, {103});
  check_part([](const Var& x) { return x.at({0, nullptr, 1, nullptr, 2, nullptr}); }, {1, 1, 1}, {12});
  check_part([](const Var& x) { return x.at(0, 1, Slice(4)); }, {0}, {});
}

TEST_CASE("at: whole axes record nothing, and gradients reach the part") {
  Tape tape(Dtype::float64);
  const Var x = tape.parameter("x", numbered());
  const std::size_t size = tape.size();
  CHECK(x.at(all).id() == x.id());
  CHECK(x.at("...").id() == x.id());
  CHECK(tape.size() == size);
  CHECK_NOTHROW(x.at(all, all, 1));
  const Array g = evaluate(grad(sum(square(x.at(1, all, 2))), x));
  CHECK(g(1, 2, 2) == 2 * 122);
  CHECK(g(1, 2, 1) == 0);
  CHECK(g(0, 2, 2) == 0);
}

TEST_CASE("at: errors name the index, the axis and the line") {
  Tape tape;
  const Var x = tape.input("x", {2, 3});
  const std::size_t size = tape.size();
  CHECK_THROWS_WITH_AS(x.at(all, 3), "at: the index 3 is outside axis 1 of an array of shape (2, 3)", ShapeError);
  CHECK_THROWS_AS(x.at(-3), ShapeError);
  CHECK_THROWS_WITH_AS(x.at(0, 0, 0), "at: 3 indices for an array of shape (2, 3)", ShapeError);
  CHECK_THROWS_AS(x.at(all, all, all), ShapeError);
  CHECK_THROWS_AS(x.at("...", 0, "..."), Error);
  CHECK_THROWS_AS(x.at(".."), Error);
  CHECK_THROWS_AS(x.at(Slice(0, 2, 0)), Error);
  CHECK_THROWS_AS(tape.input("empty", {0}).at(0), ShapeError);
  CHECK(tape.size() == size + 1);
}
