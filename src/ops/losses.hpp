/// What the rows that take a cross-entropy share.
#pragma once

#include <cstdint>
#include <vector>

#include "cross_entropy.hpp"
#include "floating.hpp"

namespace xtape {

const Op& cross_entropy_op();
const Op& cross_entropy_grad_op();

/// ignore, label_smoothing and smoothing_excludes.
std::vector<AttributeSpec> loss_attributes();

/// Throws unless these attributes suit logits of shape `logits`, and input number `targets` has one element a row.
void check_loss(const Call& call, const Shape& logits, std::size_t targets);

/// The loss of logits of that shape, as the attributes have it.
CrossEntropy loss_of(const Attributes& attributes, const Shape& logits);

/// Calls f(T{}, Target{}) with the scalars of input number 0, a float, and of input number `targets`.
template <class F>
auto with_scalars(const Call& call, std::size_t targets, const F& f) {
  return with_floating(call.dtype(0), [&](auto scalar) {
    return call.dtype(targets) == Dtype::int32 ? f(scalar, std::int32_t{}) : f(scalar, std::int64_t{});
  });
}

}  // namespace xtape
