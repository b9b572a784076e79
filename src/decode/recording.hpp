/// A function recorded in mode predict, and its two parts: what depends on fixed inputs alone, and the rest.
#pragma once

#include <string>
#include <vector>

#include "xtape/model.hpp"

namespace xtape::decode {

struct Recording {
  Tape tape{Mode::predict};
  NamedVars fixed;  ///< The inputs that do not change from step to step.
  Var tokens;
  Var past;  ///< An input of its own, int64 [rows].
  Var result;
};

/// Records `function`, whose input `stepped` is the tokens, for sizes that include those of the tokens.
Recording record_step(const Model& model, const std::string& function, const std::string& stepped,
                      const NamedSizes& sizes, std::int64_t capacity);

/// A value that the fixed part gives to the rest.
struct BoundaryValue {
  ValueId value;
  std::int64_t row_axis = -1;  ///< The axis of its rows; -1 where it is the same for all.
};

struct Split {
  std::vector<bool> fixed;              ///< Per node: depends on a fixed input, and not on the step.
  std::vector<bool> needed;             ///< Per node: the result or a state depends on it.
  std::vector<BoundaryValue> boundary;  ///< In the order of nodes.
};

/// Where `recording` is to be cut. `wider` is the same function recorded for one row more: what grows by it is the axis
/// of the rows. `longer` is another number of tokens a step and another capacity: what differs belongs to the rest.
/// Throws DefinitionError where a value does not keep its rows apart along one axis.
Split split(const Recording& recording, const Recording& wider, const Recording& longer);

/// The boundary of `recording` as vars on its own tape, rows first: "fixed 0" and so on.
NamedVars boundary_vars(Recording& recording, const Split& split);

/// The rest on a tape of its own, reading boundary from `memory` (rows first).
Recording rest_of(const Recording& recording, const Split& split, const std::vector<Array>& memory);

}  // namespace xtape::decode
