/// A recurrence: one step, recorded once, applied along an axis with states that each step hands to the next.
#pragma once

#if defined(XTAPE_LAYER) && XTAPE_LAYER < 4
#error "this layer of xtape may not see the ops layer"
#endif

#include <cstdint>
#include <functional>
#include <utility>

#include "xtape/tape.hpp"

namespace xtape {

struct ScanOptions {
  std::int64_t axis = 1;  ///< Of the inputs and of the stacked outputs: the one along which the steps follow.
  bool reverse = false;   ///< From the last place to the first. Outputs stand at the place of their step all the same.
  /// bool, true where there is something to read: [b, t] with axis 1. Without the axis of the steps, its shape is that
  /// with which every state and every output of a step begins. Where it is false a step keeps the states and its
  /// outputs are zeros. Empty: everything is read.
  Var valid;
};

struct Scanned {
  Vars outputs;  ///< The steps' outputs, stacked along the axis.
  Vars states;   ///< Those that the last step left; the first ones where there is no step.
};

/// A step: from its slices of the inputs (without the axis) and the states to its outputs and the next states.
using Cell = std::function<std::pair<Vars, Vars>(const Vars& inputs, const Vars& states)>;

/// Applies `cell` to the slices of `inputs` along an axis, one after the other, beginning with the states `init`.
/// `cell` is called once, while recording; what it uses besides (weights, other vars) may be anything on the tape.
/// Random ops in it draw anew at every step. Its gradient runs the other way; gradients of weights are taken over all
/// steps at once. Throws ShapeError where inputs differ in length or a next state has not the type of the state, and
/// Error where the cell holds a cache, or draws in a way that cannot be drawn beforehand (categorical).
Scanned scan(const Cell& cell, const Vars& inputs, const Vars& init, const ScanOptions& options = {},
             Caller caller = Caller::here());

}  // namespace xtape
