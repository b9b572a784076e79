/// Optimisers and learning rate schedules, for Trainer and for custom training loops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "xtape/array.hpp"
#include "xtape/owner.hpp"

namespace xtape {

/// Options of an optimiser. Each kind ignores the options that it does not use.
struct OptimizerOptions {
  enum class Kind : std::uint8_t {
    sgd,        ///< Stochastic gradient descent with momentum.
    adam,       ///< Kingma and Ba, 2015. Weight decay is added to the gradient.
    adamw,      ///< Loshchilov and Hutter, 2019. Decoupled decay: w -= rate * weight_decay * w.
    lion,       ///< Chen et al., 2023. w -= rate * sign(beta1 m + (1 - beta1) g), m = beta2 m + (1 - beta2) g.
    rmsprop,    ///< Hinton, 2012, as in PyTorch. Weight decay is added to the gradient.
    adafactor,  ///< Shazeer and Stern, 2018, as in PyTorch: keeps means of squares of rows and columns only.
    muon  ///< Jordan et al., 2024: the orthogonalised momentum, for arrays of rank 2. Others are updated by adamw.
  };
  Kind kind = Kind::adamw;
  double momentum = 0;    ///< For sgd and rmsprop, in [0, 1): v = momentum * v + g, w -= rate * v. For muon, a mean.
  bool nesterov = false;  ///< For sgd: w -= rate * (g + momentum * v) instead (Sutskever et al., 2013). For muon, too.
  double beta1 = 0.9;
  double beta2 = 0.999;
  /// Added outside the root: w -= rate * mhat / (sqrt(vhat) + epsilon), with bias-corrected moments. Must be above 0 as
  /// a float32.
  double epsilon = 1e-8;
  double weight_decay = 0;  ///< sgd and adam add weight_decay * w to the gradient.
  /// Whether to decay all arrays. If false, only arrays of rank 2 or more decay, so no biases or norms.
  bool decay_all = false;
  /// For adam and adamw: whether arrays of at least 4,096 elements keep moments of eight bits (Dettmers et al., 2022).
  bool eight_bits = false;
  double alpha = 0.99;        ///< For rmsprop: v = alpha * v + (1 - alpha) * g^2.
  bool centered = false;      ///< For rmsprop: divide by the standard deviation of gradients, not by their mean square.
  double beta2_decay = -0.8;  ///< For adafactor: update t forgets the share t^beta2_decay of the means of squares.
  double least_scale = 1e-3;  ///< For adafactor: the rate is a factor of a weight's root mean square, at least of this.
  double most_change = 1;     ///< For adafactor: limits the root mean square of changes, before the rate.
  std::int64_t iterations = 5;  ///< For muon: the number of Newton-Schulz iterations.
  /// For muon: the rate of an array [m, n] is multiplied by sqrt(max(1, m / n)), or with `match_adamw` by 0.2 *
  /// sqrt(max(m, n)). Rates and decays are then like those of adamw (Liu et al., 2025).
  bool match_adamw = false;
  /// A factor, at least 0, by which each update multiplies its learning rate. If empty, the factor is 1.
  std::optional<double> rate = {};
  bool frozen = false;  ///< Whether the weights stay unchanged: no moments, no decay, no part in the global norm.
};

/// Stochastic gradient descent. Converts to OptimizerOptions: Sgd{.rate = 0.1, .momentum = 0.9}.
struct Sgd {
  std::optional<double> rate = {};
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  bool decay_all = false;
  operator OptimizerOptions() const;  // NOLINT: converts by intent
};
/// Adam. Converts to OptimizerOptions.
struct Adam {
  std::optional<double> rate = {};
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0;
  bool decay_all = false;
  bool eight_bits = false;
  operator OptimizerOptions() const;  // NOLINT: converts by intent
};
/// AdamW. Converts to OptimizerOptions.
struct AdamW {
  std::optional<double> rate = {};
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0;
  bool decay_all = false;
  bool eight_bits = false;
  operator OptimizerOptions() const;  // NOLINT: converts by intent
};
/// Lion. Converts to OptimizerOptions.
struct Lion {
  std::optional<double> rate = {};
  double beta1 = 0.9, beta2 = 0.99;
  double weight_decay = 0;
  bool decay_all = false;
  operator OptimizerOptions() const;  // NOLINT: converts by intent
};
/// RMSprop. Converts to OptimizerOptions.
struct RmsProp {
  std::optional<double> rate = {};
  double alpha = 0.99, momentum = 0, epsilon = 1e-8;
  bool centered = false;
  double weight_decay = 0;
  bool decay_all = false;
  operator OptimizerOptions() const;  // NOLINT: converts by intent
};
/// Adafactor. Converts to OptimizerOptions.
struct Adafactor {
  std::optional<double> rate = {};
  double beta2_decay = -0.8, least_scale = 1e-3, most_change = 1;
  double weight_decay = 0;
  bool decay_all = false;
  operator OptimizerOptions() const;  // NOLINT: converts by intent
};
/// Muon for arrays of rank 2, and AdamW with these betas and this epsilon for all others. Embeddings and the last layer
/// usually have a group with AdamW. Converts to OptimizerOptions.
struct Muon {
  std::optional<double> rate = {};
  double momentum = 0.95;
  bool nesterov = true;
  std::int64_t iterations = 5;
  bool match_adamw = false;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0;
  bool decay_all = false;
  operator OptimizerOptions() const;  // NOLINT: converts by intent
};
/// No optimiser. The weights stay unchanged.
struct Frozen {
  operator OptimizerOptions() const;  // NOLINT: converts by intent
};

/// A group of weights and their optimiser. In a list of groups, the first group that matches a weight applies.
struct OptimizerGroup {
  /// A pattern of names, in which `*` matches anything, including dots: "*.bias", "h.[0-5].*", "*".
  std::string weights;
  OptimizerOptions options;
  /// In a Trainer, the number of updates before which the weights stay unchanged. Then they are trained like the
  /// others, and count their updates from there on.
  std::int64_t frozen_until = 0;
};

/// An update that would make a weight or moment infinite or NaN. The message names the array, the element and its
/// gradient. The update changes nothing.
class UpdateError : public Error {
 public:
  using Error::Error;
};

/// Updates the arrays of a store with their gradients. The optimiser's own state is a store, too. Only one thread at a
/// time may use an optimiser.
class Optimizer {
 public:
  /// `weights` are the arrays to update, float32 or float64. The optimiser shares their memory. `threads` is as in
  /// PlayerOptions. Throws Error if an option is out of range, DtypeError if a weight is not a float.
  Optimizer(const Store& weights, const OptimizerOptions& options, int threads = 0);
  /// Like the constructor above, with options for groups of weights: Optimizer(weights, {{"*.bias", Sgd{}}, {"*",
  /// AdamW{}}}). The global norm covers all groups. Throws the same errors. Also throws Error if no group matches a
  /// weight, or if a pattern matches no weight.
  template <std::size_t n>
  Optimizer(const Store& weights, const OptimizerGroup (&groups)[n], int threads = 0)
      : Optimizer(InGroups{}, weights, {groups, groups + n}, threads) {}
  /// The same with a std::vector<OptimizerGroup>.
  template <class Groups, class = std::enable_if_t<std::is_same<Groups, std::vector<OptimizerGroup>>::value>>
  Optimizer(const Store& weights, const Groups& groups, int threads = 0)
      : Optimizer(InGroups{}, weights, groups, threads) {}

