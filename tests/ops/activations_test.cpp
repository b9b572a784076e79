#include "xtape/ops/activations.hpp"

#include <cmath>
#include <limits>

#include "golden.hpp"
#include "play.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
/// Golden values of both dtypes, and gradients away from kinks.
void check_activation(const char* op, const std::function<Var(const Argument&)>& function) {
  check_golden("ops_activations.json", op, 1e-10);
  check_gradients_at([&](const Var& x) { return function(x); }, {-4.2, -1.7, -0.3, 0.2, 0.8, 2.3, 6.7});
  const xt::xarray<float> none = xt::xarray<float>::from_shape({0, 3});
  CHECK(played_on<float>([&](const Vars& x) { return function(x[0]); }, {none}).shape() == Shape{0, 3});
  CHECK(std::isnan(played<float>([&](const Vars& x) { return function(x[0]); }, {{std::nanf("")}}).as<float>()[0]));
  Tape tape;
  CHECK(function(tape.input("n", {2}, Dtype::int64)).dtype() == Dtype::float32);
}
using Plain = Var (*)(const Argument&);
}  // namespace

TEST_CASE("op elu: values, gradients") {
  check_activation("elu", [](const Argument& x) { return elu(x, 1.3); });
}
TEST_CASE("op selu: values, gradients") {
  check_activation("selu", Plain(selu));
}
TEST_CASE("op celu: values, gradients, errors") {
  check_activation("celu", [](const Argument& x) { return celu(x, 1.3); });
  Tape tape;
  CHECK_THROWS_WITH_AS(celu(tape.input("x", {1}), 0), "celu: alpha must not be 0", Error);
}
TEST_CASE("op leaky_relu: values, gradients") {
  check_activation("leaky_relu", [](const Argument& x) { return leaky_relu(x, 0.2); });
}
TEST_CASE("op hardswish: values, gradients") {
  check_activation("hardswish", Plain(hardswish));
}
TEST_CASE("op hardsigmoid: values, gradients") {
  check_activation("hardsigmoid", Plain(hardsigmoid));
}
TEST_CASE("op hardtanh: values, gradients, errors") {
  check_activation("hardtanh", [](const Argument& x) { return hardtanh(x, -0.6, 2.5); });
  Tape tape;
  CHECK_THROWS_WITH_AS(hardtanh(tape.input("x", {1}), 1, 0.5),
                       "hardtanh: min_val must not be above max_val, got min_val 1 and max_val 0.5", Error);
}
TEST_CASE("op relu6: values, gradients") {
  check_activation("relu6", Plain(relu6));
}
TEST_CASE("op mish: values, gradients") {
  check_activation("mish", Plain(mish));
}
TEST_CASE("op softsign: values, gradients") {
  check_activation("softsign", Plain(softsign));
}
TEST_CASE("op log_sigmoid: values, gradients") {
  check_activation("log_sigmoid", Plain(log_sigmoid));
}
TEST_CASE("op tanhshrink: values, gradients") {
  check_activation("tanhshrink", Plain(tanhshrink));
}
TEST_CASE("op hardshrink: values, gradients") {
  check_activation("hardshrink", [](const Argument& x) { return hardshrink(x); });
}
TEST_CASE("op softshrink: values, gradients") {
  check_activation("softshrink", [](const Argument& x) { return softshrink(x); });
}
TEST_CASE("op threshold: values, gradients") {
  check_activation("threshold", [](const Argument& x) { return threshold(x, 0.5, -1.5); });
}
TEST_CASE("op prelu: weights for all and for each channel, gradients, errors") {
  check_golden("ops_activations.json", "prelu", 1e-10);
  const auto function = [](const Vars& x) { return Vars{prelu(x[0], x[1])}; };
  check_gradients(function, {{{{0.4, -1.2}, {-0.3, 2.1}}, {{-0.9, 0.5}, {-1.1, -2.0}}}, {0.3, -0.4}});
  check_gradients(function, {{0.4, -1.2, 0.7}, {0.3}});
  Tape tape;
  CHECK(prelu(tape.input("s", {}), tape.input("v", {1})).shape() == Shape{});
  const Var x = tape.parameter("p", xt::xarray<double>{HUGE_VAL, -2}),
            weight = tape.parameter("q", xt::xarray<double>{3});
  CHECK(fast(grad(sum(prelu(x, weight)), {weight})[0]).as<double>()[0] == -2);
  CHECK_THROWS_WITH_AS(prelu(tape.input("x", {2, 3}), tape.input("w", {2})),
                       "prelu: the weight of shape (2,) must have one element, or one for each index of axis 1 of x, "
                       "which has shape (2, 3)",
                       ShapeError);
}
TEST_CASE("op glu: either axis, gradients, errors") {
  check_golden("ops_activations.json", "glu", 1e-10);
  for (std::int64_t axis : {0, 1, -1})
    check_gradients_on([axis](const Var& x) { return glu(x, axis); }, {{0.4, -1.2, 0.3, 0.8}, {-0.3, 2.1, -0.7, 1.5}});
  Tape tape;
  CHECK_THROWS_WITH_AS(glu(tape.input("x", {2, 3})), "glu: cannot halve axis 1 of shape (2, 3): its size must be even",
                       ShapeError);
}
