/// Optimisers and learning rate schedules, for Trainer and for training loops of your own.
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

/// Options of an optimiser. It ignores those that its kind does not use.
struct OptimizerOptions {
  enum class Kind : std::uint8_t {
    sgd,   ///< Stochastic gradient descent with momentum.
    adam,  ///< Kingma and Ba, 2015; weight decay is added to the gradient.
    adamw  ///< Loshchilov and Hutter, 2019: decoupled decay, w -= rate * weight_decay * w.
  };
  Kind kind = Kind::adamw;
  double momentum = 0;    ///< For sgd, in [0, 1): v = momentum * v + g, w -= rate * v …
  bool nesterov = false;  ///< … or w -= rate * (g + momentum * v) (Sutskever et al., 2013).
  double beta1 = 0.9;
  double beta2 = 0.999;
  /// Outside the root: w -= rate * mhat / (sqrt(vhat) + epsilon), with bias-corrected moments. Above 0 as a float32.
  double epsilon = 1e-8;
  double weight_decay = 0;  ///< sgd and adam add weight_decay * w to the gradient.
  bool decay_all = false;   ///< Decay all arrays; else only those of rank 2 or more (no biases, no norms).
  /// The learning rate is this times the one that an update is given; without it, that one. At least 0.
  std::optional<double> rate = {};
  bool frozen = false;  ///< The weights stay unchanged: no moments, no decay, no part in the global norm.
};

/// Stochastic gradient descent, to pass as OptimizerOptions: Sgd{.rate = 0.1, .momentum = 0.9}.
struct Sgd {
  std::optional<double> rate = {};
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  bool decay_all = false;
  operator OptimizerOptions() const;  // NOLINT: converts by intent
};
/// Adam, in the same way.
struct Adam {
  std::optional<double> rate = {};
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0;
  bool decay_all = false;
  operator OptimizerOptions() const;  // NOLINT: converts by intent
};
/// AdamW, in the same way.
struct AdamW {
  std::optional<double> rate = {};
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0;
  bool decay_all = false;
  operator OptimizerOptions() const;  // NOLINT: converts by intent
};
/// No optimiser: the weights stay unchanged.
struct Frozen {
  operator OptimizerOptions() const;  // NOLINT: converts by intent
};

/// Weights, and how they are updated. In a list of groups, the first that matches a weight decides.
struct OptimizerGroup {
  std::string weights;  ///< A pattern of names, in which `*` matches anything, dots too: "*.bias", "h.[0-5].*", "*".
  OptimizerOptions options;
};

/// An update that would make a weight or moment infinite or NaN. The message names it, the element and its gradient.
/// Nothing has changed.
class UpdateError : public Error {
 public:
  using Error::Error;
};

/// Updates the arrays of a store from their gradients. Its own state is a store too. For one thread at a time.
class Optimizer {
 public:
  /// `weights` are the arrays to update, float32 or float64; their memory is shared. `threads` 0:
  /// omp_get_max_threads(). Throws Error if an option is out of range, DtypeError if a weight is not a float.
  Optimizer(const Store& weights, const OptimizerOptions& options, int threads = 0);
  /// The same with options for groups of weights: Optimizer(weights, {{"*.bias", Sgd{}}, {"*", AdamW{}}}). All have one
  /// global norm. Also throws Error for a weight that no group matches and a pattern that matches no weight.
  template <std::size_t n>
  Optimizer(const Store& weights, const OptimizerGroup (&groups)[n], int threads = 0)
      : Optimizer(InGroups{}, weights, {groups, groups + n}, threads) {}
  /// The same from a std::vector<OptimizerGroup>.
  template <class Groups, class = std::enable_if_t<std::is_same<Groups, std::vector<OptimizerGroup>>::value>>
  Optimizer(const Store& weights, const Groups& groups, int threads = 0)
      : Optimizer(InGroups{}, weights, groups, threads) {}

