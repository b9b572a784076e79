/// Updates that keep training rows private: DP-SGD (Abadi et al., 2016, Deep learning with differential privacy).
#pragma once

#include "loss.hpp"
#include "xtape/train.hpp"

namespace xtape::train {

/// Throws Error, which says what would be right, if the options of a private training are out of range or do not fit
/// together, the model or the batches. Nothing is wrong if the training is not private.
void check_privacy(const Model& model, const Batches& batches, const TrainerOptions& options);

/// The epsilon of so many updates, for the delta of the options.
double epsilon_of(const PrivacyOptions& privacy, const RowDraws& draws, std::int64_t updates);

/// Makes the gradients of a recorded loss, and the loss, private: `gradients` become the sums over rows of their
/// clipped gradients, each of the row's mean loss by all `weights` together. The loss becomes the sum of these means,
/// and its count that of drawn rows.
void clip_rows(const Model& model, Tape& tape, double clip_norm, const Vars& weights, RecordedLoss& recorded,
               Vars& gradients);

}  // namespace xtape::train
