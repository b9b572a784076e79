/// Optimisers and learning rate schedules, for Trainer and for training loops of your own.
#pragma once

#include <cstdint>
#include <memory>
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
  double momentum = 0;    ///< Of sgd, in [0, 1): v = momentum * v + g, w -= rate * v …
  bool nesterov = false;  ///< … or w -= rate * (g + momentum * v) (Sutskever et al., 2013).
  double beta1 = 0.9;
  double beta2 = 0.999;
  /// Outside the root: w -= rate * mhat / (sqrt(vhat) + epsilon), with bias-corrected moments. Above 0 as a float32.
  double epsilon = 1e-8;
  double weight_decay = 0;  ///< sgd and adam add weight_decay * w to the gradient.
  bool decay_all = false;   ///< Decay all arrays; else only those of rank 2 or more (no biases, no norms).
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

  /// One update by the gradients times `scale`. If clip > 0, they are also multiplied by min(1, clip / (norm + 1e-6)),
  /// as in PyTorch's clip_grad_norm_. `gradients` has one dense view per weight, in the store's order, of its shape and
  /// dtype; a weight with an empty view (ArrayView()) and its moments stay unchanged, without decay. Returns the global
  /// norm of the scaled gradients before clipping; if it is not finite, nothing is changed. Does not allocate; gives
  /// the same bits for any number of threads. Throws Error, DtypeError or ShapeError for gradients that do not fit,
  /// Error for a rate that is not finite or a clip that is not at least 0, UpdateError if a weight or moment would
  /// overflow. (Adam's second moment is of squares: in float32 it overflows from gradients of 1e19 on.)
  double update(const std::vector<ArrayView>& gradients, double rate, double scale = 1, double clip = 0);
  /// The moments, named by kind and weight ("first.h.0.attn.c_attn.weight"), and "updates", the number of updates,
  /// int64 [1]. Kinds are "first" and "second" (adam, adamw) or "velocity" (sgd with momentum). To continue from a
  /// checkpoint, write to these arrays.
  const Store& state() const;

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
  std::int64_t steps = 0;    ///< Of linear and cosine: the step at which final_rate is reached.
  std::int64_t epochs = 0;   ///< The same in epochs, if steps is 0. A Trainer makes steps of it.
  std::int64_t width = 512;  ///< Of noam: d_model.
};

/// The learning rate of step `step` >= 1. Throws Error for options out of range.
double rate_at(const ScheduleOptions& options, std::int64_t step);

}  // namespace xtape
