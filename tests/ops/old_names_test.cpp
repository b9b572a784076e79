#include <doctest/doctest.h>

#include <type_traits>

#include "play.hpp"
#include "xtape/op/op.hpp"
#include "xtape/scan.hpp"
#include "xtape/text.hpp"

using namespace xtape;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
TEST_CASE("names of the version before still mean what the new ones mean") {
  CHECK(std::is_same<Batch, BatchArrays>::value);
  CHECK(std::is_same<Call, OpCall>::value);
  CHECK(std::is_same<Cell, ScanFunction>::value);
  CHECK(std::is_same<Rule, FusionRule>::value);
  Tape tape;
  const Var y = var(tape.constant({1, 2, 3, 6}), {0}, true, 1);  // [1]
  const auto [total, count] = cross_entropy(zeros(tape, {2, 3}), tape.constant({0, 1}), 0);
  Player player(tape, {y, count});
  player.play();
  CHECK(player.scalar(y) == doctest::Approx(14.0 / 3));
  CHECK(player.scalar(count) == 1);
}
#pragma GCC diagnostic pop
