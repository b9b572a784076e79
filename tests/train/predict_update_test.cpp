#include <doctest/doctest.h>

#include "xtape/profile.hpp"

using namespace xtape;

TEST_CASE("the expected time of an update on several hosts") {
  // One update of one host: 8 shards of 0.1 s, and 0.2 s for the weights.
  TrainingProfile profile;
  profile.updates = 2;
  profile.seconds = 2;
  profile.optimizer_seconds = 0.4;
  profile.shards = 8;
  profile.trained_bytes = 400'000'000;
  CHECK(predict_update(profile, {}).seconds == doctest::Approx(1));
  // A slow network: 4 hosts send 3/4 of the gradients, and of the weights, in 3 s.
  const UpdatePrediction slow = predict_update(profile, {4, 1e8, 0.01});
  CHECK(slow.plays == doctest::Approx(0.2));
  CHECK(slow.reduce_scatter == doctest::Approx(3));
  CHECK(slow.update == doctest::Approx(0.05));
  CHECK(slow.all_gather == doctest::Approx(3));
  CHECK(slow.seconds == doctest::Approx(0.2 - 0.2 / 3 + 3 + 0.05 + 3 + 0.04));
  CHECK(slow.speed_up == doctest::Approx(1 / slow.seconds));
  // On a fast one the plays decide.
  CHECK(predict_update(profile, {8, 1e12, 0}).seconds == doctest::Approx(0.1 + 0.025).epsilon(0.01));
  // Three hosts compute 3, 3 and 2 shards, and send two subtrees.
  const UpdatePrediction three = predict_update(profile, {3, 1e8, 0});
  CHECK(three.plays == doctest::Approx(0.3));
  CHECK(three.reduce_scatter == doctest::Approx(2 * 2.667).epsilon(0.01));
  CHECK_THROWS_WITH_AS(predict_update(profile, {9, 1e8, 0}),
                       "9 ranks need at least as many shards of a batch, but batch.shards is 8", Error);
  CHECK_THROWS_AS(predict_update(profile, {2, 0, 0}), Error);
}
