#include <doctest/doctest.h>

#include <limits>

#include "expansion.hpp"
#include "golden.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
const xt::xarray<std::int64_t> targets{{0, 4, 2}, {1, 0, 3}};
}

TEST_CASE("op cross_entropy: gives PyTorch's values for ignored classes and smoothing") {
  check_golden("ops_norms.json", "cross_entropy");
}

TEST_CASE("op cross_entropy: the kernels of the op and its gradient agree with the expansions") {
  for (double smoothing : {0.0, 0.1})
    for (std::int64_t excluded : {-1, 2})
      for (std::int64_t ignore : {-100, 0}) {
        Tape tape;
        const Var logits = tape.parameter("logits", normal_array({2, 3, 5}, 1, 0, 4));
        const Var narrow = tape.parameter("narrow", single(normal_array({2, 3, 5}, 1, 0, 4)));
        const Var classes = tape.parameter("targets", targets);
        for (const Var& x : {logits, narrow}) {
          const auto [sum, count] = cross_entropy_sum(x, classes, ignore, smoothing, excluded);
          const Var loss = sum / count;
          check_expansion({sum, count, loss, grad(loss, {x})[0]}, x.dtype() == Dtype::float64 ? 1e-13 : 1e-5);
        }
      }
}

TEST_CASE("op cross_entropy: the gradients of a language model's last layer") {
  Tape tape;
  xt::xarray<std::int64_t> classes = xt::xarray<std::int64_t>::from_shape({6});
  for (std::size_t i = 0; i < 6; ++i) classes(i) = i == 4 ? -1 : static_cast<std::int64_t>(i * 900);
  const Var x = tape.parameter("x", single(normal_array({6, 5003}, 9, 0, 3)));
  const auto [sum, count] = cross_entropy_sum(x, tape.parameter("targets", classes), -1);
  check_expansion({sum, count, grad(sum, {x})[0]}, 2e-6);
  CHECK(fast(count).to<std::int64_t>()() == 5);
}

TEST_CASE("op cross_entropy: gradients; second derivatives also through the saved logsumexp") {
  for (double smoothing : {0.0, 0.2})
    check_gradients(
        [&](const Vars& v) {
          const Var classes = v[0].tape().constant(targets);
          return Vars{cross_entropy_sum(v[0], classes, 4, smoothing, smoothing > 0 ? 1 : -1).first};
        },
        {normal_array({2, 3, 5}, 1)});
}

TEST_CASE("op cross_entropy_grad: its own gradients, for each input separately") {
  check_gradients(
      [&](const Vars& v) {
        const Var classes = v[0].tape().constant(targets);
        return apply(builtin_ops().at("cross_entropy_grad"), {v[0], classes, v[1], v[2]},
                     {{"ignore", std::int64_t{4}}, {"label_smoothing", 0.2}});
      },
      {normal_array({2, 3, 5}, 1), normal_array({2, 3}, 2), xt::xarray<double>(1.5)});
}

TEST_CASE("op cross_entropy: only ignored targets, or no targets, give zeros") {
  Tape tape;
  const xt::xarray<std::int32_t> all_ignored{7, 7};
  const Var x = tape.parameter("x", normal_array({2, 3}, 1));
  const auto [sum, count] = cross_entropy_sum(x, tape.parameter("t", all_ignored), 7);
  CHECK(fast(sum).to<double>()() == 0);
  CHECK(fast(count).to<std::int64_t>()() == 0);
  CHECK(fast(grad(sum, {x})[0]).to<double>() == xt::xarray<double>{{0, 0, 0}, {0, 0, 0}});
  const xt::xarray<std::int32_t> none = xt::xarray<std::int32_t>::from_shape({0});
  const auto [no_sum, no_count] =
      cross_entropy_sum(tape.parameter("none", normal_array({0, 3}, 1)), tape.parameter("no t", none));
  check_expansion({no_sum, no_count}, 0);
}

TEST_CASE("op cross_entropy: the class excluded from smoothing may be masked") {
  Tape tape;
  xt::xarray<double> values = normal_array({2, 3, 5}, 1);
  for (std::size_t i = 0; i < 6; ++i) values.data()[i * 5] = -std::numeric_limits<double>::infinity();
  const Var x = tape.parameter("x", values);
  const auto [sum, count] = cross_entropy_sum(x, tape.parameter("t", targets), 0, 0.1, 0);
  check_expansion({sum, count, grad(sum, {x})[0]}, 1e-13);
  CHECK(std::isfinite(fast(sum).to<double>()()));
}

TEST_CASE("op cross_entropy: mistakes") {
  Tape tape;
  const Var x = tape.input("x", {2, 3});
  const Var t = tape.input("t", {2}, Dtype::int64);
  CHECK_THROWS_WITH_AS(cross_entropy_sum(x, tape.input("t3", {3}, Dtype::int64)),
                       "cross_entropy: 'targets' of shape (3,) must have shape (2,), that of the logits without their "
                       "last axis, the classes",
                       ShapeError);
  CHECK_THROWS_AS(cross_entropy_sum(x, tape.input("float targets", {2})), DtypeError);
  CHECK_THROWS_WITH_AS(cross_entropy_sum(x, t, -100, 1.5),
                       "cross_entropy: label_smoothing must be between 0 and 1, got 1.500000", Error);
  CHECK_THROWS_WITH_AS(cross_entropy_sum(x, t, -100, 0.1, 3),
                       "cross_entropy: smoothing_excludes is class 3, but the logits have 3 classes", Error);
}

TEST_CASE("op cross_entropy: smoothing that excludes the only class is refused") {
  Tape tape;
  const Var x = tape.input("x", {2, 1});
  const Var t = tape.input("t", {2}, Dtype::int64);
  CHECK_THROWS_WITH_AS(
      cross_entropy_sum(x, t, -100, 0.1, 0),
      "cross_entropy: label_smoothing 0.1 cannot be spread: smoothing_excludes excludes the only class", Error);
  CHECK_NOTHROW(cross_entropy_sum(x, t, -100, 0, 0));
}

TEST_CASE("op cross_entropy: a target that is not a class is an error when played, and the player can play again") {
  Tape tape;
  const Var x = tape.parameter("x", normal_array({2, 3}, 1));
  const Var t = tape.input("t", {2}, Dtype::int64);
  const Var sum = cross_entropy_sum(x, t, -1).first;
  Player player(tape, {sum, grad(sum, {x})[0]});
  const xt::xarray<std::int64_t> right{0, -1};
  const xt::xarray<std::int64_t> wrong{0, 70};
  player.play({{t, right}});
  const double before = player.scalar(sum);
  try {
    player.play({{t, wrong}});
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("target 70 (element 1) is neither in [0, 3)") != std::string::npos);
  }
  player.play({{t, right}});
  CHECK(player.scalar(sum) == before);
}
