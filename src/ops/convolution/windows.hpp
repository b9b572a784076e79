/// Sliding windows: the sizes that convolutions and pooling share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "xtape/op/op.hpp"
#include "xtape/tape.hpp"

namespace xtape {

/// Returns the number of elements over which a window extends: (size - 1) * dilation + 1. Throws Error if size or
/// dilation is below 1, or if the result exceeds 2^63 - 1.
std::int64_t span_of_window(std::int64_t size, std::int64_t dilation);
/// Returns how many windows fit along an axis of `length`, possibly none. Throws as span_of_window does, and if stride
/// is below 1.
std::int64_t count_of_windows(std::int64_t length, std::int64_t size, std::int64_t stride, std::int64_t dilation);

/// Returns the list of an attribute with one number for each of `n` axes. A single number stands for all axes.
std::vector<std::int64_t> per_axis(const Attributes& attributes, const std::string& name, std::size_t n);

/// Returns windows along the axes first, first + 1 …, one for each size. The axes within the windows come last.
Var windows_along(Var x, std::int64_t first, const std::vector<std::int64_t>& size,
                  const std::vector<std::int64_t>& stride, const std::vector<std::int64_t>& dilation);

/// Returns x with before[i] and after[i] elements of `value` added to axis first + i. Negative numbers remove elements.
Var extended(const Var& x, std::size_t first, const std::vector<std::int64_t>& before,
             const std::vector<std::int64_t>& after, double value = 0);

// Convolutions by Winograd's algorithm.

/// Returns the product of the windows over x [b, c, ...], with before[i] and after[i] zeros around spatial axis i, and
/// a weight [o, c, ...]. With `adjoint`, the weight is [c, o, ...] and is flipped. Returns an empty var if the
/// algorithm is not applicable. It requires float32, enough channels, and windows of 3 x 3 elements or of 3 or more
/// elements along a single axis.
Var winograd_conv(const Var& x, const Var& weight, const std::vector<std::int64_t>& before,
                  const std::vector<std::int64_t>& after, bool adjoint);

}  // namespace xtape
