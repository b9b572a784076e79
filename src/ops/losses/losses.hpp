/// Shared helpers of the losses.
#pragma once

#include <string>
#include <vector>

#include "kernels/reductions/cross_entropy.hpp"
#include "ops/recording/op_helpers.hpp"

namespace xtape {

// Shared helpers of cross_entropy and product_cross_entropy.

const Op& cross_entropy_op();
const Op& cross_entropy_grad_op();

/// The attributes ignore, label_smoothing and smoothing_excludes.
std::vector<AttributeSpec> loss_attributes();

/// Throws ShapeError or Error if these attributes are not valid for logits of shape `logits`, or if input number
/// `targets` does not have one element for each row of the logits.
void check_loss(const OpCall& call, const Shape& logits, std::size_t targets);

// Shared helpers of the losses that are compositions.

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
