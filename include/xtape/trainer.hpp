/// The trainer, which updates the weights of a model on batches.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "xtape/array_batches.hpp"
#include "xtape/communicator.hpp"
#include "xtape/decode.hpp"
#include "xtape/images.hpp"
#include "xtape/inspect.hpp"
#include "xtape/model.hpp"
#include "xtape/optim.hpp"
#include "xtape/owner.hpp"
#include "xtape/profile.hpp"
#include "xtape/text.hpp"
#include "xtape/tokenizers.hpp"

namespace xtape {

/// Options of private training: DP-SGD (Abadi et al., 2016, Deep learning with differential privacy). The training is
/// then (epsilon, delta)-differentially private for each row of the training split. PrivacyAccountant computes epsilon.
/// If all numbers are 0, the training is not private.
struct PrivacyOptions {
  double clip_norm = 0;  ///< The norm to which the gradient of each row's mean loss is clipped. Above 0.
  /// The standard deviation of the noise on sums of clipped gradients is this number times clip_norm.
  double noise_multiplier = 0;
  double delta = 0;  ///< Above 0 and far below 1 / rows.
};

/// One of several losses of a training, with the weights that it trains: the critic of a GAN, the generator.
struct LossUpdate {
  std::string loss;  ///< The function that computes the loss, with results like those of `loss`.
  /// Patterns of the weights that this loss trains. Empty: all that are trained. Losses may share weights.
  std::vector<std::string> trains = {};
  std::int64_t every = 1;   ///< The loss takes part in each round whose number, from 0, is a multiple of this.
  std::int64_t repeat = 1;  ///< The number of updates with this loss in such a round.
  /// The optimizer of the weights of `trains`, instead of TrainerOptions::optimizer. TrainerOptions::groups come first.
  std::optional<OptimizerOptions> optimizer = {};
  /// The schedule over the updates with this loss, instead of TrainerOptions::schedule over all updates.
  std::optional<ScheduleOptions> schedule = {};
  std::optional<double> clip = {};  ///< Instead of TrainerOptions::clip.
};

/// A measure of one of several losses.
struct LossReport {
  std::string loss;  ///< The name of its function.
  double mean = 0;   ///< The mean over the counted targets.
};

/// The report of an update.
struct StepReport {
  std::int64_t step = 0;  ///< The number of updates, including this one.
  /// The mean loss over the counted targets of all micro-batches, before the update. NaN if a private update has no
  /// row. The sum of `losses`, if the training has several.
  double loss = 0;
  double rate = 0;                      ///< The learning rate.
  double norm = 0;                      ///< The global norm of the gradient of the mean loss, before clipping.
  std::int64_t tokens = 0;              ///< The number of counted targets.
  double seconds = 0;                   ///< Wall time of the update.
  double waiting = 0;                   ///< The part of `seconds` spent waiting for other ranks.
  std::vector<LossReport> losses = {};  ///< With TrainerOptions::updates: the losses of this update.
};

/// The results of an evaluation.
struct Evaluation {
  std::int64_t step = 0;  ///< The number of updates before the evaluation.
  /// The mean over all targets of the split in nats. Each target counts once. A model without the function `loss` has
  /// the first of `losses` here.
  double loss = 0;
  std::int64_t tokens = 0;  ///< The number of targets.
  /// The exponential of the mean of the function `plain_loss`, if the model has this function.
  std::optional<double> perplexity;
  /// The share of targets that are the most likely token, according to the function `accuracy`.
  std::optional<double> accuracy;
  std::optional<double> exact_match;    ///< The share of greedy answers that match exactly, if the recipe asks for it.
  std::int64_t questions = 0;           ///< The number of answers in `exact_match`.
  std::optional<double> bleu;           ///< The BLEU of greedy answers, if the recipe asks for it.
  std::optional<double> epsilon;        ///< The epsilon of all updates so far, if the training is private.
  std::vector<LossReport> losses = {};  ///< With TrainerOptions::updates: the means of all its losses.
  std::string set = {};                 ///< The name of the validation set. "": the validation split.
  std::vector<Evaluation> sets = {};    ///< The results of further validation sets.
};

/// Statistics of the absolute values of a module's results in a play, and of the gradient of the mean loss with respect
/// to these results. A statistic that does not apply to the module is empty.
struct ModuleStatistics {
  std::string module;            ///< "h.0.attn".
  double largest = 0, mean = 0;  ///< Statistics of the first float result.
  double zeros = 0;              ///< The share of elements of the first float result that are 0.
  std::optional<double> gradient_largest, gradient_mean, gradient_zeros;
  /// The share of results of the module's own tanh and sigmoid beyond 0.99 of the range.
  std::optional<double> saturated;
  std::optional<double> masked_rows;  ///< The share of fully masked rows of the module's own softmax.
};
/// A value inside a training step.
struct WatchedValue {
  std::string name;  ///< A name of RecordedLines::values: "h.0.attn.scores".
  std::string type;
  Range range;
};

/// The progress of an update that consists of several plays, for micro-batches and shards.
struct UpdatePart {
  std::int64_t step = 0;   ///< The number of the update, from 1.
  std::int64_t plays = 0;  ///< The number of plays that this rank has finished.
  std::int64_t all = 0;    ///< The approximate number of all plays. Shards without rows are not played.
};

/// Options of the moving average of the weights.
struct EmaOptions {
  /// After each update, average = decay * average + (1 - decay) * weight, for every trained weight. 0: no average.
  double decay = 0;
  bool evaluated = true;  ///< Whether evaluations use the averages in place of the weights.
};

/// Options of a Trainer.
struct TrainerOptions {
  OptimizerOptions optimizer = {};  ///< The optimizer of weights that no group matches.
  ScheduleOptions schedule = {};
  /// If not "", an expression over the hyper-parameters of the model that gives schedule.width: "d_model".
  std::string schedule_width = {};
  /// Micro-batches per update, 1 to 1,048,576. The update equals an update on all micro-batches at once.
  std::int64_t accumulate = 1;
  /// The number of parts that the rows of a batch are split into. The gradients of the parts are summed in a fixed
  /// order. So the bits of results depend on `shards`, but not on which rank or thread computes a part. Each part draws
  /// its own random numbers.
  std::int64_t shards = 1;
  /// The other processes ("ranks") that train with this one. Null means none. All ranks must make the same calls with
  /// the same model, batches and options, and get the same results. There are at most as many ranks as shards.
  std::shared_ptr<Communicator> communicator = {};
  /// The precision of matrix products in updates. Weights and moments stay float32.
  Precision precision = Precision::float32;
  Bits bits = Bits::usual;  ///< Whether updates have the same bits on every processor.
  double clip = 0;          ///< The global norm to which gradients are clipped. 0 means no clipping.
  /// Private training. The batches must be draws of rows (Batches::draws), and each draw must consist of `accumulate`
  /// batches. The loss of an update is then the mean over rows of each row's mean loss. Gradients are divided by the
  /// expected number of rows.
  PrivacyOptions privacy = {};
  std::uint64_t seed = 0;  ///< Determines the random ops.
  int threads = 0;         ///< As in PlayerOptions. Ranks share the cores of a host.
  bool profile = false;    ///< Whether to measure the time of every op, for Trainer::profile.
  /// The limit of the resident memory of the process in bytes, including everything allocated before. 0 means no limit.
  /// Updates and evaluations recompute values to stay below the limit (PlayerOptions::memory). The bits of results do
  /// not change.
  std::size_t memory = 0;
  /// If not null, Trainer::profile records the updates that it measures in this trace.
  std::shared_ptr<Trace> trace = {};
  /// The folders for diagnostics of a failed update or evaluation: a capsule, and the complete failed play
  /// (inspect.hpp). "" writes none.
  std::string capsule, failed_play;
  /// Patterns of weight names, in which `*` matches anything. Only one of the two lists may be given. Weights that
  /// match `frozen`, or do not match `trainable`, stay unchanged. They have no gradients and no moments.
  std::vector<std::string> frozen = {}, trainable = {};
  /// Groups of weights with settings other than those of `optimizer`. The first group that matches a weight applies.
  /// The rates of groups are factors of the schedule's rate. The global norm covers all weights.
  std::vector<OptimizerGroup> groups = {};
  /// Several losses. If empty, the function `loss` trains all weights. Otherwise the training goes through this list in
  /// rounds, and each loss makes its updates in turn, each with the next batches: five of the critic, one of the
  /// generator, five of the critic … All of them count as updates of the training. An update changes the weights of its
  /// loss, and their moments and numbers of updates. Such a training is not private and has no carried states.
  std::vector<LossUpdate> updates = {};
  EmaOptions ema = {};  ///< A moving average of the weights. Checkpoints have it, too.
  /// Whether a round is one update instead, in which every loss computes its gradients from the same batch and the same
  /// weights. Then no weight belongs to two losses, and all have the same schedule and clip.
  bool simultaneous = false;
};

/// A training or evaluation that cannot continue, because a number is not finite or an update has no targets.
class TrainingError : public Error {
 public:
  using Error::Error;
};
/// An evaluation with results that are not finite, or in which a call throws. The updates before it are valid.
class EvaluationError : public TrainingError {
 public:
  using TrainingError::TrainingError;
};

/// Trains a model. Plays the gradients of its function `loss`, which returns (sum of losses, count of targets), and
/// updates the weights. Only one thread at a time may use a trainer. No other thread may use the model at the same
/// time.
///
/// If an input of `loss` has the name of a result, it is a carried state. If the rows continue
/// (Batches::training_continues), the state starts with the result of the previous batch, otherwise with zeros. No
/// gradient flows into the previous batch (truncated back-propagation through time: Williams and Peng, 1990).
/// Evaluations carry states in the same way.
class Trainer {
 public:
  /// `model` and `batches` must outlive the trainer. The constructor records and plans the training step for the
  /// largest batch. The trainer plans steps for other shapes when they occur. Throws DefinitionError if `loss` does not
  /// accept the batches' arrays or depends on no trained weight, a state changes its type, or a pattern matches no
  /// weight. Throws Error if an option is out of range. Throws Error if a private training has carried states,
  /// Precision::bf16, or batches that are not suitable draws.
  Trainer(Model& model, const Batches& batches, const TrainerOptions& options);

