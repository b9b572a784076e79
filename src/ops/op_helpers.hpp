/// Ops, terms and recordings that the gradients, expansions and canonical forms of several ops share.
#pragma once

#include <cstdint>
#include <utility>

#include "xtape/op/op.hpp"

namespace xtape {

const Op& reshape_op();
const Op& logical_not_op();

/// Returns the term of `x` reshaped to the shape of `type`.
TermId reshaped_term(TermTable& terms, TermId x, const ValueType& type);
/// Returns the term of the negation of a mask.
TermId opposite_term(TermTable& terms, TermId mask);
/// Returns the term of the mean of `x` over `axes`. The axes are negative, and they stay with size 1.
TermId mean_term(TermTable& terms, TermId x, const std::vector<std::int64_t>& axes);

/// The adjoint of broadcasting: sums `x` over the axes along which `shape` broadcasts to the shape of `x`.
Var sum_to(const Var& x, const Shape& shape);

/// Returns the largest element along `axis`, which stays with size 1, or 0 if this element is -inf. Subtracting it
/// before exp prevents overflow. No gradient flows through it, because the shift cancels.
Var finite_max(const Var& x, std::int64_t axis);
/// Returns log_softmax(x) along `axis`, and log sum exp(x) along `axis`, which stays with size 1. The log sum is 0 for
/// a row of -inf.
std::pair<Var, Var> log_softmax_parts(const Var& x, std::int64_t axis);

/// log(exp(x0) + exp(x1) + …), element by element and without overflow. Where all terms are -inf, the result is -inf
/// and its gradient 0. It consists of elementwise ops, which fuse. For the elements of one array, logsumexp has a
/// kernel.
Var log_add_exp(const Vars& xs);

}  // namespace xtape
