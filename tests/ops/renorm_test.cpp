#include <algorithm>
#include <cmath>

#include "constants.hpp"
#include "golden.hpp"
#include "played.hpp"
#include "xtape/ops/reductions.hpp"

using namespace xtape;

namespace {
/// The norm of slice `slice` along `axis`, by a loop over all elements.
double norm_of(const Doubles& x, double p, std::size_t axis, std::int64_t slice) {
  double largest = 0, total = 0;
  for_each_index(shape_of(x), [&](const Shape& index) {
    if (index[axis] != slice) return;
    const double size = std::abs(element(x, index));
    largest = std::max(largest, size);
    total += std::pow(size, p);
  });
  return std::isinf(p) ? largest : std::pow(total, 1 / p);
}

Doubles naive(const Doubles& x, double p, std::size_t axis, double maxnorm) {
  return made_from(shape_of(x), [&](const Shape& index) {
    const double norm = norm_of(x, p, axis, index[axis]);
    return element(x, index) * (norm > maxnorm ? maxnorm / (norm + 1e-7) : 1);
  });
}
}  // namespace

TEST_CASE("op renorm: values of a loop, for every axis and several orders, also of strided inputs") {
  for (const Shape& shape : {Shape{4, 9}, Shape{3, 5, 7}, Shape{2, 3, 1, 4}, Shape{1, 1}})
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
      for (const double p : {0.5, 1.0, 2.0, 3.5, inf})
        for (const double maxnorm : {0.0, 0.8, 1.7, 1000.0}) {
          CAPTURE(axis);
          CAPTURE(p);
          CAPTURE(maxnorm);
          const Doubles x = numbers(shape, 3);
          const Doubles wanted = naive(x, p, axis, maxnorm);
          const auto at = static_cast<std::int64_t>(axis), rank = static_cast<std::int64_t>(shape.size());
          CHECK(
              near(played_one([&](const Vars& v) { return renorm(v[0], p, at - rank, maxnorm); }, {x}), wanted, 1e-12));
          const auto turned = [&](const Vars& v) {
            return transpose(renorm(transpose(v[0]), p, rank - 1 - at, maxnorm));
          };
          CHECK(near(played_one(turned, {x}), wanted, 1e-12));
        }
}

TEST_CASE("op renorm: first and second gradients, of slices that are scaled and of others") {
  for (const double p : {1.0, 2.0, 3.0, inf})
    for (const std::int64_t axis : {0, 1, 2})
      for (const double maxnorm : {0.8, 1.6, 100.0})
        check_gradient([&](const Vars& v) { return renorm(v[0], p, axis, maxnorm); }, {numbers({2, 3, 2}, 5)});
}

TEST_CASE("op renorm: slices of zeros, NaN and infinities, no elements, very large numbers") {
  const auto rows = [](double p, double maxnorm) { return [=](const Vars& v) { return renorm(v[0], p, 0, maxnorm); }; };
  const Doubles special{{0, 0}, {not_a_number, 5}, {inf, 5}, {1, 0}};
  CHECK(near(played_one(rows(2, 1), {special}), {{0, 0}, {not_a_number, 5}, {not_a_number, 0}, {1, 0}}, 0));
  check_gradient(rows(2, 1), {Doubles{{0, 0}, {3, 4}}});
  for (const double p : {2.0, inf})
    for (const Shape& shape : {Shape{0, 3}, Shape{3, 0}})
      CHECK(shape_of(played_one(rows(p, 1), {made_from(shape, [](const Shape&) { return 0.0; })})) == shape);
  CHECK(near(played_one(rows(2, 5), {Doubles{{3e30, 4e30}}}), {{3, 4}}, 1e-12));
}

TEST_CASE("op renorm: mistakes") {
  Tape tape;
  const Var x = tape.input("x", {2, 3});
  CHECK_THROWS_WITH_AS(renorm(tape.input("v", {3}), 2, 0, 1),
                       "renorm: needs at least two axes, received an array of shape (3,)", ShapeError);
  CHECK_THROWS_AS(renorm(x, 2, 2, 1), ShapeError);
  CHECK_THROWS_WITH_AS(renorm(x, 0, 0, 1), "renorm: p must be above 0, got 0", Error);
  for (const double p : {-1.0, not_a_number}) CHECK_THROWS_AS(renorm(x, p, 0, 1), Error);
  CHECK_THROWS_WITH_AS(renorm(x, 2, 0, -0.5), "renorm: maxnorm must be a finite number, at least 0, got -0.5", Error);
  for (const double maxnorm : {inf, not_a_number}) CHECK_THROWS_AS(renorm(x, 2, 0, maxnorm), Error);
}
