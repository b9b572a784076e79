/// Ops, terms and recordings that the gradients, expansions and canonical forms of several ops share.
#pragma once

#include <cstddef>
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

/// Records x[..., first:last, ...] along an axis.
Var part_along(const Var& x, std::size_t axis, std::int64_t first, std::int64_t last);

/// The adjoint of broadcasting: sums `x` over the axes along which `shape` broadcasts to the shape of `x`.
Var sum_to(const Var& x, const Shape& shape);

/// Returns the largest element along `axis`, or 0 if it is -inf. The axis stays, with size 1. Code that computes exp(x)
/// subtracts this element from x first, which prevents overflow. No gradient flows through the element, because the
/// shift cancels.
Var finite_max(const Var& x, std::int64_t axis);
/// Returns log_softmax(x) and log sum exp(x), both along `axis`. In log sum exp(x), the axis stays, with size 1. For a
/// row of -inf, log sum exp(x) is 0.
std::pair<Var, Var> log_softmax_parts(const Var& x, std::int64_t axis);

/// log(exp(x0) + exp(x1) + …), element by element and without overflow. Where all terms are -inf, the result is -inf
/// and its gradient 0. The result consists of elementwise ops, which fuse. To reduce the elements of one array along an
/// axis, use logsumexp, which uses the kernels of the reductions.
Var log_add_exp(const Vars& xs);

}  // namespace xtape
