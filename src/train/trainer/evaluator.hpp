/// Measures a model on batches in mode eval.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/recording/function_cache.hpp"
#include "ranks/rank_group.hpp"
#include "train/trainer/failed_play.hpp"
#include "train/trainer/loss.hpp"
#include "xtape/train.hpp"

namespace xtape::train {

/// Sums the results of losses over batches. Also sums those of `plain_loss` and `accuracy` if the model has these
/// functions. For each batch shape, all functions are recorded on one tape, so that shared values are computed once.
/// The first loss determines the carried states. The other functions receive them as inputs.
class Evaluator {
 public:
  /// `losses` are the functions of the training's losses. If the model has a function `loss`, it is the first. The
  /// evaluator calls `make_room` before each planning.
  Evaluator(Model& model, std::vector<std::string> losses, const PlayerOptions& playing,
            std::function<void()> make_room = {});
  /// Evaluates the function `loss`.
  explicit Evaluator(Model& model) : Evaluator(model, {}, model.player_options()) {}
  /// Discards the least recently used plan. Returns whether there was one.
  bool drop() { return measuring_.drop(); }
  void restart();
  /// The sum and the count of each measure, and the number of carried states that are not finite.
  using Sums = std::vector<double>;
  /// Plays batch `item`. If `continues` is true, its rows continue the rows of the previous batch, and the play starts
  /// from the final states of the previous batch. Otherwise the play starts from states of zero.
  Sums play(std::size_t item, const BatchArrays& batch, bool continues = false);
  Sums zero_sums() const { return Sums(sums_.size(), 0); }
  void add(const Sums& sums);  ///< Adds the sums of a batch.
  /// Throws EvaluationError if the sums of batch `item` are not finite. The message names the failing call. All ranks
  /// of the group must call this function together with the same sums. At least one rank must have played the batch.
  void check(const Sums& sums, std::size_t item, ranks::RankGroup& group) const;
  /// Call this function if play(item, …) has thrown on this rank. Writes this play to `folders`. Returns a sentence
  /// about each folder, or "" if no failing call was found.
  std::string saved_failure(std::size_t item) const;
  /// Returns the means over all batches since restart(). Throws Error if no target counts.
  Evaluation measured() const;

  std::string name = "the evaluation";  ///< For errors.
  FailureFolders folders;               ///< The folders for a batch that fails.

 private:
  /// Returns a description of the sum that is not finite, or "" if all are finite.
  std::string what_is_not_finite(const Sums& sums) const;
  struct Measured {
    std::vector<Loss> results;  // by function
    std::vector<CarriedState> states;
  };
  using Measuring = FunctionCache<Measured>;
  Measuring::Recording record(const BatchArrays& batch) const;
  /// Returns the mean of a function's results, if it is measured.
  std::optional<double> mean(const std::string& function) const;
  Model& model_;
  std::vector<std::string> losses_;     // those that reports name; may be empty
  std::vector<std::string> functions_;  // the measures; the first is the loss
  Measuring measuring_;
  Sums sums_;
  Store left_;  // carried states that the last batch left
  struct Failing {
    std::size_t item = 0;
    FailedPlay play;
  };
  /// Returns the failure of a batch that this rank has played, or null if there is none.
  const FailedPlay* failure_of(std::size_t item) const;
  std::optional<Failing> failed_;  // the first batch since restart() that threw or is not finite
};

// Evaluates with an Evaluator that is reused.

/// Thrown to end a training at once from any place in it. Trainer::fit catches it.
struct Interruption {};

/// Adds up the sums of all items in order. Each rank of the group plays some of the items. It calls play(i) in order
/// for its items; play(i) returns the sums of item i. ranks[i] is the rank that plays item i, or -1 if every rank plays
/// it. If `play` throws Error on any rank, or the sums of an item are not finite, all ranks throw EvaluationError with
/// the message of the first failing item. A DefinitionError stays a DefinitionError. A CommunicationError propagates
/// unchanged, because the ranks cannot agree after it.
void add_shared(Evaluator& evaluator, const std::vector<int>& ranks, ranks::RankGroup& group,
                const std::function<Evaluator::Sums(std::size_t)>& play);

/// Does what xtape::evaluate does. The evaluator keeps its plans for the next call. Each rank plays some of the
/// batches. All ranks return the same result as a single process. `between` is called before every batch; an exception
/// that it throws ends the evaluation and propagates.
Evaluation evaluate(Evaluator& evaluator, const Batches& batches, ranks::RankGroup& group,
                    const std::function<void()>& between = {});

}  // namespace xtape::train
