/// The result of a match. Private to the layer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "xtape/op/terms.hpp"

namespace xtape {

/// The terms and attributes of a tape that match the inputs and attributes of a pattern.
struct Binding {
  std::vector<TermId> inputs;                        ///< -1 for an input that is not bound yet.
  std::vector<std::optional<Attribute>> attributes;  ///< In the order of the rule's attributes.
  std::string miss;  ///< Describes the one literal that differs from the rule's; empty if all are equal.
};

}  // namespace xtape
