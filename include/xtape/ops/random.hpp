/// Random arrays of many distributions, and random choices, with names and arguments of PyTorch. All are compositions
/// of one draw of `uniform`, most of them by inverse distribution functions. So they draw anew for every step of a play
/// and every call by its site, with the same bits for any number of threads, and for each example under `vmap`. Samples
/// that are functions of parameters have gradients of any order (Kingma and Welling, 2014).
///
/// float32 has 2^24 different draws, which come as near to 0 and 1 as 2^-25: then normal samples reach 5.9 standard
/// deviations, exponential ones 16.6 / rate. float64 has 2^53: 8.7 and 36.7. No draw is infinite or NaN where the
/// parameters are right; parameters are not checked.
///
/// Other distributions: low + (high - low) * uniform(…) has gradients by its bounds, `bernoulli` and `categorical`
/// are in xtape/ops.hpp.
#pragma once

#include <cstdint>
#include <optional>

#include "xtape/ops.hpp"

namespace xtape {

/// Standard normal numbers, of a float dtype.
Var randn(Tape tape, const Shape& shape, std::optional<Dtype> dtype = std::nullopt, Caller caller = Caller::here());
/// int64, uniform over low … high - 1. Throws Error unless low < high and high - low <= 2^53. Not differentiable.
Var randint(Tape tape, const Shape& shape, std::int64_t low, std::int64_t high, Caller caller = Caller::here());
/// int64 [n]: 0 … n - 1 in random order. Throws ShapeError for negative n.
Var randperm(Tape tape, std::int64_t n, Caller caller = Caller::here());

// A sample for each element of the parameters, which are floats and broadcast together.
Var normal(const Operand& mean, const Operand& std);
/// Normal samples under the condition low <= y <= high; a bound may be infinite. Throws Error unless low < high. Less
/// accurate where both bounds are on one side of the mean: in float32 more than 4 deviations away, in float64 more than
/// 7, most samples are a bound.
Var truncated_normal(const Operand& mean, const Operand& std, double low = -2, double high = 2);
Var exponential(const Operand& rate);
Var laplace(const Operand& loc, const Operand& scale);
/// Density y^(concentration - 1) exp(-rate y). The inverse of gammainc, to 12 digits in float64; its gradient by the
/// concentration, the implicit one (Figurnov et al., 2018), has 9. Concentrations below 0.1 often give numbers that
/// float32 holds only as 0.
Var gamma(const Operand& concentration, const Operand& rate);
/// From two gamma samples x, y: x / (x + y).
Var beta(const Operand& a, const Operand& b);
/// Whole numbers, of the dtype of the rate. By inversion, exact for rates up to 1e8. Not differentiable.
Var poisson(const Operand& rate);
/// From mean [..., n] and positive definite covariance [..., n, n]: mean + L z with L the Cholesky factor.
Var multivariate_normal(const Argument& mean, const Var& covariance);

/// x with its slices along `axis` in random order; of any dtype.
Var permutation(const Argument& x, std::int64_t axis = 0);
/// From weights [..., n] (floats >= 0, not all 0): int64 [..., num_samples], indices drawn with probabilities that are
/// proportional to them. Without replacement an index is drawn once at most, as if one after the other (Gumbel top-k:
/// Kool et al., 2019); those of weight 0 come last. Throws ShapeError then unless num_samples <= n. Not differentiable.
Var multinomial(const Argument& weights, std::int64_t num_samples, bool replacement = false);
/// num_samples slices of x along `axis`, drawn with equal probabilities, or by weights [n], as multinomial draws.
Var choice(const Argument& x, std::int64_t num_samples, bool replacement = true, std::int64_t axis = 0);
Var choice(const Argument& x, const Var& weights, std::int64_t num_samples, bool replacement = true,
           std::int64_t axis = 0);

}  // namespace xtape
