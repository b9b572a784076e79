/// Helpers shared by cross_entropy and product_cross_entropy.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels.hpp"
#include "floating.hpp"

namespace xtape {

const Op& cross_entropy_op();
const Op& cross_entropy_grad_op();

/// The attributes ignore, label_smoothing and smoothing_excludes.
std::vector<AttributeSpec> loss_attributes();

/// Throws ShapeError or Error unless these attributes are valid for logits of shape `logits`, and input number
/// `targets` has one element for each row of the logits.
void check_loss(const Call& call, const Shape& logits, std::size_t targets);

/// The parameters of the loss for logits of shape `logits`.
CrossEntropy loss_of(const Attributes& attributes, const Shape& logits);

/// Calls f(T{}, Target{}) with the C++ types of input 0, a float, and of input number `targets`, an integer.
template <class F>
auto with_scalars(const Call& call, std::size_t targets, const F& f) {
  return with_floating(call.dtype(0), [&](auto scalar) {
    return call.dtype(targets) == Dtype::int32 ? f(scalar, std::int32_t{}) : f(scalar, std::int64_t{});
  });
}

}  // namespace xtape
