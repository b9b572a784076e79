#include <doctest/doctest.h>

#include "played.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"
#include "xtape/ops/convolution.hpp"
#include "xtape/vmap.hpp"

using namespace xtape;

namespace {
struct Slide {
  std::int64_t length, size, stride, dilation, count;
};
const std::vector<Slide> slides = {{7, 3, 1, 1, 5}, {7, 3, 2, 1, 3}, {8, 3, 2, 2, 2}, {6, 2, 2, 1, 3},
                                   {7, 2, 2, 1, 3}, {7, 1, 3, 1, 3}, {5, 5, 1, 1, 1}, {9, 2, 5, 1, 2}};
}  // namespace

TEST_CASE("op windows: element k of window i is element i * stride + k * dilation") {
  for (const Slide& s : slides) {
    CAPTURE(s.length);
    CAPTURE(s.stride);
    const Doubles x = numbers({2, s.length, 3});
    CHECK(played_one([&](const Vars& v) { return windows(v[0], 1, s.size, s.stride, s.dilation); }, {x}) ==
          made_from({2, s.count, 3, s.size}, [&](const Shape& i) {
            return element(x, {i[0], i[1] * s.stride + i[3] * s.dilation, i[2]});
          }));
    check_gradient([&](const Vars& v) { return square(windows(v[0], -2, s.size, s.stride, s.dilation)); }, {x});
  }
}

TEST_CASE("op fold: sums what overlaps") {
  for (const Slide& s : slides) {
    CAPTURE(s.length);
    CAPTURE(s.stride);
    const Doubles x = numbers({2, s.count, 3, s.size});
    const auto expected = [&](const Shape& at) {
      double sum = 0;
      for (std::int64_t i = 0; i < s.count; ++i)
        for (std::int64_t k = 0; k < s.size; ++k)
          if (i * s.stride + k * s.dilation == at[1]) sum += element(x, {at[0], i, at[2], k});
      return sum;
    };
    const auto folded = [&](const Vars& v) { return fold(v[0], 1, s.length, s.stride, s.dilation); };
    CHECK(near(played_one(folded, {x}), made_from({2, s.length, 3}, expected), 1e-12));
    check_gradient([&](const Vars& v) { return square(folded(v)); }, {x});
  }
}

TEST_CASE("op windows: numbers that do not fit are refused") {
  Tape tape;
  const Var x = tape.input("x", {2, 5});
  CHECK_THROWS_WITH_AS(windows(x, 1, 3, 1, 3), "windows: a window over 7 elements does not fit axis 1 of (2, 5)",
                       ShapeError);
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  CHECK_THROWS_AS(windows(x, 1, 0), ShapeError);
  CHECK_THROWS_AS(windows(x, 1, 2, 0), ShapeError);
  CHECK_THROWS_AS(windows(x, 1, 3, 1, huge), ShapeError);
  CHECK_THROWS_AS(windows(x, 1, huge), ShapeError);
  CHECK(windows(x, 1, 1, huge, huge).shape() == Shape{2, 1, 1});
  CHECK(windows(x, 1, 5, huge).shape() == Shape{2, 1, 5});
  CHECK_THROWS_WITH_AS(fold(x, 0, 3), "fold: axis 0 of (2, 5) must have the 0 windows of 5 elements that lie along 3",
                       ShapeError);
  CHECK_THROWS_AS(fold(tape.input("y", {3}), 0, 3), ShapeError);
}

TEST_CASE("op fold: of no elements, and for one example after the other") {
  CHECK(shape_of(played_one([](const Vars& v) { return fold(windows(v[0], 1, 2), 1, 4); }, {numbers({0, 4})})) ==
        Shape{0, 4});
  const Doubles x = numbers({3, 2, 6});
  const auto both = [](const Var& of) { return fold(square(windows(of, 1, 3, 2)), 1, 6, 2); };
  const Doubles mapped = played_one(
      [&](const Vars& v) { return vmap([&](const Vars& in) { return Vars{both(in[0])}; }, {v[0]})[0]; }, {x});
  CHECK(near(mapped, played_one([&](const Vars& v) { return fold(square(windows(v[0], 2, 3, 2)), 2, 6, 2); }, {x}),
             1e-14));
}
