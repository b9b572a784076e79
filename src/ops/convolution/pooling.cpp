// Pooling: the largest element, or the mean, of sliding windows. Pooling is recorded as windows, one axis after the
// other.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "ops/convolution/windows.hpp"
#include "tape/calls.hpp"
#include "xtape/ops.hpp"
#include "xtape/ops/convolution.hpp"

namespace xtape {

namespace {
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

using Integers = std::vector<std::int64_t>;

/// Returns the largest element along the last axis, and the index of this element. In the index, the axis stays, with
/// size 1. Among equal elements, the first is chosen. A NaN counts as the largest element.
std::pair<Var, Var> first_largest(const Var& x) {
  const Var index = argmax(x, -1, true);
  return {squeeze(gather(x, -1, index), {-1}), index};
}

/// Returns the largest element of each window. If `with_index`, also returns the row-major index of this element within
/// the pooled axes.
Vars largest(const Var& x, const Pool& pool, bool with_index) {
  Var y = pool.padded(x, -std::numeric_limits<double>::infinity());
  Vars places;  // along each axis, the places of the largest elements
  for (std::size_t i = 0; i < pool.n && with_index; ++i) {
    // An element of the padding is chosen only if all elements are -inf. It then counts as the nearest element of x.
    const Var place = iota(x.tape(), y.shape(), static_cast<std::int64_t>(pool.first + i)) - pool.padding[i];
    places.push_back(clip(place, 0, x.shape()[pool.first + i] - 1));
  }
  for (std::size_t i = pool.n; i-- > 0;) {
    const auto axis = static_cast<std::int64_t>(pool.first + i);
    const auto slid = [&](const Var& of) { return windows(of, axis, pool.size[i], pool.stride[i], pool.dilation[i]); };
    const auto [value, chosen] = first_largest(slid(y));
    for (Var& place : places) place = squeeze(gather(slid(place), -1, chosen), {-1});
    y = value;
  }
  if (!with_index) return {y};
  Var index = places[0];
  for (std::size_t i = 1; i < pool.n; ++i) index = index * x.shape()[pool.first + i] + places[i];
  return {y, index};
}

/// Returns the sum of each window.
Var summed(const Var& x, const Pool& pool) {
  Axes within;
  for (std::size_t i = 0; i < pool.n; ++i) within.push_back(-1 - static_cast<std::int64_t>(i));
  return sum(windows_along(x, static_cast<std::int64_t>(x.rank() - pool.n), pool.size, pool.stride, pool.dilation),
             within);
}

Var averaged(const Var& x, const Pool& pool, bool count_padding) {
  const Var total = summed(pool.padded(x, 0), pool);
  const bool padded = std::ranges::any_of(pool.padding, [](std::int64_t p) { return p > 0; });
  const bool reaches_beyond = std::ranges::any_of(pool.beyond, [](std::int64_t p) { return p > 0; });
  if (!reaches_beyond && (count_padding || !padded)) {
    double count = 1;
    for (const std::int64_t size : pool.size) count *= static_cast<double>(size);
    return total / count;
  }
  // Only some elements of a window may count. Their number is the sum of the window over an array of ones.
  Shape counted(x.shape().begin() + pool.first, x.shape().end());
  Pool of_ones = pool;
  of_ones.first = 0;
  for (std::size_t i = 0; i < pool.n && count_padding; ++i) {
    counted[i] += 2 * pool.padding[i];
    of_ones.padding[i] = 0;
  }
  return total / summed(of_ones.padded(ones(x.tape(), counted, x.dtype()), 0), of_ones);
}

/// Returns `count` windows that cover an axis. The first var contains the elements of the windows, on a new last axis.
/// The second var says which of these elements exist, and is empty if all exist.
std::pair<Var, Var> covering(const Var& x, std::int64_t axis, std::int64_t count) {
  const std::int64_t length = x.size(axis);
  if (length % count == 0) return {windows(x, axis, length / count, length / count), Var()};
  // Uses int64 numbers. Computes floor(i * n / count) without the product i * n, which may be too large.
  const std::int64_t quotient = length / count, rest = length % count;
  const Var i = iota(x.tape(), {count, 1});
  const Var start = i * quotient + floor_divide(i * rest, count);
  const Var stop = (i + 1) * quotient + floor_divide((i + 1) * rest + (count - 1), count);
  const Var index = start + iota(x.tape(), {1, quotient + 2}, 1);
  const Var taken = take(x, minimum(index, length - 1), axis);
  Axes order;
  const auto rank = static_cast<std::int64_t>(taken.rank());
  for (std::int64_t a = 0; a < rank; ++a)
    if (a != axis + 1) order.push_back(a);
  order.push_back(axis + 1);
  Shape there = Shape::filled(taken.rank(), 1);
  there[static_cast<std::size_t>(axis)] = count;
  there.back() = quotient + 2;
  return {transpose(taken, order), reshape(index < stop, there)};
}

Integers adaptive_sizes(const Attributes& attributes, const Shape& x) {
  const auto& sizes = attributes.get<Integers>("output_size");
  bool fits = !sizes.empty() && sizes.size() <= x.size();
  for (std::size_t i = 0; fits && i < sizes.size(); ++i)
    fits = sizes[i] >= 1 && sizes[i] <= std::numeric_limits<std::int32_t>::max() && x[x.size() - sizes.size() + i] >= 1;
  if (!fits)
    throw ShapeError("output_size " + to_string(Attribute(sizes)) +
                     " must have a number from 1 to 2^31 - 1 for each of the last axes of " + to_string(x) +
                     ", which must have elements");
  return sizes;
}

Vars adaptive(const Var& x, const Attributes& attributes, bool average) {
  const Integers sizes = adaptive_sizes(attributes, x.shape());
  Var y = x;
  for (std::size_t i = sizes.size(); i-- > 0;) {
    const auto axis = static_cast<std::int64_t>(x.rank() - sizes.size() + i);
    const auto [elements, exist] = covering(y, axis, sizes[i]);
    if (!average) {
      y = first_largest(exist.empty() ? elements
                                      : where(exist, elements,
                                              full(x.tape(), {}, -std::numeric_limits<double>::infinity(), x.dtype())))
              .first;
    } else if (exist.empty()) {
      y = mean(elements, {-1});
    } else {
      const Var kept = where(exist, elements, zeros(x.tape(), {}, x.dtype()));
      y = sum(kept, {-1}) / sum(cast(exist, x.dtype()), {-1});
    }
  }
  return {y};
}

Vars pooled(const Op& op, const Vars& inputs, const Attributes& attributes);

/// Defines a pooling op, which is recorded as other ops: its shape rule and its expansion.
Op pooling(const char* name, const char* doc, std::vector<AttributeSpec> attributes) {
  Op op;
  op.name = name;
  op.doc = doc;
  op.inputs = {{"x", Accept::floating}};
  op.attributes = std::move(attributes);
  op.shape = +[](const OpCall& call) {
    Shape shape = call.shape(0);
    if (call.attributes.find("output_size") != nullptr) {
      const Integers sizes = adaptive_sizes(call.attributes, shape);
      std::copy(sizes.begin(), sizes.end(), shape.end() - sizes.size());
    } else {
      shape = Pool(call.attributes, shape).shape(shape);
    }
    return std::vector<ValueType>{{call.dtype(0), shape}};
  };
  op.expand = +[](const ExpandCall& call) { return pooled(call.op, call.inputs, call.attributes); };
  op.record = [](Tape, const Op& self, const Vars& inputs, const Attributes& given) {
    return pooled(self, inputs, given);
  };
  return op;
}

std::vector<AttributeSpec> pool_attributes(AttributeSpec last) {
  return {{"kernel_size", AttributeType::integers, "The size of a window along each of the last axes.", std::nullopt},
          {"stride", AttributeType::integers,
           "The distance between windows: one number, or one per axis. An empty list means kernel_size.", Integers{}},
          {"padding", AttributeType::integers,
           "The number of elements added at each end of an axis: one number, or one per axis.", Integers{0}},
          {"ceil_mode", AttributeType::boolean, "If true, the last window may reach beyond the end.", false},
          std::move(last)};
}

const AttributeSpec output_size{"output_size", AttributeType::integers,
                                "The number of windows along each of the last axes.", std::nullopt};

const Op& max_pool_op() {
  static const Op entry =
      pooling("max_pool",
              R"(The largest element of each window. Windows slide along the last axes of x, one axis for each number of
           kernel_size. If several elements of a window are equally large, the first of them gets the gradient. Padding
           is -inf. Recorded as windows, argmax and gather.)",
              pool_attributes({"dilation", AttributeType::integers,
                               "The distance between neighbouring elements of a window.", Integers{1}}));
  return entry;
}
const Op& avg_pool_op() {
  static const Op entry = pooling(
      "avg_pool",
      R"(The mean of each window. Windows slide along the last axes of x, one axis for each number of kernel_size.
           Recorded as windows and sum.)",
      pool_attributes(
          {"count_include_pad", AttributeType::boolean, "If true, the zeros of `padding` count in the mean.", true}));
  return entry;
}
const Op& adaptive_max_pool_op() {
  static const Op entry = pooling(
      "adaptive_max_pool",
      R"(The maxima of output_size windows that cover an axis of n elements. Window i contains the elements from floor(i
           * n / output_size) up to, but not including, ceil((i + 1) * n / output_size). If several elements of a window
           are equally large, the first of them gets the gradient.)",
      {output_size});
  return entry;
}
const Op& adaptive_avg_pool_op() {
  static const Op entry = pooling(
      "adaptive_avg_pool",
      R"(The means of output_size windows that cover an axis of n elements. Window i contains the elements from floor(i
           * n / output_size) up to, but not including, ceil((i + 1) * n / output_size).)",
      {output_size});
  return entry;
}

