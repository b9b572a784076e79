#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "xtape/array.hpp"
#include "xtape/init.hpp"

using namespace xtape;

namespace {
std::vector<double> drawn(const Initialiser& initialiser, const Shape& shape, const std::string& name = "w",
                          std::uint64_t seed = 1) {
  Array array(Dtype::float64, shape);
  initialise(array, initialiser, seed, name);
  return {array.as<double>(), array.as<double>() + array.count()};
}

double mean(const std::vector<double>& values, int power = 1) {
  double sum = 0;
  for (double value : values) sum += std::pow(value, power);
  return sum / static_cast<double>(values.size());
}

double largest(const std::vector<double>& values) {
  double found = 0;
  for (double value : values) found = std::max(found, std::abs(value));
  return found;
}
}  // namespace

TEST_CASE("constants") {
  CHECK(drawn({"zeros", {}}, {3}) == std::vector<double>{0, 0, 0});
  CHECK(drawn({"ones", {}}, {2}) == std::vector<double>{1, 1});
  CHECK(drawn({"constant", {{"value", -2.5}}}, {1, 2}) == std::vector<double>{-2.5, -2.5});
}

TEST_CASE("normal numbers have the mean, spread and shape of the normal distribution") {
  const std::vector<double> values = drawn({"normal", {}}, {400, 500});
  CHECK(std::abs(mean(values)) < 0.01);  // 4.5 standard errors
  CHECK(std::abs(mean(values, 2) - 1) < 0.015);
  CHECK(std::abs(mean(values, 3)) < 0.04);
  CHECK(std::abs(mean(values, 4) - 3) < 0.1);
  const std::vector<double> scaled = drawn({"normal", {{"mean", 3}, {"std", 0.02}}}, {400, 500});
  CHECK(scaled[17] == doctest::Approx(3 + 0.02 * values[17]));
  CHECK(drawn({"normal", {}}, {3}).size() == 3);  // an odd count
}

TEST_CASE("truncated normal numbers end at two standard deviations") {
  const std::vector<double> values = drawn({"truncated_normal", {{"std", 0.5}}}, {400, 500});
  CHECK(largest(values) <= 1);
  CHECK(largest(values) > 0.99);
  CHECK(std::abs(mean(values)) < 0.005);
  CHECK(std::sqrt(mean(values, 2)) == doctest::Approx(0.5 * 0.8796).epsilon(0.01));
}

TEST_CASE("uniform numbers fill their range evenly") {
  const std::vector<double> values = drawn({"uniform", {{"low", -1}, {"high", 3}}}, {400, 500});
  CHECK(*std::min_element(values.begin(), values.end()) >= -1);
  CHECK(*std::max_element(values.begin(), values.end()) <= 3);
  CHECK(mean(values) == doctest::Approx(1).epsilon(0.02));
  const auto below = std::count_if(values.begin(), values.end(), [](double value) { return value < 0; });
  CHECK(static_cast<double>(below) / 200000 == doctest::Approx(0.25).epsilon(0.02));
}

TEST_CASE("glorot and he scale with what goes in and out") {
  const double glorot = std::sqrt(6.0 / (300 + 500));
  const std::vector<double> uniform = drawn({"glorot_uniform", {}}, {300, 500});
  CHECK(largest(uniform) <= glorot);
  CHECK(largest(uniform) > 0.999 * glorot);
  CHECK(std::sqrt(mean(drawn({"glorot_normal", {}}, {300, 500}), 2)) ==
        doctest::Approx(std::sqrt(2.0 / 800)).epsilon(0.01));
  CHECK(std::sqrt(mean(drawn({"he_normal", {}}, {300, 500}), 2)) ==
        doctest::Approx(std::sqrt(2.0 / 300)).epsilon(0.01));
  CHECK(std::sqrt(mean(drawn({"he_normal", {{"fan_in", 500}, {"gain", 2}}}, {300, 500}), 2)) ==
        doctest::Approx(2 * std::sqrt(2.0 / 500)).epsilon(0.01));
  const double field = std::sqrt(6.0 / (4 * 30 + 4 * 50));
  CHECK(largest(drawn({"glorot_uniform", {}}, {2, 2, 30, 50})) == doctest::Approx(field).epsilon(0.01));
}

TEST_CASE("uniform and normal numbers of He and LeCun have one spread each") {
  const auto spread = [](const Initialiser& initialiser) { return std::sqrt(mean(drawn(initialiser, {300, 500}), 2)); };
  CHECK(spread(init::he_uniform()) == doctest::Approx(std::sqrt(2.0 / 300)).epsilon(0.01));
  CHECK(spread(init::lecun_uniform()) == doctest::Approx(std::sqrt(1.0 / 300)).epsilon(0.01));
  CHECK(spread(init::lecun_normal(2, 50)) == doctest::Approx(2 * std::sqrt(1.0 / 50)).epsilon(0.01));
  CHECK(largest(drawn(init::he_uniform(), {300, 500})) <= std::sqrt(6.0 / 300));
  CHECK(largest(drawn(init::lecun_uniform(), {300, 500})) <= std::sqrt(3.0 / 300));
}

