/// Norms of the gradients of single examples, and sums of clipped gradients, without an array of the size of the
/// weights for each example.
#pragma once

#include <functional>

#include "xtape/vmap.hpp"

namespace xtape {

/// The loss of one example: a float without axes. Receives the inputs without the axis of the examples.
using ExampleLoss = std::function<Var(const Vars& example)>;

struct PerExampleNorms {
  Var losses;  ///< The loss of each example, [b].
  Var norms;   ///< The Euclidean norm of the gradient of each example's loss by all weights together, [b].
};

/// Records the losses of a batch of examples and the norms of their gradients. `inputs` and `options` are those of
/// `vmap`; `weights` are other vars of the tape, floats of one dtype.
///
/// The gradient of a weight is often a product that sums over the rows of an example, G = sum_t x_t d_t'. Its norm is
/// then computed from the inner products of rows, |G|^2 = sum_st <x_s, x_t> <d_s, d_t>, where this is cheaper than
/// computing G (Goodfellow, 2015, Efficient per-example gradient computations; Li et al., 2021, Large language models
/// can be strong differentially private learners). So is that of a looked-up table, whose rows x_t are one-hot, and
/// that of a weight with several uses. Other gradients are computed for each example.
///
/// Throws Error without a function or weights and if out_axes are given, ShapeError if the loss has an axis, DtypeError
/// if it is not a float or the weights have several dtypes, and as `vmap` and `grad` do. Then nothing stays recorded.
PerExampleNorms per_example_norms(const ExampleLoss& loss, const Vars& weights, const Vars& inputs,
                                  const VmapOptions& options = {}, Caller caller = Caller::here());

struct ClippedGradients {
  Vars gradients;  ///< One per weight, of its type: the sum over the examples of their clipped gradients.
  Var losses;      ///< [b]
  Var norms;       ///< Before clipping, [b].
};

/// Records sum_b min(1, clip_norm / norm_b) * gradient_b: the gradients of all examples, those with a norm above
/// `clip_norm` scaled to it (Abadi et al., 2016, Deep learning with differential privacy). The factors multiply the
/// cotangents that the norms were computed from, so there is no second backward pass (Bu et al., 2023, Differentially
/// private optimization on large model at small cost); a player with a memory limit computes the cotangents again where
/// that saves memory.
///
/// Throws Error unless clip_norm is positive and finite, and as per_example_norms does.
ClippedGradients clipped_gradients(const ExampleLoss& loss, const Vars& weights, const Vars& inputs, double clip_norm,
                                   const VmapOptions& options = {}, Caller caller = Caller::here());

/// Records each of `xs` plus Gaussian noise of standard deviation `deviation`, drawn in float64 (Box and Muller, 1958)
/// by seed, step and element as all draws. Clipped gradients with noise of noise_multiplier * clip_norm are the updates
/// that PrivacyAccountant counts. The generator is not cryptographic: who knows the seed can subtract the noise.
///
/// Throws DtypeError for vars that are not floats, HandleError for vars of two tapes, Error without vars and unless
/// `deviation` is finite and at least 0. Then nothing stays recorded.
Vars with_noise(const Vars& xs, double deviation, Caller caller = Caller::here());

}  // namespace xtape
