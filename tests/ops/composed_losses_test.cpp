#include <cmath>

#include "loss_checks.hpp"
#include "xtape/ops/losses.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
const xt::xarray<double> some{{0.3, 1.2, -0.7}, {2.1, -1.4, 0.9}}, others{{0.8, -0.4, 1.1}, {0.6, 1.9, -0.35}},
    shares{{0.2, 0.5, 0.3}, {0.7, 0.1, 0.45}}, more{{-1.2, 0.5, 0.35}, {0.4, 0.7, 1.6}};

void check_loss(const char* op, const std::vector<xt::xarray<double>>& points, const Attributes& attributes = {}) {
  check_loss(op, points, attributes, [](const Vars& x) { return std::vector<Operand>(x.begin(), x.end()); });
}
}  // namespace

TEST_CASE("op mse_loss: values, gradients, errors") {
  check_loss("mse_loss", {some, others});
  Tape tape;
  const Var x = tape.input("x", {2, 3});
  CHECK_THROWS_WITH_AS(mse_loss(x, x, "all"), "mse_loss: reduction must be 'none', 'mean' or 'sum', got 'all'", Error);
  CHECK_THROWS_AS(mse_loss(x, tape.input("y", {2})), ShapeError);
  const Array none = fast(mse_loss(tape.constant(Array(Dtype::float32, {0})), 1, "sum"));
  CHECK(none.as<float>()[0] == 0);
}
TEST_CASE("op l1_loss: values, gradients") {
  check_loss("l1_loss", {some, others});
}
TEST_CASE("op huber_loss: values, gradients, errors") {
  check_loss("huber_loss", {some, others}, {{"delta", 0.7}});
  check_gradients_at([](const Var& x) { return huber_loss(x, 0.25, "sum", HUGE_VAL); }, {-3, 0.25, 40});
  Tape tape;
  CHECK_THROWS_WITH_AS(huber_loss(tape.input("x", {1}), 1, "mean", 0), "huber_loss: delta must be above 0, got 0",
                       Error);
}
TEST_CASE("op smooth_l1_loss: values, gradients, beta 0, errors") {
  check_loss("smooth_l1_loss", {some, others}, {{"beta", 0.7}});
  check_loss("smooth_l1_loss", {some, others}, {{"beta", 0.0}});
  Tape tape;
  const Var y = tape.parameter("y", xt::xarray<float>{-2, 0, 3e38F});
  const Var loss = smooth_l1_loss(y, 0, "none", 1e-38);
  CHECK(fast(loss).to<float>() == xt::xarray<float>{2, 0, 3e38F});
  CHECK(fast(grad(sum(loss), {y})[0]).to<float>() == xt::xarray<float>{-1, 0, 1});
  CHECK_THROWS_AS(smooth_l1_loss(tape.input("x", {1}), 1, "mean", -1), Error);
}
TEST_CASE("op kl_div: values, gradients, targets of 0, also where the input is -inf") {
  check_loss("kl_div", {some, shares});
  check_loss("kl_div", {some, others}, {{"log_target", true}});
  const Array y = played<double>([](const Vars& x) { return kl_div(x[0], x[1], "none"); }, {{-3, -1}, {0, 0.5}});
  CHECK(y.as<double>()[0] == 0);
  CHECK(close(y.as<double>()[1], 0.5 * (std::log(0.5) + 1), 1e-15));
  Tape tape;
  const Var input = tape.parameter("x", xt::xarray<double>{-HUGE_VAL, -1});
  const Var target = tape.parameter("t", xt::xarray<double>{0, 1});
  const Var loss = kl_div(input, target, "sum");
  CHECK(fast(loss).as<double>()[0] == 1);
  const Vars by = grad(loss, {input, target});
  CHECK(fast(by[0]).to<double>() == xt::xarray<double>{0, -1});
  CHECK(fast(by[1]).to<double>() == xt::xarray<double>{0, 2});
}
TEST_CASE("op binary_cross_entropy_with_logits: values, weights, gradients") {
  check_loss("binary_cross_entropy_with_logits", {some, shares});
  check_loss("binary_cross_entropy_with_logits", {some, shares, others * 0.1 + 1, shares * 2});
}
TEST_CASE("op hinge_embedding_loss: values, gradients") {
  check_golden("ops_losses.json", "hinge_embedding_loss", 1e-10, 1e-4);
  Tape tape;
  tape.set_default_dtype(Dtype::float64);
  const xt::xarray<double> signs{{1, -1, 1}, {-1, -1, 1}};
  check_gradients_on([&](const Var& x) { return hinge_embedding_loss(x, x.tape().constant(ArrayView(signs))); }, some);
}
TEST_CASE("op margin_ranking_loss: values, gradients") {
  check_loss("margin_ranking_loss", {some, others, more}, {{"margin", 0.3}});
}
TEST_CASE("op gaussian_nll_loss: values, gradients, the least variance") {
  for (bool full : {false, true}) check_loss("gaussian_nll_loss", {some, others, shares}, {{"full", full}});
  Tape tape;
  const Var x = tape.parameter("x", xt::xarray<float>{1}), y = tape.parameter("y", xt::xarray<float>{3});
  const Var variance = tape.parameter("v", xt::xarray<float>{-100});  // to which 1e-6 cannot be added
  const Var loss = gaussian_nll_loss(x, y, variance);
  CHECK(close(fast(loss).as<float>()[0], 0.5 * (std::log(1e-6) + 4e6), 1e-6));
  CHECK(close(fast(grad(loss, {variance})[0]).as<float>()[0], 0.5 * (1e6 - 4e12), 1e-6));
}
TEST_CASE("op poisson_nll_loss: values, gradients") {
  check_loss("poisson_nll_loss", {some, shares * 6 + 0.3}, {{"full", true}});
  check_loss("poisson_nll_loss", {shares, others}, {{"log_input", false}});
}
TEST_CASE("op triplet_margin_loss: values, gradients, errors") {
  check_loss("triplet_margin_loss", {some, others, more}, {{"margin", 2.5}});
  check_loss("triplet_margin_loss", {some, others, more}, {{"swap", true}, {"p", 3.0}});
  Tape tape;
  const Var x = tape.input("x", {2});
  CHECK_THROWS_WITH_AS(triplet_margin_loss(x, x, x, "mean", 1, 0), "triplet_margin_loss: p must be above 0, got 0",
                       Error);
}
TEST_CASE("op cosine_similarity: values, gradients, vectors of 0") {
  check_golden("ops_losses.json", "cosine_similarity", 1e-10, 1e-4);
  for (std::int64_t axis : {0, 1})
    check_gradients([axis](const Vars& x) { return Vars{cosine_similarity(x[0], x[1], axis)}; }, {some, others});
  const Array y = played<double>([](const Vars& x) { return cosine_similarity(x[0], x[1], 0); }, {{0, 0}, {1, 2}});
  CHECK(y.as<double>()[0] == 0);
}
