/// Random arrays of many distributions, and random choices, with names and arguments of PyTorch. Each function draws
/// `uniform` once and transforms the result, usually by an inverse distribution function. The functions therefore draw
/// new numbers for every random step (Player::play), every site, and every example under `vmap`. The bits do not depend
/// on the number of threads. Samples that are functions of parameters have gradients of any order (Kingma and Welling,
/// 2014).
///
/// A float32 draw has 2^24 different values, between 2^-25 and 1 - 2^-25. Normal samples are therefore at most 5.9
/// standard deviations from the mean, and exponential samples are at most 16.6 / rate. A float64 draw has 2^53
/// different values, and these limits are 8.7 and 36.7. No sample is infinite or NaN for valid parameters. Parameters
/// are not checked.
///
/// For other uniform distributions, low + (high - low) * uniform(…) has gradients with respect to low and high.
/// `bernoulli` and `categorical` are in xtape/ops.hpp.
#pragma once

#include <cstdint>
#include <optional>

#include "xtape/ops.hpp"

namespace xtape {

/// Standard normal samples of a float dtype.
Var randn(Tape tape, const Shape& shape, std::optional<Dtype> dtype = std::nullopt, Caller caller = Caller::here());
/// int64, uniform over low … high - 1. Throws Error if low >= high or high - low > 2^53. Not differentiable.
Var randint(Tape tape, const Shape& shape, std::int64_t low, std::int64_t high, Caller caller = Caller::here());
/// int64 [n]: 0 … n - 1 in random order. Throws ShapeError if n is negative.
Var randperm(Tape tape, std::int64_t n, Caller caller = Caller::here());

// The following functions draw one sample per element of the parameters, which are floats and broadcast together.
Var normal(const Operand& mean, const Operand& std);
/// Normal samples under the condition low <= y <= high. A bound can be infinite. Throws Error if low >= high. Samples
/// are less accurate if both bounds are on the same side of the mean. If both are on the same side and more than 4
/// standard deviations from the mean in float32, or more than 7 in float64, most samples equal a bound.
Var truncated_normal(const Operand& mean, const Operand& std, double low = -2, double high = 2);
Var exponential(const Operand& rate);
Var laplace(const Operand& loc, const Operand& scale);
/// Samples of the density y^(concentration - 1) exp(-rate y). They are computed by inverting gammainc, to 12 digits in
/// float64. The gradient with respect to the concentration is the implicit gradient (Figurnov et al., 2018), accurate
/// to 9 digits. Concentrations below 0.1 often give samples that underflow to 0 in float32.
Var gamma(const Operand& concentration, const Operand& rate);
/// Computed from two gamma samples x and y as x / (x + y).
Var beta(const Operand& a, const Operand& b);
/// Integers in the dtype of the rate. Computed by inversion, exact for rates up to 1e8. Not differentiable.
Var poisson(const Operand& rate);
/// Normal samples with mean [..., n] and positive definite covariance [..., n, n]. They are computed as mean + L z,
/// where L is the Cholesky factor and z is standard normal.
Var multivariate_normal(const Argument& mean, const Var& covariance);

/// x with its slices along `axis` in random order, for any dtype.
Var permutation(const Argument& x, std::int64_t axis = 0);
/// int64 [..., num_samples] from weights [..., n] (floats >= 0, not all 0): indices drawn with probabilities
/// proportional to the weights. Without replacement, each index occurs at most once, as in successive draws (Gumbel
/// top-k: Kool et al., 2019). Indices with weight 0 come last. Throws ShapeError if num_samples > n and there is no
/// replacement. Not differentiable.
Var multinomial(const Argument& weights, std::int64_t num_samples, bool replacement = false);
/// num_samples slices of x along `axis`, drawn with equal probabilities, or with weights [n] as in multinomial.
Var choice(const Argument& x, std::int64_t num_samples, bool replacement = true, std::int64_t axis = 0);
Var choice(const Argument& x, const Var& weights, std::int64_t num_samples, bool replacement = true,
           std::int64_t axis = 0);

}  // namespace xtape
