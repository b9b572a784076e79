/// Ops, terms and recordings that the gradients, expansions and canonical forms of several ops share.
#pragma once

#include <cstdint>
#include <utility>

#include "xtape/op/op.hpp"

namespace xtape {

const Op& reshape_op();
const Op& logical_not_op();

/// The term of `x` reshaped to the shape of `type`.
TermId reshaped_term(TermTable& terms, TermId x, const ValueType& type);
/// The term of the negation of a mask.
TermId opposite_term(TermTable& terms, TermId mask);
/// The term of the mean of `x` over `axes`, which are counted from the back and stay with size 1.
TermId mean_term(TermTable& terms, TermId x, const std::vector<std::int64_t>& axes);

/// The adjoint of broadcasting: sums `x` over the axes along which `shape` broadcasts to the shape of `x`.
Var sum_to(const Var& x, const Shape& shape);

/// The largest element along `axis`, which stays with size 1; 0 where that element is -inf. Subtracting it before exp
/// prevents overflow. No gradient flows through it, since the shift cancels.
Var finite_max(const Var& x, std::int64_t axis);
/// Returns log_softmax(x) along `axis`, and log sum exp(x) along `axis`, which stays with size 1. The latter is 0 for a
/// row of -inf.
std::pair<Var, Var> log_softmax_parts(const Var& x, std::int64_t axis);

/// log(exp(x0) + exp(x1) + …), element by element, without overflow; -inf, with gradient 0, where all are. Elementwise
/// ops, which fuse; logsumexp has a kernel for the elements of one array.
Var log_add_exp(const Vars& xs);

}  // namespace xtape
