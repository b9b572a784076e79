/// Scans (recurrences): a cell, recorded once, that is applied step by step along an axis and passes on states.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "xtape/tape.hpp"

namespace xtape {

struct ScanOptions {
  std::int64_t axis = 1;  ///< The axis of the steps, in inputs and stacked outputs; negative: from the back.
  bool reverse = false;   ///< From the last index to the first; each output keeps the index of its step.
  /// Which steps are valid, for padded sequences: bool, [b, t] with axis 1. Its shape without the axis of the steps
  /// must be the leading sizes of every state and of every step's outputs. Where it is false, a step leaves the states
  /// as they are and its outputs are zeros. Empty: all steps are valid.
  Var valid;
  /// For long scans: the gradient keeps only the states before every k-th step, and computes the values of one segment
  /// of k steps at a time again (Chen et al., 2016, Training deep nets with sublinear memory cost). So it needs the
  /// memory of T / k states and of the values of k steps in place of T. Further numbers divide segments in shorter
  /// ones; numbers of at least T have no effect. Outputs and random numbers stay the same, up to rounding in products
  /// of slices with values that do not vary: those are computed for a segment's steps at once, not for all steps.
  /// Empty: no segments.
  std::vector<std::int64_t> checkpoint_every = {};
};

struct Scanned {
  Vars outputs;  ///< The outputs of all steps, each stacked along ScanOptions::axis.
  Vars states;   ///< The states after the last step; `init` if there is no step.
};

/// The step function: takes the step's slices of the inputs (without the axis of the steps) and the states, and returns
/// the step's outputs and the next states.
using ScanFunction = std::function<std::pair<Vars, Vars>(const Vars& inputs, const Vars& states)>;
#ifndef XTAPE_NO_OLD_NAMES
using Cell [[deprecated("write ScanFunction")]] = ScanFunction;
#endif

/// Applies `cell` to the slices of `inputs` along an axis, one after the other, starting from the states `init`. The
/// cell is called once, while recording; it may use any other vars of the tape (weights). Random ops in it draw new
/// numbers at every step. Weight gradients that are products or sums are computed for all steps at once, after the
/// scan; with `checkpoint_every`, after each segment.
///
/// In mode predict, if an input has a past (Tape::set_past), each row continues from the states at its last position:
/// the axis must be 1, not reversed, and each state needs a row per row of tokens. There are no segments then.
///
/// Throws ShapeError if the inputs differ in length along the axis, a next state's type is not the state's, an output
/// has fewer axes than `axis`, or `valid` does not fit; DtypeError if `valid` is not bool; HandleError for vars of
/// another tape; Error if there is no cell or no input, the cell returns a wrong number of states or nothing at all,
/// uses `cache`, or draws with `categorical`, or a number of `checkpoint_every` is less than 1. Then nothing stays
/// recorded.
Scanned scan(const ScanFunction& cell, const Vars& inputs, const Vars& init, const ScanOptions& options = {},
             Caller caller = Caller::here());

}  // namespace xtape
