#include <doctest/doctest.h>

#include "golden.hpp"
#include "played.hpp"
#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"
#include "xtape/ops/convolution.hpp"

using namespace xtape;

TEST_CASE("op batch_norm_training: gives PyTorch's values, statistics and gradients") {
  check_golden("ops_convolution.json", "batch_norm_training", 1e-10, 1e-4);
}

TEST_CASE("op batch_norm_training: gradients") {
  check_gradients(
      [](const Vars& v) {
        const BatchNorm all = batch_norm_training(v[0], v[1], v[2], 0.1);
        return Vars{all.y, all.mean, all.variance};
      },
      {numbers({3, 2, 2}, 1), numbers({2}, 2), numbers({2}, 3)});
}

TEST_CASE("op batch_norm_training: with these statistics, batch_norm gives the same") {
  const Doubles x = numbers({4, 3, 5}, 1);
  const std::vector<Doubles> both = played(
      [](const Vars& v) {
        const BatchNorm all = batch_norm_training(v[0]);
        return Vars{all.y, batch_norm(v[0], all.mean, all.variance * (19.0 / 20))};
      },
      {x});
  CHECK(near(both[0], both[1], 1e-12));
}

TEST_CASE("op batch_norm_training: refuses what does not fit") {
  Tape tape;
  CHECK_THROWS_WITH_AS(batch_norm_training(tape.input("one", {1, 4, 1})),
                       "batch_norm_training: needs more than one number of each channel for a variance, got x of shape "
                       "(1, 4, 1)",
                       ShapeError);
  const Var x = tape.input("x", {2, 4, 3});
  CHECK_THROWS_WITH_AS(
      batch_norm_training(x, tape.input("w", {3})),
      "batch_norm_training: weight must have one number for each of the 4 channels of x, (2, 4, 3), got (3,)",
      ShapeError);
  CHECK_THROWS_WITH_AS(batch_norm_training(tape.input("row", {4})),
                       "batch_norm_training: needs x with a batch and channels as its first axes, got (4,)", ShapeError);
}