TEST_CASE("functions give the initialisers of definitions") {
  const auto same = [](const Initialiser& made, const Initialiser& named) {
    return drawn(made, {6, 5}) == drawn(named, {6, 5});
  };
  CHECK(same(init::zeros(), {"zeros", {}}));
  CHECK(same(init::ones(), {"ones", {}}));
  CHECK(same(init::constant(3), {"constant", {{"value", 3}}}));
  CHECK(same(2, {"constant", {{"value", 2}}}));
  CHECK(same(init::normal(0.1), {"normal", {{"std", 0.1}}}));
  CHECK(same(init::normal(1, 0.1), {"normal", {{"mean", 1}, {"std", 0.1}}}));
  CHECK(same(init::truncated_normal(0.1), {"truncated_normal", {{"std", 0.1}}}));
  CHECK(same(init::truncated_normal(1, 0.1), {"truncated_normal", {{"mean", 1}, {"std", 0.1}}}));
  CHECK(same(init::uniform(-1, 2), {"uniform", {{"low", -1}, {"high", 2}}}));
  CHECK(same(init::xavier_uniform(2), {"glorot_uniform", {{"gain", 2}}}));
  CHECK(same(init::glorot_uniform(1, 7, 8), {"glorot_uniform", {{"fan_in", 7}, {"fan_out", 8}}}));
  CHECK(same(init::xavier_normal(), {"glorot_normal", {}}));
  CHECK(same(init::kaiming_normal(), {"he_normal", {}}));
  CHECK(same(init::kaiming_uniform(), {"he_uniform", {}}));
  CHECK(same(init::orthogonal(2), {"orthogonal", {{"gain", 2}}}));
  CHECK(same(Initialiser(), {"zeros", {}}));
}

TEST_CASE("identity has ones where the last two indices are equal") {
  CHECK(drawn(init::identity(2), {2, 3}) == std::vector<double>{2, 0, 0, 0, 2, 0});
  CHECK(drawn(init::eye(), {2, 2, 1}) == std::vector<double>{1, 0, 1, 0});
  Array flat(Dtype::float32, {3});
  CHECK_THROWS_AS(initialise(flat, init::identity(), 1, "w"), ShapeError);
}

TEST_CASE("elements that are given are copied, and must fit") {
  Array values(Dtype::float64, {2});
  values.as<double>()[1] = 4;
  CHECK(drawn(init::from(values), {2}) == std::vector<double>{0, 4});
  Array other(Dtype::float32, {2}), longer(Dtype::float64, {3}), whole(Dtype::int64, {2});
  CHECK_THROWS_AS(initialise(other, init::from(values), 1, "w"), DtypeError);
  CHECK_THROWS_AS(initialise(longer, init::from(values), 1, "w"), ShapeError);
  CHECK_THROWS_AS(initialise(whole, init::zeros(), 1, "w"), DtypeError);
}

TEST_CASE("orthogonal weights have orthonormal rows or columns") {
  for (const Shape& shape : {Shape{5, 8}, Shape{8, 5}, Shape{2, 4, 5}}) {
    const std::vector<double> values = drawn({"orthogonal", {{"gain", 2}}}, shape);
    const std::int64_t columns = shape.back(), rows = count_of(shape) / columns;
    const bool wide = rows < columns;
    const std::int64_t few = std::min(rows, columns), many = std::max(rows, columns);
    const auto element = [&](std::int64_t vector, std::int64_t k) {
      return values[static_cast<std::size_t>(wide ? vector * columns + k : k * columns + vector)];
    };
    for (std::int64_t i = 0; i < few; ++i)
      for (std::int64_t j = 0; j < few; ++j) {
        double dot = 0;
        for (std::int64_t k = 0; k < many; ++k) dot += element(i, k) * element(j, k);
        CHECK(dot == doctest::Approx(i == j ? 4 : 0).epsilon(1e-12));
      }
  }
}

TEST_CASE("numbers depend on the seed, the name and the element alone") {
  const Initialiser normal{"normal", {}};
  CHECK(drawn(normal, {64}) == drawn(normal, {64}));
  CHECK(drawn(normal, {64}) != drawn(normal, {64}, "other"));
  CHECK(drawn(normal, {64}) != drawn(normal, {64}, "w", 2));
  const std::vector<double> many = drawn(normal, {100000}), few = drawn(normal, {64});
  CHECK(std::equal(few.begin(), few.end(), many.begin()));
  Array single(Dtype::float32, {64});
  initialise(single, normal, 1, "w");
  CHECK(single.as<float>()[5] == static_cast<float>(few[5]));
}
