/// The windows of pooling.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "ops/convolution/windows.hpp"

namespace xtape {

/// How windows slide along the last axes. kernel_size has one number for each of these axes.
struct Pool {
  using Integers = std::vector<std::int64_t>;

  std::size_t n = 0, first = 0;  // the number of pooled axes, and the first pooled axis
  Integers size, stride, dilation, padding, count;
  /// The number of elements by which windows extend beyond the end and its padding. If negative, the number of elements
  /// that no window reaches.
  Integers beyond;

  Pool(const Attributes& attributes, const Shape& x) {
    size = attributes.get<Integers>("kernel_size");
    n = size.size();
    if (n == 0 || n > x.size())
      throw ShapeError("kernel_size must have one number for each of the last axes of " + to_string(x) + ", got " +
                       std::to_string(n));
    first = x.size() - n;
    stride = attributes.get<Integers>("stride").empty() ? size : per_axis(attributes, "stride", n);
    padding = per_axis(attributes, "padding", n);
    dilation = attributes.find("dilation") == nullptr ? Integers(n, 1) : per_axis(attributes, "dilation", n);
    for (std::size_t i = 0; i < n; ++i) add_axis(x, i, attributes.get<bool>("ceil_mode"));
  }
  Shape shape(Shape x) const {
    std::copy(count.begin(), count.end(), x.begin() + first);
    return x;
  }
  /// Returns x with elements `value` added on all sides, as far as windows extend.
  Var padded(const Var& x, double value) const {
    Integers after = padding;
    for (std::size_t i = 0; i < n; ++i) after[i] += std::max<std::int64_t>(0, beyond[i]);
    return extended(x, first, padding, after, value);
  }

 private:
  void add_axis(const Shape& x, std::size_t i, bool ceil_mode) {
    std::int64_t length = x[first + i];
    const std::int64_t span = span_of_window(size[i], dilation[i]);
    if (padding[i] < 0 || padding[i] > size[i] / 2)
      throw ShapeError("padding must be at least 0 and at most half of kernel_size " + std::to_string(size[i]) +
                       ", got " + std::to_string(padding[i]));
    // a window that consists only of padding has no largest element
    const bool fits = length > 0 && checked_add(length, 2 * padding[i]);
    std::int64_t windows = fits ? count_of_windows(length, size[i], stride[i], dilation[i]) : 0;
    if (windows == 0)
      throw ShapeError("a window over " + std::to_string(span) + " elements does not fit axis " +
                       std::to_string(first + i) + " of " + to_string(x) + " with padding " +
                       std::to_string(padding[i]));
    std::int64_t next = windows;  // the beginning of one more window, which must be in x or in the padding before x
    if (ceil_mode && (length - span) % stride[i] != 0 && checked_multiply(next, stride[i]) &&
        next < length - padding[i])
      ++windows;
    std::int64_t end = (windows - 1) * stride[i];
    if (!checked_add(end, span)) throw ShapeError("windows reach beyond 2^63 - 1 elements");
    count.push_back(windows);
    beyond.push_back(end - length);
  }
};

}  // namespace xtape
