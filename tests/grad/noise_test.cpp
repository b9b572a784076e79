// Gaussian noise for clipped gradients.
#include <doctest/doctest.h>

#include <cmath>

#include "per_example.hpp"
#include "xtape/ops.hpp"
#include "xtape/per_example.hpp"
#include "xtape/player.hpp"

using namespace xtape;

TEST_CASE("per-example: noise is normal, differs by element, var and step, and repeats for a step") {
  Tape tape;
  const Var x = tape.constant(Array(Dtype::float64, {300, 101})), y = tape.constant(Array(Dtype::float64, {300, 101}));
  const Vars noisy = with_noise({x, y + 5}, 3.0);
  CHECK(noisy[0].type() == x.type());
  Player player(tape, noisy);
  player.play({}, 1);
  const Doubles first = player.view(noisy[0]).to<double>() / 3, second = (player.view(noisy[1]).to<double>() - 5) / 3;
  const auto mean_of = [&](const Doubles& values) { return xt::mean(values)(); };
  const double error = 5 / std::sqrt(static_cast<double>(first.size()));
  for (const Doubles& z : {first, second}) {
    CHECK(std::abs(mean_of(z)) < error);
    CHECK(std::abs(mean_of(z * z) - 1) < 2 * error);
    CHECK(std::abs(mean_of(z * z * z)) < 4 * error);
    CHECK(std::abs(mean_of(z * z * z * z) - 3) < 10 * error);
    double beyond_two = 0;
    for (const double each : z) beyond_two += std::abs(each) > 2 ? 1 : 0;
    CHECK(beyond_two / static_cast<double>(z.size()) == doctest::Approx(0.0455).epsilon(0.15));
  }
  CHECK(std::abs(mean_of(first * second)) < error);
  const std::size_t half = first.size() / 2;
  double pairs = 0;  // the two numbers of a pair are independent
  for (std::size_t i = 0; i < half; ++i) pairs += first.flat(i) * first.flat(i + half) / static_cast<double>(half);
  CHECK(std::abs(pairs) < 2 * error);
  player.play({}, 2);
  CHECK(std::abs(mean_of(first * player.view(noisy[0]).to<double>() / 3)) < error);
  player.play({}, 1);
  check_near(player.view(noisy[0]).to<double>() / 3, first, 0);
}

TEST_CASE("per-example: noise for arrays of one element and of none, and errors") {
  Tape tape;
  const Var one = tape.input("one", {}), none = tape.input("none", {0, 3}), whole = tape.input("i", {2}, Dtype::int64);
  const std::size_t size = tape.size();
  for (const double bad : {-1.0, std::nan(""), HUGE_VAL})
    CHECK_THROWS_WITH_AS(with_noise({one}, bad), doctest::Contains("finite and at least 0"), Error);
  CHECK_THROWS_WITH_AS(with_noise({one, whole}, 1), doctest::Contains("needs float arrays, got int64 (2,)"),
                       DtypeError);
  CHECK_THROWS_AS(with_noise({}, 1), Error);
  CHECK(tape.size() == size);
  const Vars noisy = with_noise({one, none}, 1);
  Player player(tape, noisy);
  const xt::xarray<float> value(2.0F), empty = xt::zeros<float>({0, 3});
  player.play({{one, value}, {none, empty}}, 0);
  CHECK(player.scalar(noisy[0]) != 2);
  CHECK(player.view(noisy[1]).shape() == Shape{0, 3});
}
