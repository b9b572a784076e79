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

/// Adam with moments of eight bits: codes of a dynamic data type (Dettmers et al., 2022, 8-bit optimizers via
/// block-wise quantization), each times the scale of its block of this many elements. The weights change by the moments
/// before these are rounded to codes.
inline constexpr std::int64_t moment_block = 256;
struct ByteMoments {
  std::uint8_t* first = nullptr;
  std::uint8_t* second = nullptr;
  float* first_scales = nullptr;   ///< The largest absolute value of each block.
  float* second_scales = nullptr;  ///< The same.
};
template <class T>
void adam_update_bytes(T* weights, const T* gradient, const ByteMoments& moments, std::int64_t count,
                       const AdamUpdate& step);

/// Lion: g = scale * gradient, w = shrink * w - rate * sign(beta1 m + (1 - beta1) g), m = beta2 m + (1 - beta2) g.
/// Uses these members of an AdamUpdate.
template <class T>
void lion_update(T* weights, const T* gradient, T* first, std::int64_t count, const AdamUpdate& step);

/// RMSprop: g = scale * gradient + decay * w, v = alpha v + (1 - alpha) g^2, m = alpha m + (1 - alpha) g (only if
/// centred), s = g / (sqrt(v - m^2) + epsilon), u = momentum * u + s, w -= rate * u. `mean` is null if the update is
/// not centred, `velocity` if momentum is 0.
struct RmsPropUpdate {
  double rate = 0;
  double scale = 1;
  double alpha = 0.99;
  double momentum = 0;
  double epsilon = 1e-8;
  double decay = 0;
};
template <class T>
void rmsprop_update(T* weights, const T* gradient, T* second, T* mean, T* velocity, std::int64_t count,
                    const RmsPropUpdate& step);

/// One row of Adafactor: to = scale * gradient / sqrt(max(row * columns, least)).
struct FactoredRow {
  double row = 1;
  double scale = 1;
  double least = 0;
};
template <class T>
void factored_row(const T* gradient, const T* columns, T* to, std::int64_t count, const FactoredRow& row);

/// to = a * x + b * y. `to` may be `x` or `y`.
template <class T>
void combine(double a, const T* x, double b, const T* y, T* to, std::int64_t count);

/// sums += the squares of the values.
template <class T>
void add_squares(const T* values, double* sums, std::int64_t count);

/// The sum of squares, computed in double.
template <class T>
double square_sum(const T* values, std::int64_t count);

/// to = a + b. `to` may be `a` or `b`.
template <class T>
void add_arrays(const T* a, const T* b, T* to, std::int64_t count);

}  // namespace xtape
