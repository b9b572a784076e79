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

TEST_CASE("op batch_norm_training: the variance of numbers that are far from 0 is exact") {
  constexpr std::int64_t examples = 16, places = 64;
  const Doubles x = made_from({examples, 2, places}, [](const Shape& i) {
    return 4096.0 * static_cast<double>(i[1] + 1) + (i[0] + i[2]) % 2;  // half of them are 1 larger
  });
  const std::vector<Doubles> all = played(
      [](const Vars& v) {
        const BatchNorm norm = batch_norm_training(cast(v[0], Dtype::float32));
        return Vars{norm.mean, norm.variance};
      },
      {x});
  CHECK(all[0] == Doubles{4096.5, 8192.5});
  constexpr double count = examples * places;
  for (std::size_t c = 0; c < 2; ++c) CHECK(all[1][c] == doctest::Approx(0.25 * count / (count - 1)).epsilon(1e-6));
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
                       "batch_norm_training: needs x with a batch and channels as its first axes, got (4,)",
                       ShapeError);
}