  std::int64_t step() const;     ///< The number of updates so far.
  const Store& trained() const;  ///< The weights that are not frozen.
  /// The names of the trained weights that never change because the loss does not depend on them differentiably.
  std::vector<std::string> without_gradient() const;
  /// Makes one update. Throws TrainingError if the loss, a carried state or the gradients are not finite; the error
  /// names the first faulty op and its line in the definition. Throws TrainingError if a weight or moment would
  /// overflow, or if no target counts. After an error, weights, moments and states are unchanged.
  StepReport update();
  /// Returns the first play of the next update, for the first micro-batch and shard. Its results are the sum of the
  /// losses, the count of targets, further results and the gradients of the sum.
  RecordedPlay next_play();
  /// Returns statistics of every module that is applied outside scans and checkpoints, in the order of the definition.
  /// The values are those of the first play of the next update. The additional play has no effect on the training.
  std::vector<ModuleStatistics> statistics();
  /// Returns the types and ranges of values in the play of statistics(). `names` are names of RecordedLines::values.
  /// Throws DefinitionError with the nearest name if there is no such value.
  std::vector<WatchedValue> watched(const std::vector<std::string>& names);
  /// Evaluates on the whole validation split, in mode eval. Throws Error if no target counts. Throws EvaluationError if
  /// a loss or carried state is not finite or a call throws; the error names the op and its line as in update(). With
  /// several ranks, all ranks throw it.
  Evaluation evaluate();
  /// Evaluates on the validation split of other batches, a set with this name.
  Evaluation evaluate(const Batches& on, const std::string& set = "");

