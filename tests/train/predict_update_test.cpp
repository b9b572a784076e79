#include <doctest/doctest.h>

#include "xtape/profile.hpp"

using namespace xtape;

namespace {
/// An update of one host: 8 shards of 0.1 s, and 0.2 s for the weights. The gradients are complete after a third of a
/// play and at its end.
TrainingProfile eight_shards() {
  TrainingProfile profile;
  profile.updates = 2;
  profile.seconds = 2;
  profile.optimizer_seconds = 0.4;
  profile.shards = 8;
  profile.trained_bytes = 400'000'000;
  profile.sendings = {{1.0 / 3, 300'000'000}, {1, 100'000'000}};
  return profile;
}
}  // namespace

TEST_CASE("the expected time of an update on several hosts") {
  const TrainingProfile profile = eight_shards();
  CHECK(predict_update(profile, {}).seconds == doctest::Approx(1));
  // A slow network: 4 hosts send 3/4 of the gradients, and of the weights, in 3 s.
  const UpdatePrediction slow = predict_update(profile, {4, 1e8, 0.01});
  CHECK(slow.plays == doctest::Approx(0.2));
  CHECK(slow.reduce_scatter == doctest::Approx(3));
  CHECK(slow.after_plays ==
        doctest::Approx(0.1 + 0.1 / 3 + 3 - 0.2));  // from the first gradients of the second play on
  CHECK(slow.update == doctest::Approx(0.05));
  CHECK(slow.all_gather == doctest::Approx(3));
  CHECK(slow.seconds == doctest::Approx(0.1 + 0.1 / 3 + 3 + 0.05 + 3 + 0.05));
  CHECK(slow.speed_up == doctest::Approx(1 / slow.seconds));
  CHECK_THROWS_WITH_AS(predict_update(profile, {9, 1e8, 0}),
                       "9 ranks need at least as many shards of a batch, but batch.shards is 8", Error);
  CHECK_THROWS_AS(predict_update(profile, {2, 0, 0}), Error);
}

TEST_CASE("gradients are sent while the play computes others") {
  const TrainingProfile profile = eight_shards();
  // On a fast network, the plays decide: only the last gradients are sent after them.
  const UpdatePrediction fast = predict_update(profile, {8, 7e9, 0});
  CHECK(fast.plays == doctest::Approx(0.1));
  CHECK(fast.reduce_scatter == doctest::Approx(0.05));
  CHECK(fast.after_plays == doctest::Approx(0.0125));
  // With half the speed, the first ones take 0.075 s from 0.033 s on.
  CHECK(predict_update(profile, {8, 3.5e9, 0}).after_plays == doctest::Approx(0.1 / 3 + 0.075 + 0.025 - 0.1));
  TrainingProfile late = profile;
  late.sendings = {{1, 400'000'000}};
  CHECK(predict_update(late, {8, 7e9, 0}).after_plays == doctest::Approx(0.05));
}

TEST_CASE("a rank sends the sums of its subtrees during the plays that complete them") {
  // Three hosts compute shards 0 to 2, 3 to 5, and 6 and 7. Those of the first are subtrees of two shards and of one.
  const UpdatePrediction three = predict_update(eight_shards(), {3, 1e8, 0});
  const double all = 4.0 * 2 / 3;  // seconds to send all gradients once
  CHECK(three.plays == doctest::Approx(0.3));
  CHECK(three.reduce_scatter == doctest::Approx(2 * all));
  CHECK(three.plays + three.after_plays == doctest::Approx(0.1 + 0.1 / 3 + 2 * all));
}
