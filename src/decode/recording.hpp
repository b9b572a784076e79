/// Records a function in mode predict. Splits it into the nodes that depend only on fixed inputs, and all other nodes.
#pragma once

#include <string>
#include <vector>

#include "xtape/model.hpp"

namespace xtape::decode {

struct Recording {
  Tape tape{Mode::predict};
  NamedVars fixed;  ///< The inputs that stay the same at every step.
  Var tokens;
  Var past;  ///< An additional input: the number of earlier tokens of each row, int64 [rows].
  Var result;
};

/// Records `function` with the tokens as its input `stepped`. `sizes` include the sizes of the tokens. `capacity` is
/// the number of positions in caches.
Recording record_step(const Model& model, const std::string& function, const std::string& stepped,
                      const NamedSizes& sizes, std::int64_t capacity, Dtype caches = Dtype::float32);

bool same_ops(const Recording& a, const Recording& b);
/// Throws DefinitionError if the recordings do not have the same ops.
void require_same_ops(const Recording& a, const Recording& b);

/// A value of a fixed node that other nodes read.
struct BoundaryValue {
  ValueId value;
  std::int64_t row_axis = -1;  ///< The axis of the rows, or -1 if the value is the same for all rows.
};

struct StepSplit {
  std::vector<bool> fixed;              ///< Per node: whether it depends on a fixed input but not on the step.
  std::vector<bool> needed;             ///< Per node: whether the result or a state depends on it.
  std::vector<BoundaryValue> boundary;  ///< In the order in which nodes that are not fixed first read them.
};

/// Splits `recording`. `wider` is the same function recorded for one more row. It shows which axis of a value is the
/// axis of the rows. `longer` is the same function recorded for another number of tokens per step and another capacity.
/// A node that has another shape in `longer` is not fixed. Throws DefinitionError if the three recordings do not have
/// the same ops, or if a boundary value has several axes that could be the axis of the rows.
StepSplit split(const Recording& recording, const Recording& wider, const Recording& longer);

/// Returns the boundary values as vars on the tape of `recording`, named "fixed 0", "fixed 1" and so on. The axis of
/// the rows is first.
NamedVars boundary_vars(Recording& recording, const StepSplit& split);

/// Returns a separate tape with the nodes that are not fixed. These nodes read the boundary values from `memory`, with
/// the axis of the rows first.
Recording rest_of(const Recording& recording, const StepSplit& split, const std::vector<Array>& memory);

}  // namespace xtape::decode