  /// With several ranks, a return value of true from `stop`, `save` or `interrupt` on any rank applies to all ranks.
  struct Callbacks {
    std::function<void(const StepReport&)> step;  ///< After every update.
    std::function<void(const UpdatePart&)> part;  ///< After every play of an update except the last.
    /// After every evaluation. May set further measures, by which FitOptions::best may choose.
    std::function<void(Evaluation&)> evaluation;
    /// Called on all ranks after every FitOptions::sample_every updates, while the weights are those of evaluations.
    std::function<void(std::int64_t step)> sample;
    /// Called on rank 0 before updates, as often as FitOptions::statistics_every and watch_every say, with the number
    /// of the update.
    std::function<void(std::int64_t step, const std::vector<ModuleStatistics>&)> statistics;
    std::function<void(std::int64_t step, const std::vector<WatchedValue>&)> watched;
    std::function<bool()> stop;  ///< Called after every update and its evaluation. Returning true ends the training.
    std::function<bool()> save;  ///< Called by Run::train after every update. Returning true writes a checkpoint.
    /// Called between plays, also within updates and evaluations. Returning true ends the training at once. An
    /// unfinished update has no effect. An unfinished evaluation is repeated when the training continues.
    std::function<bool()> interrupt;
    /// Called by Run::train with a sentence about a harmless problem, such as an old checkpoint that cannot be removed.
    std::function<void(const std::string& sentence)> warning;
  };
  struct FitOptions {
    std::int64_t steps = 0;   ///< The most updates in total, including those before a resume. 0: no limit.
    std::int64_t epochs = 0;  ///< The most epochs. 0: no limit.
    /// Updates between evaluations. There is always an evaluation after the last update.
    std::int64_t evaluate_every = 0;
    bool evaluate_epochs = false;  ///< Whether to evaluate after every epoch, too.
    std::int64_t patience = 0;     ///< Ends after this many evaluations in a row without a new best. 0: never.
    /// The measure by which evaluations are compared: "loss", "perplexity", "accuracy", "bleu", "exact_match", or one
    /// of several losses; of a further validation set "loss on NAME". "": the perplexity or, if there is none, the
    /// loss.
    std::string best = {};
    std::int64_t sample_every = 0;      ///< Updates between calls of Callbacks::sample. 0: none.
    std::int64_t statistics_every = 0;  ///< Updates between statistics, starting with the first update. 0: none.
    std::int64_t watch_every = 1;       ///< Updates between reports of watched values, starting with the first update.
    /// The names of the watched values (see Trainer::watched). Failing updates are observed, too.
    std::vector<std::string> watch = {};
  };
  /// Trains until a limit of the options is reached. Returns false if `stop` or `interrupt` ended the training earlier.
  /// Throws Error if a number is negative, if steps and epochs are both 0, if epochs are set but the data has none, or
  /// if a callback of fit calls it. Errors of update() and evaluate() propagate.
  bool fit(const FitOptions& options, const Callbacks& callbacks = {});
  bool is_training() const;    ///< Whether fit() runs, which its callbacks cannot call.
  std::int64_t epoch() const;  ///< The number of complete epochs. 0 if the data has none.
  /// The step of the best evaluation so far, by FitOptions::best. -1 before the first evaluation.
  std::int64_t best_step() const;
  std::int64_t evaluated_step() const;  ///< The step of the last evaluation. -1 before the first.

