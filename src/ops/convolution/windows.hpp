/// Sliding windows: the sizes that convolutions and pooling share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "xtape/op/op.hpp"
#include "xtape/ops.hpp"
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

// The sizes of a convolution, and its products.

/// A convolution of `input` [b, c, …] with a weight [o, c / groups, …] to `result` [b, o, …]. A transposed convolution
/// is its adjoint: it maps an array of the shape of the result to an array of the shape of the input.
struct ConvolutionGeometry {
  using Integers = std::vector<std::int64_t>;

  std::size_t n = 0;  // number of spatial axes
  std::int64_t groups = 1;
  Integers size, stride, dilation, before, after;  // of windows; `before` and `after`: zeros around the input

  ConvolutionGeometry(const Attributes& attributes, const Shape& x, const Shape& weight) {
    n = x.size() < 3 ? 0 : x.size() - 2;
    if (n == 0 || n > letters || weight.size() != x.size())
      throw ShapeError("needs x and weight of equally many axes, 3 to " + std::to_string(letters + 2) + ", got " +
                       to_string(x) + " and " + to_string(weight));
    groups = attributes.get<std::int64_t>("groups");
    if (groups < 1) throw Error("groups must be at least 1, got " + std::to_string(groups));
    size.assign(weight.begin() + 2, weight.end());
    stride = per_axis(attributes, "stride", n);
    dilation = per_axis(attributes, "dilation", n);
    const auto& padding = attributes.get<Integers>("padding");
    if (padding.size() == 2 * n) {
      before.assign(padding.begin(), padding.begin() + static_cast<std::ptrdiff_t>(n));
      after.assign(padding.begin() + static_cast<std::ptrdiff_t>(n), padding.end());
    } else {
      before = after = per_axis(attributes, "padding", n);
    }
    for (std::size_t i = 0; i < n; ++i) {
      count_of_windows(0, size[i], stride[i], dilation[i]);  // checks the arguments
      const std::int64_t least = std::min(before[i], after[i]);
      if (least < 0) throw ShapeError("padding must be at least 0, got " + std::to_string(least));
    }
  }
  std::int64_t span(std::size_t i) const { return span_of_window(size[i], dilation[i]); }
  /// Returns the number of windows along spatial axis `i` over `length` elements and the zeros around them.
  std::int64_t count(std::size_t i, std::int64_t length) const {
    if (!checked_add(length, before[i]) || !checked_add(length, after[i]))
      throw ShapeError("padding makes an axis longer than 2^63 - 1");
    const std::int64_t found = count_of_windows(length, size[i], stride[i], dilation[i]);
    if (found == 0)
      throw ShapeError("a window over " + std::to_string(span(i)) + " elements does not fit spatial axis " +
                       std::to_string(i) + ", of " + std::to_string(length) + " with its padding");
    return found;
  }

  static Integers joined(Integers list, const Integers& more) {
    list.insert(list.end(), more.begin(), more.end());
    return list;
  }
  /// Returns the attributes of a call with these windows.
  Attributes attributes() const {
    return {{"stride", stride}, {"padding", joined(before, after)}, {"dilation", dilation}, {"groups", groups}};
  }

  static constexpr std::size_t letters = 3;
  std::string places() const { return std::string("XYZ", n); }    // the axes of windows
  std::string elements() const { return std::string("xyz", n); }  // the axes of elements within windows
  std::string group() const { return groups > 1 ? "g" : ""; }
  /// Splits axis `axis` into the groups and the remaining axis.
  Var grouped(const Var& x, std::size_t axis) const {
    if (groups == 1) return x;
    Shape shape = x.shape();
    shape[axis] /= groups;
    shape.insert(axis, groups);
    return reshape(x, shape);
  }
  Var ungrouped(const Var& x, std::size_t axis) const {
    if (groups == 1) return x;
    Shape shape = x.shape();
    shape.erase(axis);
    shape[axis] *= groups;
    return reshape(x, shape);
  }
  /// Returns the windows [b, (groups,) c, places, elements] of an input that includes its zeros.
  Var windows_of(const Var& padded) const {
    return windows_along(grouped(padded, 1), groups > 1 ? 3 : 2, size, stride, dilation);
  }
  /// Returns the convolution of an input that includes its zeros with a weight. The weight has the letters
  /// `weight_letters` (o, c).
  Var product(const Var& padded, const Var& weight, const std::string& weight_letters) const {
    const std::string equation = "b" + group() + "c" + places() + elements() + "," + group() + weight_letters +
                                 elements() + "->b" + group() + "o" + places();
    return ungrouped(einsum(equation, windows_of(padded), grouped(weight, 0)), 1);
  }
};

}  // namespace xtape
