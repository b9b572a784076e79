/// Rows and recordings that the ops' gradients and expansions share.
#pragma once

#include <cstdint>
#include <utility>

#include "xtape/op.hpp"

namespace xtape {

const Op& reshape_op();
const Op& logical_not_op();

/// The term of `x` under the shape of `type`.
TermId reshaped_term(Terms& terms, TermId x, const ValueType& type);
/// The term of the opposite of a mask.
TermId opposite_term(Terms& terms, TermId mask);
/// The mean over axes that are counted from the back, which stay with size 1.
TermId mean_term(Terms& terms, TermId x, const std::vector<std::int64_t>& axes);

/// The adjoint of broadcasting: `x` summed over the axes along which `shape` broadcasts to x's shape.
Var sum_to(const Var& x, const Shape& shape);

/// The largest element along `axis` (kept, of size 1), and 0 for -inf: what may safely be subtracted before exp. A
/// constant to gradients, as the shift cancels.
Var finite_max(const Var& x, std::int64_t axis);
/// log_softmax(x), and log sum exp(x) along `axis` (kept, of size 1), which is 0 for a row of -inf.
std::pair<Var, Var> log_softmax_parts(const Var& x, std::int64_t axis);

}  // namespace xtape
