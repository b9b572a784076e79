// Pooling, normalisation and dropout.
#include <algorithm>
#include <limits>

#include "onnx/operators.hpp"
#include "xtape/ops.hpp"
#include "xtape/ops/convolution.hpp"
#include "xtape/ops/reductions.hpp"

namespace xtape::onnx {

namespace {
/// The attributes of a pool: the spatial attributes, and attributes that only pools have.
struct Pool : Spatial {
  bool beyond = false;  // ceil_mode: the last window may reach beyond the end
  bool fits = true;     // whether a window fits without this
  Integers more = {};   // for each axis, the additional padding at the end
  /// Returns whether xtape's own pools support these windows.
  bool plain() const {
    bool small = symmetric() && axes() <= 2 && fits;
    for (std::size_t i = 0; i < axes(); ++i) small = small && 2 * before[i] <= kernel[i];
    return small;
  }
};

Pool pool_of(NodeCall& node, const Var& x) {
  const Integers sizes = spatial_sizes(x);
  Pool pool{spatial_of(node, sizes)};
  pool.beyond = node.flag("ceil_mode", false);
  for (std::size_t i = 0; i < pool.axes(); ++i) {
    const std::int64_t stride = pool.stride[i], whole = sizes[i] + pool.before[i] + pool.after[i] - pool.reach(i);
    const std::int64_t left = (whole % stride + stride) % stride, start = whole - left + stride;
    // A window that would begin beyond the input does not count.
    const bool more = pool.beyond && left > 0 && start >= 0 && start < sizes[i] + pool.before[i];
    pool.more.push_back(more ? stride - left : 0);
    pool.fits = pool.fits && whole >= 0;
  }
  return pool;
}

Axes last_axes(std::size_t count) {
  Axes axes;
  for (std::size_t i = 0; i < count; ++i) axes.push_back(-1 - static_cast<std::int64_t>(i));
  return axes;
}

/// Converts indices within each channel to indices within x. If storage_order is 1, makes the indices within a channel
/// column-major.
Var whole_indices(NodeCall& node, const Var& x, Var indices) {
  const Integers sizes = spatial_sizes(x);
  const std::int64_t plane = count_of(Shape(sizes.begin(), sizes.end()));
  if (node.flag("storage_order", false)) {
    Var column_major = zeros_like(indices);
    std::int64_t stride = plane;
    for (std::size_t i = sizes.size(); i-- > 0; indices = floor_divide(indices, sizes[i]))
      column_major = column_major + mod(indices, sizes[i]) * (stride /= sizes[i]);
    indices = column_major;
  }
  Shape planes = Shape::filled(x.rank(), 1);
  planes[0] = x.size(0), planes[1] = x.size(1);
  return indices + reshape(iota(node.tape(), {x.size(0) * x.size(1)}), planes) * plane;
}

/// Returns the largest element of each window of x, and its index within its channel.
std::pair<Var, Var> max_with_indices(const Var& x, const Pool& pool, const Literal& least) {
  const std::size_t rank = x.rank();
  const Integers sizes = spatial_sizes(x);
  const Shape plane(sizes.begin(), sizes.end());
  Shape one = plane;
  one.insert(0, 1), one.insert(0, 1);
  const auto flat = [&](const Var& slid) {  // [b, c, windows…, elements]
    Shape shape(slid.shape().begin(), slid.shape().begin() + rank);
    shape.push_back(count_of(Shape(slid.shape().begin() + rank, slid.shape().end())));
    return reshape(slid, shape);
  };
  const Var elements = flat(windows_of(x, pool, least, pool.more)), chosen = argmax(elements, -1, true);
  const Var places = reshape(iota(x.tape(), {count_of(plane)}), one);
  const Var indices = broadcast_to(flat(windows_of(places, pool, 0, pool.more)), elements.shape());
  return {squeeze(gather(elements, -1, chosen), {-1}), squeeze(gather(indices, -1, chosen), {-1})};
}

Vars max_pool(NodeCall& node) {
  const Var& x = node.at(0);
  const Pool pool = pool_of(node, x);
  const bool floats = is_floating(x.dtype());
  if (pool.plain() && floats) {
    const auto [y, indices] =
        pool.axes() == 1
            ? max_pool1d_with_indices(x, pool.kernel, pool.stride, pool.before, pool.dilation, pool.beyond)
            : max_pool2d_with_indices(x, pool.kernel, pool.stride, pool.before, pool.dilation, pool.beyond);
    if (node.gives(1)) return {y, whole_indices(node, x, indices)};
    node.ignore("storage_order");  // applies only to indices
    return {y};
  }
  const Literal least = floats                     ? Literal(-std::numeric_limits<double>::infinity())
                        : x.dtype() == Dtype::int8 ? Literal(-128)
                                                   : Literal(std::numeric_limits<std::int32_t>::min());
  if (node.gives(1)) {
    const auto [y, indices] = max_with_indices(x, pool, least);
    return {y, whole_indices(node, x, indices)};
  }
  node.ignore("storage_order");
  return {max(windows_of(x, pool, least, pool.more), last_axes(pool.axes()))};
}

/// The sum of each window, divided by its number of elements.
Vars average_pool(NodeCall& node) {
  const Var& x = node.at(0);
  const Pool pool = pool_of(node, x);
  const bool counts_padding = node.flag("count_include_pad", false);
  const bool dilated = std::ranges::any_of(pool.dilation, [](auto each) { return each != 1; });
  if (pool.plain() && !dilated) {
    if (pool.axes() == 1) return {avg_pool1d(x, pool.kernel, pool.stride, pool.before, pool.beyond, counts_padding)};
    return {avg_pool2d(x, pool.kernel, pool.stride, pool.before, pool.beyond, counts_padding)};
  }
  Shape one = x.shape();
  one[0] = one[1] = 1;
  Pool counted = pool;
  if (counts_padding)
    for (std::size_t i = 0; i < pool.axes(); ++i) {
      one[i + 2] += pool.before[i] + pool.after[i];
      counted.before[i] = counted.after[i] = 0;
    }
  const Axes axes = last_axes(pool.axes());
  const Var elements = sum(windows_of(full(node.tape(), one, 1, x.dtype()), counted, 0, pool.more), axes);
  return {sum(windows_of(x, pool, 0, pool.more), axes) / elements};
}

template <Var (*function)(const Argument&, const Axes&, bool)>
Vars global_pool(NodeCall& node) {
  const Var& x = node.at(0);
  if (x.rank() < 3) node.fail("x has the shape " + to_string(x.shape()) + ", without spatial axes");
  return {function(x, last_axes(x.rank() - 2), true)};
}

Vars batch_normed(NodeCall& node) {
  const Vars given = in_one_dtype({node.at(0), node.at(1), node.at(2), node.at(3), node.at(4)});
  const Var &x = given[0], &weight = given[1], &bias = given[2], &mean_before = given[3], &var_before = given[4];
  const double epsilon = node.real("epsilon", 1e-5), momentum = node.real("momentum", 0.9);
  if (node.integer("spatial", 1) != 1) node.fail("only spatial 1 is supported");
  if (node.opset() < 7 && !node.flag("is_test", false)) node.fail("training is not supported");
  if (!node.flag("training_mode", false)) return {batch_norm(x, mean_before, var_before, weight, bias, epsilon)};
  const BatchNorm now = batch_norm_training(x, weight, bias, epsilon);
  Axes axes = last_axes(x.rank() - 2);
  axes.push_back(0);
  const Dtype dtype = node.at(3).dtype();
  return {now.y, cast(mean_before * momentum + now.mean * (1 - momentum), dtype),
          cast(var_before * momentum + variance(x, axes) * (1 - momentum), dtype)};
}

/// Returns x as [outer, inner], where `axis` is the first inner axis.
Var in_rows(const Var& x, std::size_t axis) {
  const Shape inner(x.shape().begin() + axis, x.shape().end());
  return reshape(x, {count_of(Shape(x.shape().begin(), x.shape().begin() + axis)), count_of(inner)});
}

/// Returns a scale or bias of the axes from `axis` on as a row, or nothing if it varies along other axes.
Var as_row(const Var& numbers, const Var& x, std::size_t axis) {
  Shape inner(x.shape().begin() + axis, x.shape().end()), shape = numbers.shape();
  while (shape.size() > inner.size() && shape[0] == 1) shape.erase(0);
  if (shape.size() > inner.size()) return {};
  return reshape(broadcast_to(reshape(numbers, shape), inner), {count_of(inner)});
}

/// Applies a norm to the axes of x from `axis` on as one axis. The scale and the bias broadcast to x.
template <class Norm>
Var normed(NodeCall& node, const Var& x, std::size_t axis, const Norm& norm) {
  const Var rows = in_rows(x, axis), scale = node.at(1), bias = node.optional(2);
  const Var scale_row = as_row(scale, x, axis), bias_row = bias.empty() ? bias : as_row(bias, x, axis);
  if (!scale_row.empty() && bias_row.empty() == bias.empty())
    return reshape(norm(rows, scale_row, bias_row), x.shape());
  const Var y = reshape(norm(rows, Var(), Var()), x.shape()) * broadcast_to(scale, x.shape());
  return bias.empty() ? y : y + broadcast_to(bias, x.shape());
}

/// Means and inverse standard deviations of half-precision inputs are float32 (stash_type).
Vars layer_normed(NodeCall& node) {
  const Var& x = node.at(0);
  const std::size_t axis = normal_axis(node.integer("axis", -1), x.rank());
  const double epsilon = node.real("epsilon", 1e-5);
  node.ignore("stash_type");
  const Var rows = in_rows(x, axis);
  const Var y = normed(node, x, axis, [&](const Var& each, const Var& scale, const Var& bias) {
    if (scale.empty()) return layer_norm(each, epsilon);
    return bias.empty() ? layer_norm(each, scale, epsilon) : layer_norm(each, scale, bias, epsilon);
  });
  Shape one = x.shape();
  std::fill(one.begin() + axis, one.end(), 1);
  Vars results = {y};
  if (node.gives(1) || node.gives(2)) {
    results.push_back(reshape(mean(wide(rows), {-1}), one));
    results.push_back(reshape(rsqrt(variance(wide(rows), {-1}) + epsilon), one));
  }
  return results;
}

Vars rms_normed(NodeCall& node) {
  const Var& x = node.at(0);
  const std::size_t axis = normal_axis(node.integer("axis", -1), x.rank());
  node.ignore("stash_type");
  const double epsilon = node.real("epsilon", 1e-5);
  return {normed(node, x, axis, [&](const Var& each, const Var& scale, const Var&) {
    const Vars given = in_one_dtype({each, scale});
    return scale.empty() ? rms_norm(each, epsilon) : rms_norm(given[0], given[1], epsilon);
  })};
}

/// Before version 21, there is one weight and bias per group.
Vars group_normed(NodeCall& node) {
  const Var& x = node.at(0);
  const std::int64_t groups = node.integer("num_groups");
  node.ignore("stash_type");
  const auto of_channels = [&](const Var& each) {
    if (node.opset() >= 21 || groups < 1) return each;
    return reshape(broadcast_to(expand_dims(each, 1), {groups, x.size(1) / groups}), {x.size(1)});
  };
  return {group_norm(x, groups, of_channels(node.at(1)), of_channels(node.at(2)), node.real("epsilon", 1e-5))};
}

Vars instance_normed(NodeCall& node) {
  return {instance_norm(node.at(0), node.at(1), node.at(2), node.real("epsilon", 1e-5))};
}

Vars normed_by_moments(NodeCall& node) {
  const Var x = wide(node.at(0));
  const Axes axes = node.integers("axes", Integers{0, 2, 3});
  const Var centred = x - mean(x, axes, true);
  return {centred / (sqrt(mean(square(centred), axes, true)) + 1e-9)};
}

/// Zeros where the norm is 0.
Vars length_normed(NodeCall& node) {
  const Var x = wide(node.at(0));
  const double p = static_cast<double>(node.integer("p", 2));
  const Var norm = vector_norm(x, p, {node.integer("axis", -1)}, true);
  return {x / where(norm == 0, 1, norm)};
}

/// x / (bias + alpha / size * s) ** beta, where s is the sum of squares over `size` neighbouring channels.
Vars response_normed(NodeCall& node) {
  const Var x = wide(node.at(0));
  const std::int64_t size = node.integer("size");
  if (size < 1) node.fail("size must be at least 1, not " + std::to_string(size));
  std::vector<std::int64_t> before(x.rank(), 0), after(x.rank(), 0);
  const std::size_t channels = normal_axis(1, x.rank());
  before[channels] = (size - 1) / 2;
  after[channels] = size - 1 - before[channels];
  const Var sums = sum(windows(pad(square(x), before, after), 1, size), {-1});
  const double alpha = node.real("alpha", 1e-4) / static_cast<double>(size);
  return {x / pow(sums * alpha + node.real("bias", 1), node.real("beta", 0.75))};
}

/// The identity, unless the input training_mode is true.
Vars dropped(NodeCall& node) {
  const Var& x = node.at(0);
  node.ignore("seed");
  if (node.opset() < 12) node.ignore("ratio");
  if (node.opset() < 7 && !node.flag("is_test", false)) node.fail("training is not supported before version 7");
  const bool training = node.has(2) && node.known_integer(2) != 0;
  node.optional(1);
  const double ratio = training && node.has(1) ? node.known_number(1) : 0.5;
  const Dtype of_mask = node.opset() < 10 ? x.dtype() : Dtype::boolean;
  if (!training || ratio == 0) return {x, full(node.tape(), x.shape(), 1, of_mask)};
  const Var kept = bernoulli(node.tape(), x.shape(), 1 - ratio);
  return {where(kept, x / (1 - ratio), zeros_like(x)), kept};
}
}  // namespace

const Operators& norm_operators() {
  static const Operators operators = {
      {"AveragePool", average_pool},
      {"BatchNormalization", batch_normed},
      {"Dropout", dropped},
      {"GlobalAveragePool", global_pool<mean>},
      {"GlobalMaxPool", global_pool<max>},
      {"GroupNormalization", group_normed},
      {"InstanceNormalization", instance_normed},
      {"LRN", response_normed},
      {"LayerNormalization", layer_normed},
      {"LpNormalization", length_normed},
      {"MaxPool", max_pool},
      {"MeanVarianceNormalization", normed_by_moments},
      {"RMSNormalization", rms_normed, 1},
  };
  return operators;
}

}  // namespace xtape::onnx