Vars pooled(const Op& op, const Vars& inputs, const Attributes& attributes) {
  const Var& x = inputs[0];
  if (attributes.find("output_size") != nullptr) return adaptive(x, attributes, &op == &adaptive_avg_pool_op());
  const Pool pool(attributes, x.shape());
  if (&op == &avg_pool_op()) return {averaged(x, pool, attributes.get<bool>("count_include_pad"))};
  return largest(x, pool, false);
}

/// Returns `list` with one number for each of `n` axes, for functions such as max_pool2d. Throws ShapeError if x or the
/// list has another number of axes.
Integers of_axes(std::size_t n, const Argument& x, Integers list, const std::string& name) {
  if (list.size() == 1) list.resize(n, list[0]);
  if (list.size() != n || (x.rank() != n + 1 && x.rank() != n + 2))
    throw ShapeError(name + std::to_string(n) + "d: x has shape " + to_string(x.shape()) + ", but must have " +
                     std::to_string(n + 1) + " or " + std::to_string(n + 2) + " axes, and a number for each of " +
                     std::to_string(n));
  return list;
}

Var recorded(const Op& op, std::size_t n, const Argument& x, const char* sizes, const Integers& list,
             Attributes attributes) {
  return at_place(x.caller(), [&] {
    attributes.set(sizes, of_axes(n, x, list, op.name));
    return apply(op, {x}, attributes)[0];
  });
}

