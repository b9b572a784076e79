// Derivatives and mapped modules in the lines of a definition.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "definitions.hpp"
#include "differences.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;
using xtape::test::error_of;
namespace {
using Numbers = xt::xarray<double>;

/// A network u of x [n, 1], and a function f of the given lines.
std::string network(const std::vector<std::string>& lines, const std::string& result) {
  std::string list;
  for (const std::string& line : lines) list += (list.empty() ? "\"" : ", \"") + line + "\"";
  return R"json({
    "xtape": 2,
    "name": "network",
    "blocks": {
      "mlp": {
        "weights": {
          "first": {"shape": [1, 5], "init": "normal", "std": 1.0},
          "bias": {"shape": [5], "init": "normal", "std": 1.0},
          "second": {"shape": [5, 1], "init": "normal", "std": 1.0}
        },
        "inputs": ["x"],
        "result": "tanh(x @ first + bias) @ second"
      },
      "pair": {"inputs": ["x", "scale"], "result": "x * scale, sum(x * scale)"},
      "noisy": {"inputs": ["x"], "result": "x + uniform(x.shape)"}
    },
    "model": {
      "modules": {"u": {"block": "mlp"}, "pair": {"block": "pair"}, "noisy": {"block": "noisy"},
                  "several": {"block": "mlp", "repeat": 2}},
      "functions": {
        "all": {"inputs": {"x": "float [n, 1]"}, "result": "u(x), pair(x, 2)[1], noisy(x), several(x)"},
        "f": {"inputs": {"x": "float [n, 1]"},
              "do": [)json" +
         list + R"json(], "result": ")json" + result + R"json("}
      }
    }
  })json";
}

Numbers column(double a, double b, double c) {
  Numbers numbers = Numbers::from_shape({3, 1});
  numbers(0, 0) = a, numbers(1, 0) = b, numbers(2, 0) = c;
  return numbers;
}
const Numbers places = column(-0.9, 0.2, 1.4);

std::vector<Numbers> values(const std::vector<std::string>& lines, const std::string& result,
                            const Numbers& x = places) {
  const Model model = Model::parse(network(lines, result), test::in_float64());
  return test::play(model, "f", {{"n", 3}}, {x}, Mode::eval);
}
std::string mistake(const std::string& line) {
  return error_of([&] { values({line}, "out"); });
}

/// (u(x + h) - u(x - h)) / 2h and the second difference, of the network.
Numbers slope_by_differences(double h) {
  return (values({}, "u(x)", places + h)[0] - values({}, "u(x)", places - h)[0]) / (2 * h);
}
Numbers curvature_by_differences(double h) {
  return (values({}, "u(x)", places + h)[0] - 2 * values({}, "u(x)")[0] + values({}, "u(x)", places - h)[0]) / (h * h);
}
}  // namespace

TEST_CASE("derivatives in a definition: grad once and twice, jvp and hvp, against differences") {
  const std::vector<Numbers> found =
      values({"y = u(x)", "dx = grad(sum(y), x)", "dxx = grad(sum(dx), (x,))[0]", "along = jvp(y, x, 2 * x)",
              "product = hvp(sum(y), x, x)", "weighed = grad(y, x, cotangents=x)"},
             "dx, dxx, along, product, weighed");
  const Numbers slope = slope_by_differences(1e-5), curvature = curvature_by_differences(1e-4);
  CHECK(xt::allclose(found[0], slope, 1e-7, 1e-8));
  CHECK(xt::allclose(found[1], curvature, 1e-5, 1e-6));
  CHECK(xt::allclose(found[2], 2 * places * slope, 1e-7, 1e-8));
  CHECK(xt::allclose(found[3], places * curvature, 1e-5, 1e-6));
  CHECK(xt::allclose(found[4], places * slope, 1e-7, 1e-8));
}

TEST_CASE("derivatives in a definition: Jacobians and Hessians") {
  const std::vector<Numbers> found =
      values({"y = u(x)", "j = jacobian(y, x)", "k, = jacobian(y, (x,), mode='forward', chunk_size=2)",
              "h = hessian(sum(y), x)"},
             "j, k, h");
  const Numbers slope = slope_by_differences(1e-5), curvature = curvature_by_differences(1e-4);
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) {
      const double here = i == j ? 1 : 0;
      CHECK(found[0](i, 0, j, 0) == doctest::Approx(here * slope(i, 0)));
      CHECK(found[1](i, 0, j, 0) == doctest::Approx(here * slope(i, 0)));
      CHECK(found[2](i, 0, j, 0) == doctest::Approx(here * curvature(i, 0)).epsilon(1e-4));
    }
}

