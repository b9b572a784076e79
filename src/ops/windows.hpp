/// Sliding windows: sizes that convolutions and pooling share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "xtape/op/op.hpp"

namespace xtape {

/// The elements that a window reaches over: (size - 1) * dilation + 1. Throws Error unless size and dilation are at
/// least 1, and if the number is beyond 2^63 - 1.
std::int64_t span_of_window(std::int64_t size, std::int64_t dilation);
/// How many windows fit along an axis of `length`, which may be none. Throws as span_of_window, and unless stride >= 1.
std::int64_t count_of_windows(std::int64_t length, std::int64_t size, std::int64_t stride, std::int64_t dilation);

/// The list of an attribute with one number for each of `n` axes; one number stands for all axes.
std::vector<std::int64_t> per_axis(const Attributes& attributes, const std::string& name, std::size_t n);

/// Windows along the axes first, first + 1 …, one for each size; the axes within the windows come last.
Var windows_along(Var x, std::int64_t first, const std::vector<std::int64_t>& size,
                  const std::vector<std::int64_t>& stride, const std::vector<std::int64_t>& dilation);

/// x with before[i] and after[i] elements of `value` added to axis first + i; negative numbers remove elements.
Var extended(const Var& x, std::size_t first, const std::vector<std::int64_t>& before,
             const std::vector<std::int64_t>& after, double value = 0);

}  // namespace xtape
