/// Vectorisation: a function of one example, recorded for a batch of examples at once.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "xtape/tape.hpp"

namespace xtape {

/// The draws of a random op inside `vmap`. The names are those of torch.vmap. In both cases, an op that repeats a draw
/// made outside of `vmap`, such as the gradient of an earlier dropout, gets the numbers of that draw.
enum class Randomness : std::uint8_t {
  different,  ///< Different numbers for each example.
  same        ///< The same numbers for all examples.
};

struct VmapOptions {
  /// Per input, the axis of the examples. Negative axes count from the back. nullopt: the input is the same for all
  /// examples. If empty, axis 0 of every input.
  std::vector<std::optional<std::int64_t>> in_axes = {};
  /// Per result, the position of the axis of the examples. If empty, axis 0 of every result.
  std::vector<std::int64_t> out_axes = {};
  Randomness randomness = Randomness::different;
};

/// Calls `function` once, on one example of each mapped input (without the axis of the examples), and records the calls
/// for all examples as ordinary nodes: one call of each op for the complete batch. Returns the results with the
/// examples as an additional axis. Other vars of the tape that `function` uses are the same for all examples.
/// `function` may call grad, jvp, scan, checkpoint and vmap.
///
/// Op::batch is the batching rule of an op. Without a rule, vmap aligns the inputs of an elementwise op, and maps the
/// expansion of any other op. `grad` inside `function` gives the gradients of each example: Goodfellow, 2015, Efficient
/// per-example gradient computations.
///
/// Throws ShapeError if the mapped inputs have different numbers of examples, or lack the axis. Throws HandleError if a
/// var belongs to another tape. Throws Error if there is no function, no mapped input or no result, or if the lists of
/// axes have the wrong length. Throws Error for states: if a mapped input has a past, or if `function` calls `cache` on
/// a value that has a past. Throws Error for `categorical` with Randomness::same, and for an op with neither a batching
/// rule nor an expansion. Errors of `function` propagate. After an error, nothing stays recorded.
Vars vmap(const std::function<Vars(const Vars&)>& function, const Vars& inputs, const VmapOptions& options = {},
          Caller caller = Caller::here());

}  // namespace xtape
