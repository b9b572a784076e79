// Resize, Upsample and GridSample.
#include "xtape/ops/resampling.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "onnx/operators.hpp"
#include "xtape/ops.hpp"

namespace xtape::onnx {

namespace {
/// The settings of a Resize that are the same for all axes. `nearest` may be "shrinks_up", the rule of versions before
/// 11: up for an axis that shrinks, otherwise down.
struct Resize {
  std::string mode, coordinates, nearest;
  double cubic = -0.75;
  bool exclude_outside = false;
};
struct ResizedAxis {
  std::int64_t in = 0, out = 0;
  /// The size of the result divided by the size of the input, before the size of the result is rounded.
  double scale = 1;
  double start = 0, end = 1;  ///< The bounds of the region as fractions of the axis, for tf_crop_and_resize.
};

/// Returns the position in the input, in elements, that corresponds to element `i` of the result.
double source_of(const std::string& coordinates, const ResizedAxis& axis, std::int64_t i) {
  const auto at = static_cast<double>(i), in = static_cast<double>(axis.in), out = static_cast<double>(axis.out);
  const double whole = axis.scale * in;
  if (coordinates == "asymmetric") return at / axis.scale;
  // PyTorch and ONNX Runtime align the last elements; ONNX's reference would need the size before it is rounded.
  if (coordinates == "align_corners") return i == 0 ? 0 : at * (in - 1) / (out - 1);
  if (coordinates == "tf_half_pixel_for_nn") return (at + 0.5) / axis.scale;
  if (coordinates == "pytorch_half_pixel" && axis.out == 1) return 0;
  if (coordinates == "tf_crop_and_resize")
    return axis.out == 1 ? 0.5 * (axis.start + axis.end) * (in - 1)
                         : axis.start * (in - 1) + at * (axis.end - axis.start) * (in - 1) / (out - 1);
  const double half = (at + 0.5) / axis.scale - 0.5;
  // The result has a rounded size and is centred on the input.
  if (coordinates == "half_pixel_symmetric") return in / 2 * (1 - out / whole) + half;
  return half;
}

double rounded(const std::string& nearest, double x, double scale) {
  if (nearest == "floor" || (nearest == "shrinks_up" && scale >= 1)) return std::floor(x);
  if (nearest == "ceil" || nearest == "shrinks_up") return std::ceil(x);
  return nearest == "round_prefer_ceil" ? std::floor(x + 0.5) : std::ceil(x - 0.5);
}

/// Returns the weights of the elements floor(x) - 1 to floor(x) + 2, where x has the fraction `t` (Keys, 1981).
std::array<double, 4> cubic_weights(double t, double a) {
  const auto near = [a](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  const auto far = [a](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {far(t + 1), near(t), near(1 - t), far(2 - t)};
}

/// Returns the elements of an input axis that contribute to element `i` of the result, with their weights.
std::vector<std::pair<double, double>> taps_of(const Resize& resize, const ResizedAxis& axis, std::int64_t i) {
  const double x = source_of(resize.coordinates, axis, i);
  const double first = std::floor(x), t = x - first;
  if (resize.mode == "nearest") return {{rounded(resize.nearest, x, axis.scale), 1}};
  if (resize.mode == "linear") return {{first, 1 - t}, {first + 1, t}};
  const std::array<double, 4> weights = cubic_weights(t, resize.cubic);
  return {{first - 1, weights[0]}, {first, weights[1]}, {first + 1, weights[2]}, {first + 2, weights[3]}};
}

/// Resamples axis k of x as a weighted sum of gathered slices.
Var resized(const Var& x, std::size_t k, const ResizedAxis& axis, const Resize& resize) {
  const auto last = static_cast<double>(axis.in - 1);
  std::vector<Integers> places;
  std::vector<std::vector<double>> weights;
  for (std::int64_t i = 0; i < axis.out; ++i) {
    auto taps = taps_of(resize, axis, i);
    double sum = 0;
    for (auto& [place, weight] : taps) {
      if (resize.exclude_outside && (place < 0 || place > last)) weight = 0;
      sum += weight;
    }
    places.resize(taps.size());
    weights.resize(taps.size());
    for (std::size_t j = 0; j < taps.size(); ++j) {
      places[j].push_back(static_cast<std::int64_t>(std::clamp(taps[j].first, 0.0, last)));
      weights[j].push_back(resize.exclude_outside ? taps[j].second / sum : taps[j].second);
    }
  }
  Var total;
  for (std::size_t j = 0; j < places.size(); ++j) {
    Var part = take(x, constant_integers(x.tape(), places[j]), static_cast<std::int64_t>(k));
    if (resize.mode != "nearest") {
      Array array(Dtype::float64, Shape{axis.out});
      std::copy(weights[j].begin(), weights[j].end(), array.as<double>());
      Shape along = Shape::filled(x.rank(), 1);
      along[k] = axis.out;
      part = part * reshape(cast(x.tape().constant(std::move(array)), x.dtype()), along);
    }
    total = j == 0 ? part : total + part;
  }
  return total;
}

/// Returns an array of flags for the result. A flag is false if tf_crop_and_resize takes the element from outside of
/// the input.
Var inside(Tape tape, const std::vector<ResizedAxis>& axes) {
  Var all = full(tape, Shape::filled(axes.size(), 1), 1, Dtype::boolean);
  for (std::size_t k = 0; k < axes.size(); ++k) {
    Array array(Dtype::boolean, Shape{axes[k].out});
    for (std::int64_t i = 0; i < axes[k].out; ++i) {
      const double x = source_of("tf_crop_and_resize", axes[k], i);
      array.as<bool>()[i] = x >= 0 && x <= static_cast<double>(axes[k].in - 1);
    }
    Shape along = Shape::filled(axes.size(), 1);
    along[k] = axes[k].out;
    all = logical_and(all, reshape(tape.constant(std::move(array)), along));
  }
  return all;
}

/// Returns `size`, the size of an axis after scaling, rounded down.
std::int64_t scaled_size(NodeCall& node, double size, double scale) {
  const double out = std::floor(size);
  if (!(scale > 0) || !(out < 0x1p62)) node.fail("scale " + std::to_string(scale) + " is not possible");
  return static_cast<std::int64_t>(out);
}

/// The same for a scale of the file, which is a float32. The product is one, too: 5 times 1.4 is 7, as in PyTorch and
/// ONNX Runtime.
std::int64_t scaled_by_file(NodeCall& node, std::int64_t in, double scale) {
  return scaled_size(node, static_cast<float>(in) * static_cast<float>(scale), scale);
}

Var resize_all(NodeCall& node, const Resize& resize, std::vector<ResizedAxis> axes) {
  const bool crops = resize.coordinates == "tf_crop_and_resize";
  const double beyond = node.real("extrapolation_value", 0);
  Var y = resize.mode == "nearest" ? node.at(0) : wide(node.at(0));
  for (std::size_t k = 0; k < axes.size(); ++k) {
    const ResizedAxis& axis = axes[k];
    const bool whole = !crops || (axis.start == 0 && axis.end == 1);
    if (axis.in == axis.out && (axis.in == 0 || (axis.scale == 1 && whole))) continue;
    if (axis.out < 0 || (axis.in == 0 && axis.out > 0) || axis.out > 4 * most_numbers)
      node.fail("axis " + std::to_string(k) + " cannot be resized from " + std::to_string(axis.in) + " to " +
                std::to_string(axis.out) + " elements");
    y = axis.out == 0 ? split(y, {0, axis.in}, static_cast<std::int64_t>(k))[0] : resized(y, k, axis, resize);
  }
  if (!is_floating(node.at(0).dtype()) && resize.mode != "nearest") {
    // A result that is an integer but for rounding errors must not be rounded towards 0 to the next integer.
    y = y * (1 + 0x1p-44);
    if (const auto range = range_of(node.element(0))) y = clip(y, range->first, range->second);
  }
  return crops ? where(inside(node.tape(), axes), y, beyond) : y;
}

/// Returns the scale of all axes in `which` if they keep their ratio: the least or the greatest of the scales to the
/// sizes `wanted`.
std::optional<double> common_scale(NodeCall& node, const Var& x, const Integers& which, const Integers& wanted) {
  const std::string policy = node.text("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch" && policy != "not_larger" && policy != "not_smaller")
    node.fail("keep_aspect_ratio_policy '" + policy + "' is not known");
  if (policy == "stretch" || wanted.empty()) return std::nullopt;
  std::vector<double> scales;
  for (std::size_t i = 0; i < which.size(); ++i)
    scales.push_back(static_cast<double>(wanted[i]) / static_cast<double>(x.size(which[i])));
  return policy == "not_larger" ? std::ranges::min(scales) : std::ranges::max(scales);
}

Vars resize(NodeCall& node) {
  const bool old = node.opset() < 11;  // versions without the attributes of coordinates
  const Var& x = node.at(0);
  Resize how;
  how.mode = node.text("mode", "nearest");
  how.coordinates = old ? "asymmetric" : node.text("coordinate_transformation_mode", "half_pixel");
  how.nearest = old ? "shrinks_up" : node.text("nearest_mode", "round_prefer_floor");
  how.cubic = node.real("cubic_coeff_a", -0.75);
  how.exclude_outside = node.flag("exclude_outside", false);
  if (how.mode != "nearest" && how.mode != "linear" && how.mode != "cubic")
    node.fail("mode '" + how.mode + "' is not known");
  if (node.flag("antialias", false)) node.fail("antialias is not supported");
  Integers which = node.integers("axes", Integers{});
  if (which.empty())
    for (std::size_t k = 0; k < x.rank(); ++k) which.push_back(static_cast<std::int64_t>(k));
  const std::size_t scales = old ? 1 : 2, sizes = 3;
  std::vector<double> roi, factors;
  if (!old && how.coordinates == "tf_crop_and_resize") roi = node.known_numbers(1);
  if (!old) node.optional(1);  // the input has no effect in other modes
  if (node.has(scales)) factors = node.known_numbers(scales);
  const Integers wanted = node.has(sizes) ? node.known_integers(sizes) : Integers{};
  if ((wanted.empty() ? factors.size() : wanted.size()) != which.size())
    node.fail("needs a scale or a size for each of " + std::to_string(which.size()) + " axes");
  if (!roi.empty() && roi.size() != 2 * which.size()) node.fail("roi must have two numbers for each axis");
  const std::optional<double> common = common_scale(node, x, which, wanted);
  std::vector<ResizedAxis> axes;
  for (const std::int64_t size : x.shape()) axes.push_back({size, size});
  for (std::size_t i = 0; i < which.size(); ++i) {
    ResizedAxis& axis = axes[normal_axis(which[i], x.rank())];
    const auto in = static_cast<double>(axis.in);
    if (common)
      axis.scale = *common, axis.out = scaled_size(node, in * *common + 0.5, *common);
    else if (wanted.empty())
      axis.scale = factors[i], axis.out = scaled_by_file(node, axis.in, factors[i]);
    else
      axis.out = wanted[i], axis.scale = static_cast<double>(wanted[i]) / in;
    if (!roi.empty()) axis.start = roi[i], axis.end = roi[i + which.size()];
  }
  return {resize_all(node, how, std::move(axes))};
}

Vars upsample(NodeCall& node) {
  const Var& x = node.at(0);
  std::string mode = node.text("mode", "nearest");
  if (node.opset() < 7 && mode == "bilinear") mode = "linear";  // the name in version 1
  std::vector<double> factors = node.has(1) ? node.known_numbers(1) : node.reals("scales");
  if (node.opset() < 7) factors = {1, 1, node.real("height_scale"), node.real("width_scale")};
  if (mode != "nearest" && mode != "linear") node.fail("mode '" + mode + "' is not known");
  if (factors.size() != x.rank()) node.fail("needs a scale for each axis of " + to_string(x.shape()));
  std::vector<ResizedAxis> axes;
  for (std::size_t k = 0; k < factors.size(); ++k)
    axes.push_back({x.shape()[k], scaled_by_file(node, x.shape()[k], factors[k]), factors[k]});
  return {resize_all(node, {mode, "asymmetric", "shrinks_up"}, std::move(axes))};
}

Vars grid_sampled(NodeCall& node) {
  std::string mode = node.text("mode", "bilinear");
  if (mode == "linear") mode = "bilinear";  // the name from version 20 on
  const Var& x = node.at(0);
  const Vars given = in_one_dtype({is_floating(x.dtype()) ? x : wide(x), node.at(1)});
  return {grid_sample(given[0], given[1], mode, node.text("padding_mode", "zeros"), node.flag("align_corners", false))};
}
}  // namespace

const Operators& resampling_operators() {
  static const Operators operators = {{"GridSample", grid_sampled}, {"Resize", resize}, {"Upsample", upsample}};
  return operators;
}

}  // namespace xtape::onnx
