/// Norms of per-example gradients and sums of clipped gradients. Where possible, they are computed without the gradient
/// of each example, which would need the memory of the weights once per example.
#pragma once

#include <functional>

#include "xtape/vmap.hpp"

namespace xtape {

/// The loss of one example, a float scalar. Receives the inputs without the axis of the examples.
using ExampleLoss = std::function<Var(const Vars& example)>;

struct PerExampleNorms {
  Var losses;  ///< The loss of each example, [b].
  Var norms;   ///< For each example, the Euclidean norm of the gradient with respect to all weights together, [b].
};

/// Records the losses of a batch of examples and the norms of their gradients. `inputs` and `options` are those of
/// `vmap`. `weights` are other vars of the tape, floats of one dtype.
///
/// The gradient of a weight is often a product that sums over the rows of an example, G = sum_t x_t d_t'. Then |G|^2 =
/// sum_st <x_s, x_t> <d_s, d_t>, and the norm is computed from these inner products if they are cheaper than G
/// (Goodfellow, 2015, Efficient per-example gradient computations; Li et al., 2021, Large language models can be strong
/// differentially private learners). The same method applies to a weight that is used several times, and to an
/// embedding table (each x_t is then the one-hot vector of a token). Other gradients are computed for each example.
///
/// Throws Error if the function is empty, there are no weights, or out_axes are given. Throws ShapeError if the loss is
/// not a scalar, DtypeError if the loss is not a float or the weights have different dtypes. Errors of `vmap` and
/// `grad` propagate. After an error, nothing stays recorded.
PerExampleNorms per_example_norms(const ExampleLoss& loss, const Vars& weights, const Vars& inputs,
                                  const VmapOptions& options = {}, Caller caller = Caller::here());

struct ClippedGradients {
  Vars gradients;  ///< For each weight, the sum over the examples of the clipped gradients, of the weight's type.
  Var losses;      ///< [b]
  Var norms;       ///< The norms before clipping, [b].
};

/// Records sum_b min(1, clip_norm / norm_b) * gradient_b, the sum of the clipped gradients of all examples. Clipping
/// scales a gradient whose norm exceeds `clip_norm` to this norm (Abadi et al., 2016, Deep learning with differential
/// privacy). The factors multiply the cotangents that give the norms, so there is no second backward pass (Bu et al.,
/// 2023, Differentially private optimization on large model at small cost). A player with a memory limit recomputes the
/// cotangents where this saves memory.
///
/// Throws Error if clip_norm is not positive and finite. Errors of per_example_norms propagate.
ClippedGradients clipped_gradients(const ExampleLoss& loss, const Vars& weights, const Vars& inputs, double clip_norm,
                                   const VmapOptions& options = {}, Caller caller = Caller::here());

/// Records xs[i] + N(0, deviation^2) for each var. The noise is drawn in float64 (Box and Muller, 1958). As for all
/// draws, the seed, step and element index determine it. Clipped gradients with noise of standard deviation
/// noise_multiplier * clip_norm are the updates that PrivacyAccountant counts. The generator is not cryptographically
/// secure. Anyone who knows the seed can subtract the noise.
///
/// Throws DtypeError if a var is not a float, HandleError if the vars belong to different tapes, Error if there are no
/// vars or `deviation` is negative or not finite. After an error, nothing stays recorded.
Vars with_noise(const Vars& xs, double deviation, Caller caller = Caller::here());

}  // namespace xtape
