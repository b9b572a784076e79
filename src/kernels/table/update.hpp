/// Updates of optimisers in one pass over a range of elements, and sums of gradients.
#pragma once

#include <cstdint>

namespace xtape {

/// Stochastic gradient descent: g = scale * gradient + decay * w, v = momentum * v + g, w -= rate * v (with Nesterov's
/// momentum, rate * (g + momentum * v)).
struct SgdUpdate {
  double rate = 0;
  double scale = 1;
  double momentum = 0;
  bool nesterov = false;
  double decay = 0;
};
/// `velocity` may be null if momentum is 0.
template <class T>
void sgd_update(T* weights, const T* gradient, T* velocity, std::int64_t count, const SgdUpdate& step);

/// Adam: g = scale * gradient + decay * w, m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2,
/// w = shrink * w - rate * (m / correction1) / (sqrt(v / correction2) + epsilon).
struct AdamUpdate {
  double rate = 0;
  double scale = 1;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double decay = 0;        ///< Adam's weight decay, as an L2 penalty.
  double shrink = 1;       ///< AdamW's decoupled weight decay: 1 - rate * weight decay.
  double correction1 = 1;  ///< 1 - beta1^updates.
  double correction2 = 1;  ///< 1 - beta2^updates.
};
template <class T>
void adam_update(T* weights, const T* gradient, T* first, T* second, std::int64_t count, const AdamUpdate& step);

/// The sum of squares, computed in double.
template <class T>
double square_sum(const T* values, std::int64_t count);

/// to = a + b. `to` may be `a` or `b`.
template <class T>
void add_arrays(const T* a, const T* b, T* to, std::int64_t count);

}  // namespace xtape
