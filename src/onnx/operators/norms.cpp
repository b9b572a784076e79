// Pooling, normalisation and dropout.
#include <algorithm>
#include <limits>

#include "operators.hpp"
#include "operators/spatial.hpp"
#include "xtape/ops.hpp"
#include "xtape/ops/convolution.hpp"
#include "xtape/ops/reductions.hpp"

namespace xtape::onnx {

namespace {
/// The attributes of a pool: the spatial attributes, and attributes that only pools have.
struct Pool : Spatial {
  bool beyond = false;  // ceil_mode: the last window may reach beyond the end
  Integers more = {};   // for each axis, the additional padding at the end
  /// Returns whether xtape's own pools support these windows.
  bool plain() const {
    bool small = symmetric() && axes() <= 2;
    for (std::size_t i = 0; i < axes(); ++i) small = small && 2 * before[i] <= kernel[i];
    return small;
  }
};

Pool pool_of(NodeCall& node, const Var& x) {
  const Integers sizes = spatial_sizes(x);
  Pool pool{spatial_of(node, sizes)};
  pool.beyond = node.integer("ceil_mode", 0) != 0;
  for (std::size_t i = 0; i < pool.axes(); ++i) {
    const std::int64_t whole = sizes[i] + pool.before[i] + pool.after[i] - pool.reach(i), left = whole % pool.stride[i];
    // A window that would begin beyond the input does not count.
    const bool more = pool.beyond && left > 0 && whole - left + pool.stride[i] < sizes[i] + pool.before[i];
    pool.more.push_back(more ? pool.stride[i] - left : 0);
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
  const std::int64_t columns = x.size(-1), rows = x.rank() == 4 ? x.size(2) : 1;
  if (node.integer("storage_order", 0) != 0) indices = mod(indices, columns) * rows + floor_divide(indices, columns);
  const Shape planes = [&] {
    Shape shape = Shape::filled(x.rank(), 1);
    shape[0] = x.size(0), shape[1] = x.size(1);
    return shape;
  }();
  return indices + reshape(iota(node.tape(), {x.size(0) * x.size(1)}), planes) * (rows * columns);
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
  node.ignore("storage_order");
  const Literal least =
      floats                     ? Literal(-std::numeric_limits<double>::infinity())
      : x.dtype() == Dtype::int8 ? Literal(-128)
                                 : Literal(std::numeric_limits<std::int32_t>::min());
  return {max(windows_of(x, pool, least, pool.more), last_axes(pool.axes()))};
}

/// The sum of each window, divided by its number of elements.
Vars average_pool(NodeCall& node) {
  const Var& x = node.at(0);
  const Pool pool = pool_of(node, x);
  const bool counts_padding = node.integer("count_include_pad", 0) != 0;
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
  const Var &x = node.at(0), &weight = node.at(1), &bias = node.at(2), &mean_before = node.at(3),
            &var_before = node.at(4);
  const double epsilon = node.real("epsilon", 1e-5), momentum = node.real("momentum", 0.9);
  if (node.integer("spatial", 1) != 1) node.fail("only spatial 1 is supported");
  if (node.opset() < 7 && node.integer("is_test", 0) == 0) node.fail("training is not supported");
  if (node.integer("training_mode", 0) == 0) return {batch_norm(x, mean_before, var_before, weight, bias, epsilon)};
  const BatchNorm now = batch_norm_training(x, weight, bias, epsilon);
  Axes axes = last_axes(x.rank() - 2);
  axes.push_back(0);
  return {now.y, mean_before * momentum + now.mean * (1 - momentum),
          var_before * momentum + variance(x, axes) * (1 - momentum)};
}

/// Returns x as [outer, inner], where `axis` is the first inner axis.
Var in_rows(const Var& x, std::size_t axis) {
  const Shape inner(x.shape().begin() + axis, x.shape().end());
  return reshape(x, {count_of(Shape(x.shape().begin(), x.shape().begin() + axis)), count_of(inner)});
}

/// Converts half-precision arrays to float32 for formulas with squares, which may overflow in float16.
Var wide(const Var& x) {
  return is_half(x.dtype()) ? cast(x, Dtype::float32) : x;
}

/// Means and inverse standard deviations of half-precision inputs are float32 (stash_type).
Vars layer_normed(NodeCall& node) {
  const Var &x = node.at(0), &weight = node.at(1);
  const std::size_t axis = normal_axis(node.integer("axis", -1), x.rank());
  const double epsilon = node.real("epsilon", 1e-5);
  node.ignore("stash_type");
  const Var rows = in_rows(x, axis), flat_weight = reshape(weight, {-1});
  const Var y = node.has(2) ? layer_norm(rows, flat_weight, reshape(node.at(2), {-1}), epsilon)
                            : layer_norm(rows, flat_weight, epsilon);
  Shape one = x.shape();
  std::fill(one.begin() + axis, one.end(), 1);
  Vars results = {reshape(y, x.shape())};
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
  const Var y = rms_norm(in_rows(x, axis), reshape(node.at(1), {-1}), node.real("epsilon", 1e-5));
  return {reshape(y, x.shape())};
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
  return {cast(centred / (sqrt(mean(square(centred), axes, true)) + 1e-9), node.at(0).dtype())};
}

Vars length_normed(NodeCall& node) {
  const Var& x = node.at(0);
  const double p = static_cast<double>(node.integer("p", 2));
  return {x / vector_norm(x, p, {node.integer("axis", -1)}, true)};
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
  return {cast(x / pow(sums * alpha + node.real("bias", 1), node.real("beta", 0.75)), node.at(0).dtype())};
}

/// The identity, unless the input training_mode is true.
Vars dropped(NodeCall& node) {
  const Var& x = node.at(0);
  node.ignore("seed");
  if (node.opset() < 12) node.ignore("ratio");
  if (node.opset() < 7 && node.integer("is_test", 0) == 0) node.fail("training is not supported before version 7");
  const bool training = node.has(2) && node.known_integer(2) != 0;
  node.optional(1);
  const double ratio = training && node.has(1) ? node.known_number(1) : 0.5;
  if (!training || ratio == 0) return {x, full(node.tape(), x.shape(), 1, Dtype::boolean)};
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
      {"RMSNormalization", rms_normed},
  };
  return operators;
}

}  // namespace xtape::onnx
