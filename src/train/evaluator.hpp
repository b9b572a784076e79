/// What a model's functions measure on batches, in mode eval.
#pragma once

#include <array>

#include "function_cache.hpp"
#include "loss.hpp"
#include "xtape/train.hpp"

namespace xtape::train {

/// Sums `loss`, and `plain_loss` and `accuracy` where the model has them, over batches. All are recorded on one tape,
/// so that what they share is computed once; a tape for each shape of batches is kept. States carried from one batch to
/// the next are those of `loss`, and the others take them too.
class Evaluator {
 public:
  explicit Evaluator(Model& model);
  void restart() { sums_.fill(0); }
  /// `continues`: its rows go on from those of the batch before, and carried states from what that one left; else they
  /// begin with zeros.
  void add(const Batch& batch, bool continues = false);
  /// Means over everything since the restart. Throws Error where nothing counted.
  Evaluation measured() const;

 private:
  enum Measure : std::size_t { loss, plain_loss, accuracy };
  static constexpr std::array<const char*, 3> functions = {"loss", "plain_loss", "accuracy"};
  struct Measured {
    std::array<Loss, 3> results;
    std::vector<CarriedState> states;
  };
  using Measuring = FunctionCache<Measured>;
  Measuring::Recording record(const NamedSizes& sizes) const;
  Model& model_;
  std::array<bool, 3> has_{};
  Measuring measuring_;
  std::array<double, 6> sums_{};  // sum and count of each
  Store left_;                    // carried states, by the last batch
};

}  // namespace xtape::train
