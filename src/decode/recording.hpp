/// Records a function in mode predict, and splits it into the nodes that depend on fixed inputs alone and the rest.
#pragma once

#include <string>
#include <vector>

#include "xtape/model.hpp"

namespace xtape::decode {

struct Recording {
  Tape tape{Mode::predict};
  NamedVars fixed;  ///< The inputs that do not change from step to step.
  Var tokens;
  Var past;  ///< An additional input: the number of earlier tokens of each row, int64 [rows].
  Var result;
};

/// Records `function`, whose input `stepped` is the tokens. `sizes` include those of the tokens; `capacity` is the
/// number of positions in caches.
Recording record_step(const Model& model, const std::string& function, const std::string& stepped,
                      const NamedSizes& sizes, std::int64_t capacity);

bool same_ops(const Recording& a, const Recording& b);
/// Throws DefinitionError unless both recordings have the same ops.
void require_same_ops(const Recording& a, const Recording& b);

/// A value of a fixed node that the rest reads.
struct BoundaryValue {
  ValueId value;
  std::int64_t row_axis = -1;  ///< The axis of its rows; -1 if the value is the same for all rows.
};

struct StepSplit {
  std::vector<bool> fixed;              ///< Per node: depends on a fixed input, and not on the step.
  std::vector<bool> needed;             ///< Per node: the result or a state depends on it.
  std::vector<BoundaryValue> boundary;  ///< In the order in which the rest first reads them.
};

/// Splits `recording`. `wider` is the same function recorded for one row more: the axis that grows is the axis of the
/// rows. `longer` is recorded for another number of tokens per step and another capacity: nodes whose shapes differ
/// belong to the rest. Throws DefinitionError if the three do not have the same ops, or if a boundary value does not
/// have one axis for its rows.
StepSplit split(const Recording& recording, const Recording& wider, const Recording& longer);

/// The boundary values as vars on the tape of `recording`, with the axis of the rows first, named "fixed 0" and so on.
NamedVars boundary_vars(Recording& recording, const StepSplit& split);

/// The rest on its own tape. It reads the boundary values from `memory`, with the axis of the rows first.
Recording rest_of(const Recording& recording, const StepSplit& split, const std::vector<Array>& memory);

}  // namespace xtape::decode
