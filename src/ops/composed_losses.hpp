/// Helpers shared by the losses that are compositions.
#pragma once

#include <string>
#include <vector>

#include "composed.hpp"

namespace xtape {

/// The attribute "reduction", and its value.
std::vector<AttributeSpec> reduced_loss();
const std::string& reduction_of(const Attributes& attributes);

/// The losses, their sum, or their sum divided by their number or by the size of their first axis.
Vars reduced_losses(const ExpandCall& call, const Var& losses);

/// The type of losses of this shape, reduced. Throws Error unless the reduction is known and numbers are in range.
std::vector<ValueType> loss_type(const OpCall& call, const Shape& losses);

}  // namespace xtape
