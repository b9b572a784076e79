/// What a model's functions measure on batches, in mode eval.
#pragma once

#include <memory>

#include "loss.hpp"
#include "recent.hpp"
#include "xtape/train.hpp"

namespace xtape::train {

/// Sums `loss`, and `plain_loss` and `accuracy` where the model has them, over batches. All are recorded on one tape,
/// so that what they share is computed once; a tape for each shape of batches is kept.
class Meter {
 public:
  explicit Meter(Model& model);
  void restart() { sums_.fill(0); }
  void add(const Batch& batch);
  /// Means over everything since the restart. Throws Error where nothing counted.
  Evaluation measured() const;

 private:
  enum Measure : std::size_t { loss, plain_loss, accuracy };
  static constexpr std::array<const char*, 3> functions = {"loss", "plain_loss", "accuracy"};
  struct Measuring {
    NamedSizes sizes;
    Tape tape{Mode::eval};
    NamedVars inputs;
    std::array<Loss, 3> results;
    std::optional<Player> player;
  };
  Measuring& of(const Batch& batch);
  Model& model_;
  std::array<bool, 3> has_{};
  PlayerOptions playing_;
  Recent<Measuring> measurings_{64};
  std::array<double, 6> sums_{};  // sum and count of each
};

}  // namespace xtape::train