  /// Makes one update with the gradients times `scale`. If clip > 0, the gradients are also multiplied by min(1, clip /
  /// (norm + 1e-6)), as in PyTorch's clip_grad_norm_. `gradients` has one dense view per weight, in the store's order,
  /// of its shape and dtype. If a view is empty (ArrayView()), its weight and its moments stay unchanged, without
  /// decay. Frozen weights stay unchanged for any gradients. Returns the global norm of the scaled gradients before
  /// clipping. If the norm is not finite, nothing changes. Does not allocate. Gives the same bits for any number of
  /// threads. Throws Error, DtypeError or ShapeError if the gradients do not fit. Throws Error if the rate is not
  /// finite, or the clip is negative or NaN. Throws UpdateError if a weight or moment would overflow. (Adam's second
  /// moment contains squares. In float32, it overflows for gradients of 2e19 or more.)
  double update(const std::vector<ArrayView>& gradients, double rate, double scale = 1, double clip = 0);
  /// The moments and the number of updates. Moments are named by kind and weight ("first.h.0.attn.c_attn.weight"). The
  /// kinds are "first" and "second" (adam, adamw; with eight bits, int8 codes, and "first_scales" and "second_scales",
  /// float32, for each 256 elements), "velocity" (sgd and rmsprop with momentum, muon), "first" (lion), "second"
  /// (rmsprop; if centered, "first", too), "rows" and "columns" (adafactor, of the last two axes; "second" for arrays
  /// of rank 1). "updates" is the number of updates of each weight, int64 [weights]: an update
  /// without its gradient does not count. To continue from a checkpoint, write to these arrays.
  const Store& state() const;
  std::int64_t updates() const;  ///< The number of updates: the most of any weight.