  /// One update by the gradients times `scale`. If clip > 0, they are also multiplied by min(1, clip / (norm + 1e-6)),
  /// as in PyTorch's clip_grad_norm_. `gradients` has one dense view per weight, in the store's order, of its shape and
  /// dtype; a weight with an empty view (ArrayView()) and its moments stay unchanged, without decay, as do frozen
  /// weights, whatever their gradients are. Returns the global
  /// norm of the scaled gradients before clipping; if it is not finite, nothing is changed. Does not allocate; gives
  /// the same bits for any number of threads. Throws Error, DtypeError or ShapeError for gradients that do not fit,
  /// Error for a rate that is not finite or a clip that is not at least 0, UpdateError if a weight or moment would
  /// overflow. (Adam's second moment is of squares: in float32 it overflows from gradients of 1e19 on.)
  double update(const std::vector<ArrayView>& gradients, double rate, double scale = 1, double clip = 0);
  /// The moments, named by kind and weight ("first.h.0.attn.c_attn.weight"), and "updates", the number of updates,
  /// int64 [1]. Kinds are "first" and "second" (adam, adamw) or "velocity" (sgd with momentum). To continue from a
  /// checkpoint, write to these arrays.
  const Store& state() const;
  std::int64_t updates() const;  ///< The number of updates.

 private:
  struct InGroups {};
  Optimizer(InGroups, const Store& weights, const std::vector<OptimizerGroup>& groups, int threads);
  struct Data;
  Owner<Data> data_;
};

/// Ends a training when a loss no longer improves, and gives the weights back that had the lowest:
///
///   EarlyStopping stop(weights, 5);
///   do { … } while (!stop(validation_loss));
class EarlyStopping {
 public:
  /// `weights` share their memory, as for Optimizer. `patience`: after so many evaluations in a row without a new best
  /// one, the training ends; 0: never. Throws Error if it is negative, or a weight is empty.
  EarlyStopping(const Store& weights, std::int64_t patience);
  /// Notes the loss of an evaluation, of which a NaN is never the best. Copies the weights if it is the lowest so far.
  /// Returns whether the training ends; the weights are then restored.
  bool operator()(double loss);
  /// Gives the weights the values that they had at the best evaluation, for loops that end otherwise; before an
  /// evaluation, does nothing.
  void restore();
  double best() const;                   ///< The lowest loss; infinite before.
  std::int64_t best_evaluation() const;  ///< Its number, from 0 on; -1 before.

 private:
  struct Data;
  Owner<Data> data_;
};

/// The learning rate by step; the first step is 1. During warm-up it rises linearly, rate * step / warmup; with noam,
/// to the highest rate of its formula.
struct ScheduleOptions {
  enum class Kind : std::uint8_t {
    constant,      ///< `rate` after the warm-up.
    linear,        ///< From `rate` at the end of the warm-up to `final_rate` at step `steps`, then constant.
    cosine,        ///< The same, along half a cosine (Loshchilov and Hutter, 2017, without restarts).
    inverse_sqrt,  ///< rate * sqrt(max(warmup, 1) / step) after the warm-up.
    noam           ///< rate * width^-0.5 * min(step^-0.5, step * warmup^-1.5) (Vaswani et al., 2017).
  };
  Kind kind = Kind::constant;
  double rate = 1e-3;
  double final_rate = 0;
  std::int64_t warmup = 0;   ///< In steps. noam needs at least 1; 4000 is the published value.
  std::int64_t steps = 0;    ///< For linear and cosine: the step at which final_rate is reached.
  std::int64_t epochs = 0;   ///< The same in epochs, if steps is 0. A Trainer makes steps of it.
  std::int64_t width = 512;  ///< For noam: d_model.
};

/// The learning rate of step `step` >= 1. Throws Error for options out of range.
double rate_at(const ScheduleOptions& options, std::int64_t step);

}  // namespace xtape