Attributes max_attributes(const PerAxis& stride, const PerAxis& padding, const PerAxis& dilation, bool ceil_mode) {
  return {{"stride", stride.list}, {"padding", padding.list}, {"dilation", dilation.list}, {"ceil_mode", ceil_mode}};
}
Attributes avg_attributes(const PerAxis& stride, const PerAxis& padding, bool ceil_mode, bool count_include_pad) {
  return {{"stride", stride.list},
          {"padding", padding.list},
          {"ceil_mode", ceil_mode},
          {"count_include_pad", count_include_pad}};
}

std::pair<Var, Var> with_indices(std::size_t n, const Argument& x, const PerAxis& kernel_size, Attributes attributes) {
  const Op& op = max_pool_op();
  const Vars both = all_or_nothing(x.tape(), &op, x.caller(), [&] {
    attributes.set("kernel_size", of_axes(n, x, kernel_size.list, op.name));
    try {
      if (!is_floating(x.dtype())) throw DtypeError("x must be a float to be pooled with its indices");
      return largest(x, Pool(attributes, x.shape()), true);
    } catch (Error& error) {
      error.name_op(op.name);
      throw;
    }
  });
  return {both[0], both[1]};
}
}  // namespace

Var max_pool1d(const Argument& x, const PerAxis& kernel_size, const PerAxis& stride, const PerAxis& padding,
               const PerAxis& dilation, bool ceil_mode) {
  return recorded(max_pool_op(), 1, x, "kernel_size", kernel_size.list,
                  max_attributes(stride, padding, dilation, ceil_mode));
}
Var max_pool2d(const Argument& x, const PerAxis& kernel_size, const PerAxis& stride, const PerAxis& padding,
               const PerAxis& dilation, bool ceil_mode) {
  return recorded(max_pool_op(), 2, x, "kernel_size", kernel_size.list,
                  max_attributes(stride, padding, dilation, ceil_mode));
}
std::pair<Var, Var> max_pool1d_with_indices(const Argument& x, const PerAxis& kernel_size, const PerAxis& stride,
                                            const PerAxis& padding, const PerAxis& dilation, bool ceil_mode) {
  return with_indices(1, x, kernel_size, max_attributes(stride, padding, dilation, ceil_mode));
}
std::pair<Var, Var> max_pool2d_with_indices(const Argument& x, const PerAxis& kernel_size, const PerAxis& stride,
                                            const PerAxis& padding, const PerAxis& dilation, bool ceil_mode) {
  return with_indices(2, x, kernel_size, max_attributes(stride, padding, dilation, ceil_mode));
}
Var avg_pool1d(const Argument& x, const PerAxis& kernel_size, const PerAxis& stride, const PerAxis& padding,
               bool ceil_mode, bool count_include_pad) {
  return recorded(avg_pool_op(), 1, x, "kernel_size", kernel_size.list,
                  avg_attributes(stride, padding, ceil_mode, count_include_pad));
}
Var avg_pool2d(const Argument& x, const PerAxis& kernel_size, const PerAxis& stride, const PerAxis& padding,
               bool ceil_mode, bool count_include_pad) {
  return recorded(avg_pool_op(), 2, x, "kernel_size", kernel_size.list,
                  avg_attributes(stride, padding, ceil_mode, count_include_pad));
}
Var adaptive_avg_pool1d(const Argument& x, const PerAxis& output_size) {
  return recorded(adaptive_avg_pool_op(), 1, x, "output_size", output_size.list, {});
}
Var adaptive_avg_pool2d(const Argument& x, const PerAxis& output_size) {
  return recorded(adaptive_avg_pool_op(), 2, x, "output_size", output_size.list, {});
}
Var adaptive_max_pool1d(const Argument& x, const PerAxis& output_size) {
  return recorded(adaptive_max_pool_op(), 1, x, "output_size", output_size.list, {});
}
Var adaptive_max_pool2d(const Argument& x, const PerAxis& output_size) {
  return recorded(adaptive_max_pool_op(), 2, x, "output_size", output_size.list, {});
}

void list_pooling(OpTable& table) {
  for (const Op* op : {&max_pool_op(), &avg_pool_op(), &adaptive_max_pool_op(), &adaptive_avg_pool_op()})
    table.add(*op);
}

}  // namespace xtape