TEST_CASE("a loss with derivatives in it trains: its gradient by the weights, against differences") {
  Model model =
      Model::parse(network({"y = u(x)", "residual = grad(sum(grad(sum(y), x)), x) + y * y"}, "sum(square(residual))"),
                   test::in_float64());
  const auto loss = [&] { return test::play(model, "f", {{"n", 3}}, {places})[0](); };
  Tape tape;
  const NamedVars inputs = model.inputs(tape, "f", {{"n", 3}});
  const NamedVars results = model.record(tape, "f", inputs);
  const Var bias = model.weights(tape).at("u.bias");
  const Var gradient = grad(results[0].value, {bias})[0];
  const Numbers found = evaluate(gradient, {{inputs[0].value, places}}).to<double>();
  Array weight = model.weight("u.bias");
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(found(i) == doctest::Approx(test::slope_by(weight.as<double>()[i], loss)).epsilon(1e-6));
  }
}

TEST_CASE("vmap in a definition: a module of one example, applied to each") {
  const std::vector<Numbers> found =
      values({"a, total = vmap(pair, x, 3)", "c, d = vmap(pair, x, x[0], in_axes=(1, none), out_axes=(1, 0))",
              "e = vmap(u, x[:, none])"},
             "a, total, c, d, e, u(x)");
  CHECK(found[0] == Numbers(3 * places));
  for (std::size_t i = 0; i < 3; ++i) CHECK(found[1](i) == 3 * places(i, 0));
  CHECK(xt::allclose(found[2], places * places(0, 0)));
  CHECK(found[3].shape() == Numbers::shape_type{1});
  CHECK(found[3](0) == doctest::Approx(xt::sum(places)() * places(0, 0)));
  for (std::size_t i = 0; i < 3; ++i) CHECK(found[4](i, 0, 0) == doctest::Approx(found[5](i, 0)));
  const Numbers same = values({"y = vmap(noisy, zeros((3, 4)), randomness='same')"}, "y")[0],
                different = values({"y = vmap(noisy, zeros((3, 4)))"}, "y")[0];
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(same(0, i) == same(2, i));
    CHECK(different(0, i) != different(2, i));
  }
}

TEST_CASE("derivatives in a definition: what is wrong is said where it stands") {
  const auto says = [](const std::string& line, const std::string& text) {
    CAPTURE(line);
    const std::string found = mistake(line);
    CHECK_MESSAGE(found.find(text) != std::string::npos, found);
    CHECK(found.find("function 'f'") != std::string::npos);
  };
  says("out = grad(u(x), x)", "must have one element");
  says("out = grad(sum(u(x)))", "grad needs 'inputs'");
  says("out = grad(3, x)", "grad: 'outputs' must be an array or a tuple of arrays, not 3");
  says("out = grad(sum(u(x)), 2.0)", "grad: 'inputs' must be an array or a tuple of arrays, not 2");
  says("out = grad(sum(u(x)), (x, 2.0))", "grad: 'inputs' must be an array or a tuple of arrays, not (float64");
  says("out = jvp(u(x), x, (2.0, x))", "jvp: 'tangents' must be an array or a tuple of arrays, not (2, float64");
  says("out = grad(sum(u(x)), x, x, x)", "grad takes at most 3 arguments, got 4");
  says("out = grad(sum(u(x)), x, inputs=x)", "grad: 'inputs' is given twice");
  says("out = grad(sum(u(x)), x, cotangent=x)", "grad has no 'cotangent'; did you mean 'cotangents'?");
  says("out = jacobian(u(x), x, mode='backward')", "'mode' must be 'forward' or 'reverse', not 'backward'");
  says("out = jacobian(u(x), x, chunk_size='two')", "'chunk_size' must be an integer");
  says("out = hessian(u(x), x)", "one element");
  says("out = vmap(x, x)", "vmap: its first argument must be a module or a function");
  says("out = vmap(several, x)", "choose a repeat, several[0]");
  says("out = vmap(u, x, in_axis=0)", "vmap has no 'in_axis'; did you mean 'in_axes'?");
  says("out = vmap(u, x, out_axes=none)", "'out_axes' must be integers");
  says("out = vmap(u, x, randomness=1)", "'randomness' must be 'different' or 'same', not 1");
  says("out = vmap(u, x, in_axes=2)", "has no axis 2");
  says("out = grd(sum(u(x)), x)", "did you mean 'grad'?");
}