  /// On rank 0, writes a checkpoint to the directory `path`: weights.safetensors, optimizer.safetensors and state.json.
  /// If the next batch continues from carried states, the checkpoint also contains carried.safetensors. The files are
  /// written to a new directory and flushed to disk. `complete` is then called with this directory, which afterwards
  /// replaces `path`. Throws FileError if a file cannot be written or the parent directory is missing.
  void save(const std::string& path, const std::function<void(const std::string& folder)>& complete = {}) const;
  /// Continues from a checkpoint. The following updates are bitwise equal to those of the run that wrote the
  /// checkpoint. If the batches of an epoch have changed (Batches::order), the current epoch restarts. Throws FileError
  /// if `path` is not a checkpoint, or if its model, optimiser, seed or privacy differ. After an error, nothing has
  /// changed.
  void load(const std::string& path);

  /// Makes `updates` updates twice on the same batches: first to plan and warm up, then to measure. Throws Error if
  /// TrainerOptions::profile is false or updates < 1. Errors of update() propagate.
  TrainingProfile profile(std::int64_t updates);
  /// The plan of the training step for the largest shard, including the memory of partial sums. Valid until the next
  /// call.
  const Plan& plan() const;

 private:
  struct Data;
  Owner<Data> data_;
};

}  // namespace xtape