 private:
  friend class DistributedOptimizer;
  struct InGroups {};
  Optimizer(InGroups, const Store& weights, const std::vector<OptimizerGroup>& groups, int threads);
  struct Data;
  Owner<Data> data_;
};

/// Ends a training when a loss no longer improves, and restores the weights with the lowest loss:
///
///   EarlyStopping stop(weights, 5);
///   do { … } while (!stop(validation_loss));
///
/// To continue from a checkpoint, save `state`, and assign its arrays later.
class EarlyStopping {
 public:
  /// The object shares the memory of `weights`. The training ends after `patience` evaluations in a row without a new
  /// lowest loss. 0 means never. Throws Error if `patience` is negative or a weight is empty.
  EarlyStopping(const Store& weights, std::int64_t patience);
  /// Records the loss of an evaluation. NaN is never the lowest loss. Copies the weights if the loss is the lowest so
  /// far. Returns whether the training ends. If it ends, restores the best weights.
  bool operator()(double loss);
  /// Restores the weights of the best evaluation, for loops that end for another reason. Does nothing before the first
  /// evaluation.
  void restore();
  double best() const;                   ///< The lowest loss. Infinite before the first evaluation.
  std::int64_t best_evaluation() const;  ///< The number of the best evaluation, from 0. -1 before the first.
  /// Returns the state, which shares its memory with this object. "best.NAME" contains the best value of each weight.
  /// "loss", float64 [], contains the lowest loss. "evaluations", int64 [2], contains the number of evaluations and the
  /// number of the best evaluation.
  Store state() const;

 private:
  struct Data;
  Owner<Data> data_;
};

/// The learning rate by step. The first step is 1. During warm-up, the rate rises linearly: rate * step / warmup. With
/// noam, it rises to the highest rate of the noam formula.
struct ScheduleOptions {
  enum class Kind : std::uint8_t {
    constant,      ///< `rate` after the warm-up.
    linear,        ///< Linear from `rate` at the end of the warm-up to `final_rate` at step `steps`, then constant.
    cosine,        ///< Like linear, but along half a cosine (Loshchilov and Hutter, 2017).
    exponential,   ///< Like linear, but by the same factor in each step. `rate` and `final_rate` are above 0.
    inverse_sqrt,  ///< rate * sqrt(max(warmup, 1) / step) after the warm-up.
    noam           ///< rate * width^-0.5 * min(step^-0.5, step * warmup^-1.5) (Vaswani et al., 2017).
  };
  Kind kind = Kind::constant;
  double rate = 1e-3;
  double final_rate = 0;
  std::int64_t warmup = 0;  ///< The number of warm-up steps. noam needs at least 1; 4000 is the published value.
  /// For linear, cosine and exponential: the step at which final_rate is reached. For a part of a list: its last step.
  std::int64_t steps = 0;
  std::int64_t epochs = 0;   ///< If `steps` is 0, a Trainer sets `steps` to the updates of this many epochs.
  std::int64_t width = 512;  ///< For noam: d_model.
  /// Warm restarts of linear, cosine and exponential, instead of an end: if above 0, the number of steps of the first
  /// period after the warm-up. Each period begins with `rate`, as in PyTorch's CosineAnnealingWarmRestarts, and is
  /// `restart_factor` (at least 1) times as long as the one before.
  std::int64_t restart_every = 0;
  std::int64_t restart_factor = 1;
  /// If not empty, a list of schedules, one after the other, and the members above do not matter, except `rate` for
  /// StepOptions. The steps of a part count from its beginning. Each part but the last needs its number of steps; after
  /// the last, its last rate stays. Parts can be lists, too.
  std::vector<ScheduleOptions> parts = {};
};

/// Returns the learning rate of step `step` >= 1. Throws Error if an option is out of range.
double rate_at(const ScheduleOptions& options, std::int64_t step);

}  // namespace xtape
