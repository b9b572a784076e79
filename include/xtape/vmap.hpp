/// Vectorisation: a function of one example, recorded for a batch of examples at once.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "xtape/tape.hpp"

namespace xtape {

/// What a random op inside of `vmap` draws. The names are those of torch.vmap. An op that repeats a draw from outside (the
/// gradient of a dropout that was recorded before) gets the numbers of that draw in either case.
enum class Randomness : std::uint8_t {
  different,  ///< Numbers of its own for each example.
  same        ///< The same numbers for all examples.
};

struct VmapOptions {
  /// Per input: the axis of the examples, negative from the back; nullopt: the input is the same for all. Empty: axis 0
  /// of every input.
  std::vector<std::optional<std::int64_t>> in_axes = {};
  /// Per result: which of its axes the examples become. Empty: axis 0 of every result.
  std::vector<std::int64_t> out_axes = {};
  Randomness randomness = Randomness::different;
};

/// Calls `function` once, on one example of each mapped input (without the axis of the examples), and records what it
/// does for all examples, as ordinary nodes: one call of each op for the whole batch. Returns its results, with the
/// examples as a further axis. Other vars of the tape that `function` uses are the same for all examples. It may call
/// grad, jvp, scan, checkpoint and vmap.
///
/// Op::batch says how an op takes a batch. Without such a rule, the inputs of an elementwise op are aligned, and another
/// op is mapped through its expansion. `grad` inside
/// gives the gradients of each example: Goodfellow, 2015, Efficient per-example gradient computations.
///
/// Throws ShapeError if the mapped inputs have different numbers of examples, or no such axis; HandleError for vars of
/// another tape; Error without a function, a mapped input or a result, if the lists of axes have other lengths, for a
/// state (`cache` of a value that has a past, or a mapped input that has one), for `categorical` with Randomness::same, for
/// an op with neither a batching rule nor an expansion, and what
/// `function` throws. Then nothing stays recorded.
Vars vmap(const std::function<Vars(const Vars&)>& function, const Vars& inputs, const VmapOptions& options = {},
          Caller caller = Caller::here());

}  // namespace xtape
