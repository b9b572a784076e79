// Resize, Upsample and GridSample.
#include "xtape/ops/resampling.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "operators.hpp"
#include "xtape/ops.hpp"

namespace xtape::onnx {

namespace {
/// The settings of a Resize that are the same for all axes.
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
  if (coordinates == "align_corners") return i == 0 ? 0 : at * (in - 1) / (whole - 1);
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

double rounded(const std::string& nearest, double x) {
  if (nearest == "floor") return std::floor(x);
  if (nearest == "ceil") return std::ceil(x);
  return nearest == "round_prefer_ceil" ? std::floor(x + 0.5) : std::ceil(x - 0.5);
}

/// Returns the weights of the elements floor(x) - 1 to floor(x) + 2, where x has the fraction `t` (Keys, 1981).
std::array<double, 4> cubic_weights(double t, double a) {
  const auto near = [a](double d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  const auto far = [a](double d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {far(t + 1), near(t), near(1 - t), far(2 - t)};
}

/// Returns the elements of an input axis that contribute to position `x`, with their weights.
std::vector<std::pair<double, double>> taps_of(const Resize& resize, double x) {
  const double first = std::floor(x), t = x - first;
  if (resize.mode == "nearest") return {{rounded(resize.nearest, x), 1}};
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
    auto taps = taps_of(resize, source_of(resize.coordinates, axis, i));
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

std::vector<double> numbers_of(const Array& array) {
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < array.count(); ++i)
    numbers.push_back(array.dtype() == Dtype::float64 ? array.as<double>()[i]
                                                      : static_cast<double>(array.as<float>()[i]));
  return numbers;
}

/// Returns the size of an axis of `in` elements after scaling.
std::int64_t scaled_size(NodeCall& node, std::int64_t in, double scale) {
  const double out = std::floor(static_cast<double>(in) * scale);
  if (!(scale > 0) || !(out < 0x1p62)) node.fail("scale " + std::to_string(scale) + " is not possible");
  return static_cast<std::int64_t>(out);
}

Var resize_all(NodeCall& node, const Resize& resize, std::vector<ResizedAxis> axes) {
  const bool crops = resize.coordinates == "tf_crop_and_resize";
  const double beyond = node.real("extrapolation_value", 0);
  Var y = node.at(0);
  for (std::size_t k = 0; k < axes.size(); ++k) {
    if (axes[k].out < 1 || axes[k].in < 1)
      node.fail("axis " + std::to_string(k) + " cannot be resized from " + std::to_string(axes[k].in) + " to " +
                std::to_string(axes[k].out) + " elements");
    const ResizedAxis& axis = axes[k];
    const bool same = axis.in == axis.out && axis.scale == 1 && (!crops || (axis.start == 0 && axis.end == 1));
    if (!same) y = resized(y, k, axes[k], resize);
  }
  return crops ? where(inside(node.tape(), axes), y, beyond) : y;
}

Vars resize(NodeCall& node) {
  const bool old = node.opset() < 11;  // versions without the attributes of coordinates
  const Var& x = node.at(0);
  Resize how;
  how.mode = node.text("mode", "nearest");
  how.coordinates = old ? "asymmetric" : node.text("coordinate_transformation_mode", "half_pixel");
  how.nearest = old ? "floor" : node.text("nearest_mode", "round_prefer_floor");
  how.cubic = node.real("cubic_coeff_a", -0.75);
  how.exclude_outside = node.integer("exclude_outside", 0) != 0;
  if (how.mode != "nearest" && how.mode != "linear" && how.mode != "cubic")
    node.fail("mode '" + how.mode + "' is not known");
  if (node.integer("antialias", 0) != 0) node.fail("antialias is not supported");
  if (node.text("keep_aspect_ratio_policy", "stretch") != "stretch")
    node.fail("keep_aspect_ratio_policy must be 'stretch'");
  Integers which = node.integers("axes", Integers{});
  if (which.empty())
    for (std::size_t k = 0; k < x.rank(); ++k) which.push_back(static_cast<std::int64_t>(k));
  const std::size_t scales = old ? 1 : 2, sizes = 3;
  std::vector<double> roi, factors;
  if (!old && how.coordinates == "tf_crop_and_resize") roi = numbers_of(node.known(1));
  if (!old && node.has(1)) node.known(1);  // the input has no effect in other modes
  if (node.has(scales)) factors = numbers_of(node.known(scales));
  const Integers wanted = node.has(sizes) ? node.known_integers(sizes) : Integers{};
  if ((wanted.empty() ? factors.size() : wanted.size()) != which.size())
    node.fail("needs a scale or a size for each of " + std::to_string(which.size()) + " axes");
  if (!roi.empty() && roi.size() != 2 * which.size()) node.fail("roi must have two numbers for each axis");
  std::vector<ResizedAxis> axes;
  for (const std::int64_t size : x.shape()) axes.push_back({size, size});
  for (std::size_t i = 0; i < which.size(); ++i) {
    ResizedAxis& axis = axes[normal_axis(which[i], x.rank())];
    axis.out = wanted.empty() ? scaled_size(node, axis.in, factors[i]) : wanted[i];
    axis.scale = wanted.empty() ? factors[i] : static_cast<double>(axis.out) / static_cast<double>(axis.in);
    if (!roi.empty()) axis.start = roi[i], axis.end = roi[i + which.size()];
  }
  return {resize_all(node, how, std::move(axes))};
}

Vars upsample(NodeCall& node) {
  const Var& x = node.at(0);
  const std::string mode = node.text("mode", "nearest");
  const std::vector<double> factors = node.has("scales") ? node.reals("scales") : numbers_of(node.known(1));
  if (mode != "nearest" && mode != "linear") node.fail("mode '" + mode + "' is not known");
  if (factors.size() != x.rank()) node.fail("needs a scale for each axis of " + to_string(x.shape()));
  std::vector<ResizedAxis> axes;
  for (std::size_t k = 0; k < factors.size(); ++k)
    axes.push_back({x.shape()[k], scaled_size(node, x.shape()[k], factors[k]), factors[k]});
  return {resize_all(node, {mode, "asymmetric", "floor"}, std::move(axes))};
}

Vars grid_sampled(NodeCall& node) {
  std::string mode = node.text("mode", "bilinear");
  if (mode == "linear") mode = "bilinear";  // the name from version 20 on
  return {grid_sample(node.at(0), node.at(1), mode, node.text("padding_mode", "zeros"),
                      node.integer("align_corners", 0) != 0)};
}
}  // namespace

const Operators& resampling_operators() {
  static const Operators operators = {{"GridSample", grid_sampled}, {"Resize", resize}, {"Upsample", upsample}};
  return operators;
}

}  // namespace xtape::onnx
