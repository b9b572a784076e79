/// Updates that keep training rows private: DP-SGD (Abadi et al., 2016, Deep learning with differential privacy).
#pragma once

#include "checkpoint.hpp"
#include "loss.hpp"
#include "xtape/distributed.hpp"
#include "xtape/train.hpp"

namespace xtape::train {

/// How updates differ in a private training. In others, they do not.
class Privacy {
 public:
  /// Throws Error, which says what would be right, if the options of a private training are out of range or do not fit
  /// together, the model or the batches.
  Privacy(const Model& model, const Batches& batches, const TrainerOptions& options);

  bool on() const { return options_.clip_norm > 0; }
  /// What sums of gradients are divided by, if so many targets count.
  double divisor(double count) const { return on() ? static_cast<double>(draws_.expected) : count; }
  /// The noise of the update that follows `updates` others.
  GradientNoise noise(std::int64_t updates) const;
  /// What so many updates reveal.
  std::optional<double> epsilon(std::int64_t updates) const;
  /// What checkpoints keep.
  UpdatePrivacy of_updates() const;
  /// Throws FileError if the updates of the checkpoint at `path` were private in another way.
  void check(const std::string& path, const State& state) const;

 private:
  PrivacyOptions options_;
  RowDraws draws_;
  std::int64_t epoch_batches_;
  std::uint64_t seed_;
};

/// Makes the gradients of a recorded loss, and the loss, private: `gradients` become the sums over rows of their
/// clipped gradients, each of the row's mean loss by all `weights` together. The loss becomes the sum of these means,
/// and its count that of drawn rows.
void clip_rows(const Model& model, Tape& tape, double clip_norm, const Vars& weights, RecordedLoss& recorded,
               Vars& gradients);

}  // namespace xtape::train
