/// Updates that keep training rows private, with DP-SGD (Abadi et al., 2016, Deep learning with differential privacy).
#pragma once

#include "train/run/checkpoint.hpp"
#include "train/trainer/loss.hpp"
#include "xtape/distributed.hpp"
#include "xtape/train.hpp"

namespace xtape::train {

/// What distinguishes the updates of a private training: the divisor of gradients, the noise and the privacy loss. If
/// the training is not private, the divisor is the usual one, and there is no noise and no privacy loss.
class Privacy {
 public:
  /// Throws Error if the options of a private training are out of range, contradict each other, or do not fit the model
  /// or the batches. The message says which values are valid.
  Privacy(const Model& model, const Batches& batches, const TrainerOptions& options);

  bool on() const { return options_.clip_norm > 0; }
  /// Returns the number by which sums of gradients are divided. `count` is the number of targets of the loss.
  double divisor(double count) const { return on() ? static_cast<double>(draws_.expected) : count; }
  /// Returns the noise of the update that follows `updates` earlier updates.
  GradientNoise noise(std::int64_t updates) const;
  /// Returns epsilon, the privacy loss of this number of updates.
  std::optional<double> epsilon(std::int64_t updates) const;
  /// Returns the values that checkpoints keep.
  UpdatePrivacy of_updates() const;
  /// Throws FileError if the training that wrote the checkpoint at `path` had other privacy settings. `state` is the
  /// state in this checkpoint.
  void check(const std::string& path, const State& state) const;

 private:
  PrivacyOptions options_;
  RowDraws draws_;
  std::int64_t epoch_batches_;
  std::uint64_t seed_;
};

/// Makes the loss of a recording and its gradients private. For each row, the gradient of the row's mean loss with
/// respect to all `weights` is clipped as one vector. `gradients` become the sums of these clipped gradients over the
/// rows. The loss becomes the sum of the mean losses, and its count becomes the number of drawn rows.
void clip_rows(const Model& model, Tape& tape, double clip_norm, const Vars& weights, RecordedLoss& recorded,
               Vars& gradients);

}  // namespace xtape::train
