#include <cmath>
#include <limits>

#include "constants.hpp"
#include "golden.hpp"
#include "indexed.hpp"
#include "play.hpp"
#include "xtape/derivatives.hpp"
#include "xtape/ops/linear_algebra.hpp"
#include "xtape/ops/losses.hpp"
#include "xtape/ops/reductions.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
/// Gradients for some axes.
void check_axes(const std::function<Var(const Var&, const Axes&)>& function) {
  for (const Axes& axes : {Axes{}, Axes{1}, Axes{0, -1}})
    check_gradients_on([&](const Var& x) { return function(x, axes); }, points);
}
}  // namespace

TEST_CASE("op std: values, gradients, none where all are equal") {
  check_golden("ops_reductions.json", "std", 1e-10);
  check_axes([](const Var& x, const Axes& axes) { return standard_deviation(x, axes, false, 1); });
  Tape tape;
  const Var x = tape.parameter("x", xt::xarray<double>{2, 2, 2});
  CHECK(fast(grad(standard_deviation(x), {x})[0]).to<double>() == xt::xarray<double>{0, 0, 0});
  CHECK_THROWS_WITH_AS(standard_deviation(x, {}, false, -1), "std: correction must not be negative, got -1", Error);
}
TEST_CASE("op vector_norm: all orders, gradients, errors") {
  check_golden("ops_reductions.json", "vector_norm", 1e-10);
  for (double p : {1.0, 2.0, 3.0, 1.5, 0.5, -1.0, inf, -inf})
    check_gradients_on([p](const Var& x) { return vector_norm(x, p, {1}); }, points);
  Tape tape;
  const Var x = tape.parameter("x", xt::xarray<double>{{0, 0}, {0, 4}});
  for (double p : {2.0, 3.0, 0.5}) {
    const Array g = fast(grad(sum(vector_norm(x, p, {1})), {x})[0]);
    for (std::size_t i = 0; i < 4; ++i) CHECK(close(g.as<double>()[i], i == 3 ? 1 : 0, 1e-14));
  }
  const Var norm = vector_norm(x, -1, {1});
  CHECK(fast(norm).to<double>() == xt::xarray<double>{0, 0});
  for (const Var& g : {grad(sum(norm), {x})[0], grad(sum(grad(sum(norm), {x})[0]), {x})[0]})
    CHECK(fast(g).to<double>() == xt::xarray<double>{{0, 0}, {0, 0}});
  CHECK_THROWS_WITH_AS(vector_norm(x, std::nan("")), "vector_norm: p must be a number, got NaN", Error);
  CHECK(vector_norm(tape.input("none", {0, 3}), inf, {1}).shape() == Shape{0});
  CHECK_THROWS_WITH_AS(vector_norm(tape.input("e", {0}), inf),
                       "vector_norm: needs at least one element: axis 0 of shape (0,) is empty", ShapeError);
}
TEST_CASE("op root_of_squares: norms and deviations of very large and very small numbers, their gradients") {
  using Function = std::function<Var(const Var&)>;
  std::vector<Function> functions{[](const Var& x) { return linalg::matrix_norm(x); },
                                  [](const Var& x) { return standard_deviation(x, {1}, true); },
                                  [](const Var& x) { return standard_deviation(x, {0}, false, 1); },
                                  [](const Var& x) { return standard_deviation(x); }};
  for (const double p : {2.0, 3.0, 1.5, 0.7, 10.0, 100.0, -1.0, -2.5})
    for (const Axes& axis : {Axes{}, Axes{1}, Axes{0}})
      functions.push_back([=](const Var& x) { return vector_norm(x, p, axis, axis == Axes{0}); });
  const xt::xarray<double> at{{3, -4, 0.5}, {1.25, 2, -3}};
  for (const Dtype dtype : {Dtype::float32, Dtype::float64}) {
    const std::vector<int> exponents = dtype == Dtype::float32 ? std::vector{120, 70, 30, -30, -70, -110}
                                                               : std::vector{1000, 600, 300, -300, -600, -950};
    for (std::size_t k = 0; k < functions.size(); ++k)
      for (const int exponent : exponents) {
        CAPTURE(k);
        CAPTURE(exponent);
        Tape tape;
        const auto scaled = [&](int by) {
          const Var x = tape.parameter("x" + std::to_string(by), xt::xarray<double>(at * std::ldexp(1.0, by)));
          const Var narrow = cast(x, dtype);
          const Var y = functions[k](narrow);
          return Vars{cast(y, Dtype::float64) * std::ldexp(1.0, -by), cast(grad(sum(y), {narrow})[0], Dtype::float64)};
        };
        const Vars near_one = scaled(0), far = scaled(exponent);
        for (const bool reference : {false, true})
          for (std::size_t i = 0; i < 2; ++i) {
            const auto wanted = fast(near_one[i]).to<double>();
            const auto found = reference ? evaluate(far[i]).to<double>() : fast(far[i]).to<double>();
            CHECK(near(found, wanted, dtype == Dtype::float32 ? 1e-5 : 1e-12));
          }
      }
  }
}
TEST_CASE("op root_of_squares: the usual range keeps the bits of the formula; zeros, infinities, NaN, errors") {
  Tape tape;
  const Var x = tape.parameter("x", xt::xarray<float>(xt::cast<float>(numbers({7, 1000}))));
  const Var direct = sqrt(sum(square(x), {1})), root = vector_norm(x, 2, {1});
  CHECK(fast(root).to<float>() == fast(direct).to<float>());
  CHECK(fast(standard_deviation(x, {0})).to<float>() == fast(sqrt(variance(x, {0}))).to<float>());
  CHECK(evaluate(root).to<float>() == evaluate(direct).to<float>());
  const Var odd = tape.parameter("odd", xt::xarray<double>{{0, 0}, {inf, 1}, {not_a_number, 1}, {-3e200, 4e200}});
  const auto found = fast(vector_norm(odd, 2, {1})).to<double>();
  CHECK(found(0) == 0);
  CHECK(found(1) == inf);
  CHECK(std::isnan(found(2)));
  CHECK(found(3) == doctest::Approx(5e200).epsilon(1e-15));
  CHECK(fast(vector_norm(zeros(tape, {2, 0}), 2, {1})).to<float>() == xt::xarray<float>{0, 0});
  CHECK(fast(vector_norm(zeros(tape, {0, 2}), 2, {1})).count() == 0);
  CHECK(fast(cosine_similarity(tape.constant(xt::xarray<float>{3e30f, 4e30f}),
                               tape.constant(xt::xarray<float>{3e30f, 4e30f}), 0))
            .to<float>()() == doctest::Approx(1));
  const auto norms = [](const Vars& v) { return vector_norm(v[0], 2, {0}); };
  check_vmap(norms, {1e200 * numbers({3, 2, 4})});
  check_vmap([](const Vars& v) { return standard_deviation(v[0], {-1}, true); }, {1e-200 * numbers({3, 2, 4})});
  check_vmap([](const Vars& v) { return vector_norm(v[0]); }, {numbers({3})});
  check_jvp(norms, {numbers({2, 3})}, {numbers({2, 3}, 1)});
  // Halves: the squares are float32.
  CHECK(fast(cast(vector_norm(cast(tape.constant(xt::xarray<double>{300, 400}), Dtype::float16)), Dtype::float64))
            .to<double>()() == 500);
  CHECK_THROWS_WITH_AS(apply(builtin_ops().at("root_of_squares"), {odd, sum(odd)}, {{"axis", Axes{1}}}),
                       "root_of_squares: 'squares' of shape () must have shape (4,), the reduced shape of x",
                       ShapeError);
}
TEST_CASE("squares of norms and deviations have second derivatives at 0") {
  const auto curvature = [](const std::function<Var(const Var&)>& function) {
    Tape tape;
    const Var x = tape.parameter("x", xt::xarray<double>{0, 0, 0});
    return fast(hessian(function(x), x)).to<double>();
  };
  const xt::xarray<double> twice = 2 * xt::eye<double>(3);
  CHECK(curvature([](const Var& x) { return square(vector_norm(x)); }) == twice);
  CHECK(curvature([](const Var& x) { return pow(vector_norm(x, 2, {0}, true), 2.0).at(0); }) == twice);
  CHECK(curvature([](const Var& x) {
          const Var norm = vector_norm(x);
          return norm * norm;
        }) == twice);
  CHECK(curvature([](const Var& x) { return square(linalg::matrix_norm(reshape(x, {1, 3}))); }) == twice);
  for (const std::int64_t correction : {0, 1})
    CHECK(curvature([=](const Var& x) { return square(standard_deviation(x, {}, false, correction)); }) ==
          curvature([=](const Var& x) { return variance(x, {}, false, correction); }));
  check_gradients_on([](const Var& x) { return square(vector_norm(x, 2, {1})); }, points);
  check_gradients_on([](const Var& x) { return square(vector_norm(x, 3, {1})); }, points);
  Tape tape;
  const Var norm = vector_norm(tape.parameter("x", xt::xarray<double>{3, 4}));
  CHECK(fast(square(norm)).to<double>()() == 25);
  CHECK(fast(norm * vector_norm(tape.parameter("y", xt::xarray<double>{0, 2}))).to<double>()() == 10);
}
TEST_CASE("op nansum: values, gradients") {
  check_golden("ops_reductions.json", "nansum", 1e-10);
  check_axes([](const Var& x, const Axes& axes) { return nansum(square(x), axes); });
}
TEST_CASE("op nanmean: values, gradients, nothing but NaN") {
  check_golden("ops_reductions.json", "nanmean", 1e-10);
  check_axes([](const Var& x, const Axes& axes) { return nanmean(square(x), axes); });
  const Array y = played<double>([](const Vars& x) { return nanmean(x[0]); }, {{std::nan(""), std::nan("")}});
  CHECK(std::isnan(y.as<double>()[0]));
}
TEST_CASE("op count_nonzero: values, bool, NaN") {
  check_golden("ops_reductions.json", "count_nonzero", 1e-10);
  const Array y = played<double>([](const Vars& x) { return count_nonzero(x[0]); }, {{0, -0.0, 1, std::nan("")}});
  CHECK(y.as<std::int64_t>()[0] == 2);
  Tape tape;
  CHECK(fast(count_nonzero(tape.parameter("b", xt::xarray<bool>{true, false, true}))).as<std::int64_t>()[0] == 2);
}
TEST_CASE("op argmin: values, the least integer, NaN, errors") {
  check_golden("ops_reductions.json", "argmin", 1e-10);
  const auto least = std::numeric_limits<std::int64_t>::min();
  CHECK(
      played<std::int64_t>([](const Vars& x) { return argmin(x[0]); }, {{-5, least, 3, least}}).as<std::int64_t>()[0] ==
      1);
  CHECK(played<double>([](const Vars& x) { return argmin(x[0]); }, {{-inf, std::nan(""), 3}}).as<std::int64_t>()[0] ==
        1);
  Tape tape;
  CHECK_THROWS_WITH_AS(argmin(tape.input("x", {2, 0})),
                       "argmin: needs at least one element: axis 1 of shape (2, 0) is empty", ShapeError);
}
