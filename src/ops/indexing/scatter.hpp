/// Shared recordings of the indexing ops.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

#include "xtape/op/op.hpp"

namespace xtape {

/// Returns the shape of the part of x that indices along `axis` reach: their sizes, and the whole axis. Throws
/// ShapeError if another axis of the indices is longer than that of x.
Shape reached_shape(const Shape& x, const Shape& indices, std::int64_t axis);

/// Converts integer indices for an axis of `size` elements to checked int64 indices. With `wrap`, indices below 0 count
/// from the end. Playing throws Error for any other index.
Var checked_indices(const Var& indices, std::int64_t size, bool wrap = true);

// Record the ops with these names.
Var index_reduce(const Var& x, const Var& indices, const Var& part, const std::string& reduce);
Var scatter_elements(const Var& x, const Var& indices, const Var& part, const std::string& reduce, std::int64_t axis);

/// Returns x combined with `part` at the indices. If `axis` is given, combines elements along this axis. Otherwise,
/// combines slices along axis 0. `reduce` is "set", "sum", "prod", "mean", "amax" or "amin".
Var combined_at(const Var& x, const Var& indices, const Var& part, const std::string& reduce, bool include_self = true,
                std::optional<std::int64_t> axis = std::nullopt);

/// Throws Error if the attribute "reduce" is not one of the words, and DtypeError if it reduces bool.
void require_reduction(const OpCall& call, std::initializer_list<const char*> words);

/// Returns `x` with axes of size 1 appended, so that it has `rank` axes.
Var with_rank(const Var& x, std::size_t rank);

/// Returns an array of the lowest value of a dtype, or of the highest value if `highest`.
Var lowest(Tape tape, const Shape& shape, Dtype dtype, bool highest);

}  // namespace xtape
