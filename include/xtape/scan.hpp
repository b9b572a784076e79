/// Scans (recurrences). A scan records a cell once, and applies it step by step along an axis, passing on states.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "xtape/tape.hpp"

namespace xtape {

struct ScanOptions {
  std::int64_t axis = 1;  ///< The axis of the steps in inputs and stacked outputs. Negative axes count from the back.
  bool reverse = false;   ///< Whether to run from the last index to the first. Each output keeps the index of its step.
  /// The valid steps of padded sequences: bool, [b, t] with axis 1. Its shape without the axis of the steps must be the
  /// leading sizes of every state and of every step's outputs. A step that is not valid leaves the states unchanged,
  /// and its outputs are zeros. If empty, all steps are valid.
  Var valid = {};
  /// Gradient checkpointing for long scans. Let k be the first number, and T the number of steps. The gradient keeps
  /// only the states before every k-th step, and recomputes the values of one segment of k steps at a time (Chen et
  /// al., 2016, Training deep nets with sublinear memory cost). It then needs the memory of T / k states and of the
  /// values of k steps, instead of the values of all T steps.
  /// Further numbers divide segments into shorter segments. Numbers of at least T have no effect. Outputs and random
  /// numbers do not change, except for rounding in products of slices and values that are the same in every step. These
  /// products are computed for the steps of a segment at once instead of for all steps. If empty, there are no
  /// segments.
  std::vector<std::int64_t> checkpoint_every = {};
};

struct Scanned {
  Vars outputs;  ///< The outputs of all steps, each stacked along ScanOptions::axis.
  Vars states;   ///< The states after the last step; `init` if there is no step.
};

/// The step function. Takes the step's slices of the inputs (without the axis of the steps) and the states. Returns the
/// step's outputs and the next states.
using ScanFunction = std::function<std::pair<Vars, Vars>(const Vars& inputs, const Vars& states)>;

/// Applies `cell` to the slices of `inputs` along an axis, one after the other, starting from the states `init`. scan
/// calls the cell once to record it. The cell may use any other vars of the tape (weights). Its random ops draw new
/// numbers at every step. Weight gradients that are products or sums are computed for all steps at once, after the
/// scan. With `checkpoint_every`, they are computed after each segment.
///
/// In mode predict, if an input has a past (Tape::set_past), each row continues from the states at its last position.
/// The axis must then be 1 and not reversed, and each state must have one row per row of tokens. `checkpoint_every` has
/// no effect.
///
/// Throws ShapeError if the inputs differ in length along the axis, a next state's type differs from the state's, an
/// output has fewer axes than `axis`, or `valid` does not fit. Throws DtypeError if `valid` is not bool, HandleError if
/// a var belongs to another tape. Throws Error if there is no cell or no input, the cell returns the wrong number of
/// states or nothing at all, the cell uses `cache` or draws with `categorical`, or a number of `checkpoint_every` is
/// less than 1. After an error, nothing stays recorded.
Scanned scan(const ScanFunction& cell, const Vars& inputs, const Vars& init, const ScanOptions& options = {},
             Caller caller = Caller::here());

}  // namespace xtape
