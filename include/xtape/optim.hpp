/// Optimisers and schedules. The trainer uses them; so can a program with a loop of its own.
#pragma once

#if defined(XTAPE_LAYER) && XTAPE_LAYER < 9
#error "this layer of xtape may not see the train layer"
#endif

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "xtape/array.hpp"

namespace xtape {

/// What an optimiser does. Fields that its kind has no use for are not looked at.
struct OptimizerOptions {
  enum class Kind : std::uint8_t {
    sgd,   ///< Stochastic gradient descent, with momentum.
    adam,  ///< Kingma and Ba, 2015; weight decay is added to the gradient.
    adamw  ///< Loshchilov and Hutter, 2019: decay is decoupled, w -= rate * weight_decay * w.
  };
  Kind kind = Kind::adamw;
  double momentum = 0;  ///< Of sgd: v = momentum * v + g, w -= rate * v …
  bool nesterov =
      false;  ///< … or, Nesterov's way, w -= rate * (g + momentum * v), as Sutskever et al., 2013, write it.
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon =
      1e-8;  ///< Stands outside the root: w -= rate * mhat / (sqrt(vhat) + epsilon), both moments corrected.
  double weight_decay = 0;  ///< sgd and adam add weight_decay * w to the gradient.
  bool decay_all = false;   ///< Decays every array; else only those of rank 2 and more (no biases, no norms).
};

/// Updates the arrays of a store from their gradients. What it remembers between updates is a store too.
class Optimizer {
 public:
  /// `weights` are the arrays to update, float32 or float64; the handles are copied, the elements shared. `threads` 0:
  /// as many as OpenMP would take. Throws Error where an option is out of its range.
  Optimizer(const Store& weights, const OptimizerOptions& options, int threads = 0);
  Optimizer(Optimizer&&) noexcept;
  Optimizer& operator=(Optimizer&&) noexcept;
  ~Optimizer();

  /// One update by the gradients times `scale`, cut down to the global norm `clip` where that is above 0: times
  /// min(1, clip / (norm + 1e-6)), as PyTorch's clip_grad_norm_. One gradient
  /// per weight, in the store's order, of its shape and dtype; a weight whose view is of nothing (ArrayView()) is left
  /// as it is, weight decay included, and so are its moments. Returns the global norm before clipping; where that is
  /// not finite nothing is changed. Allocates nothing. The same bits for any number of threads.
  double update(const std::vector<ArrayView>& gradients, double rate, double scale = 1, double clip = 0);
  /// The moments, named by kind and weight ("first.h.0.attn.c_attn.weight"), and the number of updates, an int64 of one
  /// element named "updates"; kinds are "first" and "second" (adam, adamw) or "velocity" (sgd with momentum). Write to
  /// its arrays to continue from a checkpoint.
  const Store& state() const;

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

/// How the learning rate goes. Steps count from 1. A warm-up rises linearly, rate * step / warmup, to the full rate at
/// step `warmup`.
struct ScheduleOptions {
  enum class Kind : std::uint8_t {
    constant,      ///< `rate`, after the warm-up.
    linear,        ///< From `rate` at the end of the warm-up to `final_rate` at step `steps`, and that from there on.
    cosine,        ///< The same along half a cosine (Loshchilov and Hutter, 2017, without restarts).
    inverse_sqrt,  ///< rate * sqrt(max(warmup, 1) / step) after the warm-up.
    noam           ///< rate * width^-0.5 * min(step^-0.5, step * warmup^-1.5) (Vaswani et al., 2017).
  };
  Kind kind = Kind::constant;
  double rate = 1e-3;
  double final_rate = 0;
  std::int64_t warmup = 0;
  std::int64_t steps = 0;
  std::int64_t width = 512;  ///< Of noam: the model's.
};

/// The learning rate of update number `step` (the first is 1). Throws Error where the options make no sense.
double rate_at(const ScheduleOptions& options, std::int64_t step);

}  // namespace xtape
