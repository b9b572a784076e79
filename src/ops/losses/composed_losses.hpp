/// Shared helpers of the losses that are compositions.
#pragma once

#include <string>
#include <vector>

#include "ops/recording/composed.hpp"

namespace xtape {

/// The attribute "reduction".
std::vector<AttributeSpec> reduced_loss();
const std::string& reduction_of(const Attributes& attributes);

/// Applies the attribute "reduction" of the call to `losses`: returns the losses, their sum, or their sum divided by
/// their number or by the size of their first axis.
Vars reduced_losses(const ExpandCall& call, const Var& losses);

/// Returns the type of losses of this shape after the reduction. Throws Error if the attribute "reduction" is unknown,
/// or if a numeric attribute is out of range.
std::vector<ValueType> loss_type(const OpCall& call, const Shape& losses);

}  // namespace xtape
