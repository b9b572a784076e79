/// Recordings that the indexing ops share.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

#include "xtape/op/op.hpp"

namespace xtape {

/// int64 indices of an axis of `size` elements from any; with `wrap`, those below 0 count from the end. Others throw
/// Error when played.
Var checked_indices(const Var& indices, std::int64_t size, bool wrap = true);

// The ops of these names.
Var index_reduce(const Var& x, const Var& indices, const Var& part, const std::string& reduce);
Var scatter_elements(const Var& x, const Var& indices, const Var& part, const std::string& reduce, std::int64_t axis);

/// x with the slices of `part` combined at the indices along axis 0 or, if there is an axis, with the elements along
/// it. `reduce` is "set", "sum", "prod", "mean", "amax" or "amin".
Var combined_at(const Var& x, const Var& indices, const Var& part, const std::string& reduce, bool include_self = true,
                std::optional<std::int64_t> axis = std::nullopt);

/// Throws Error unless the attribute "reduce" is one of the words, and DtypeError if it reduces bool.
void require_reduction(const OpCall& call, std::initializer_list<const char*> words);

/// `x` with axes of size 1 behind its own, so that it has `rank` axes.
Var with_rank(const Var& x, std::size_t rank);

/// The lowest value of a dtype, or the highest.
Var lowest(Tape tape, const Shape& shape, Dtype dtype, bool highest);

}  // namespace xtape
