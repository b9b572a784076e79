/// Shared helpers of cross_entropy and product_cross_entropy.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/reductions/cross_entropy.hpp"
#include "ops/recording/floating.hpp"

namespace xtape {

const Op& cross_entropy_op();
const Op& cross_entropy_grad_op();

/// The attributes ignore, label_smoothing and smoothing_excludes.
std::vector<AttributeSpec> loss_attributes();

/// Throws ShapeError or Error if these attributes are not valid for logits of shape `logits`, or if input number
/// `targets` does not have one element for each row of the logits.
void check_loss(const OpCall& call, const Shape& logits, std::size_t targets);

}  // namespace xtape
