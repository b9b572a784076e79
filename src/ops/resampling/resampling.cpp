// interpolate and grid_sample. They are sums of weighted elements that indices select.
#include "xtape/ops/resampling.hpp"

#include <cmath>

#include "ops/convolution/windows.hpp"
#include "ops/recording/op_helpers.hpp"
#include "xtape/ops/elementwise.hpp"

namespace xtape {

namespace {
/// The sizes along one axis before and after resampling. The distance between elements of the result is step / parts.
/// Because step and parts can be integers, positions that are integers are exact.
struct Resampled {
  std::int64_t from = 0, to = 0;
  double step = 1, parts = 1;
};

bool is_linear(const std::string& mode) {
  return mode == "linear" || mode == "bilinear" || mode == "trilinear";
}

/// Returns whether the ratio of the sizes replaces the scale_factor along one of `axes` spatial axes, as in PyTorch.
bool ignores_factor(std::int64_t from, std::int64_t to, std::size_t axes, const std::string& mode) {
  if (mode == "nearest") return axes == 2 && (to == from || to == 2 * from);
  return is_linear(mode) && to == from;
}

/// Returns the sizes of the results along the spatial axes. Throws if the attributes do not determine them.
std::vector<Resampled> resampled_axes(const Shape& x, const Attributes& attributes) {
  const std::size_t n = x.size() - 2;
  const double factor = attributes.get<double>("scale_factor");
  std::vector<Resampled> axes;
  const bool by_size = !attributes.get<std::vector<std::int64_t>>("size").empty();
  if (by_size == (factor != 0)) throw ShapeError("give either a size or a scale_factor");
  const std::vector<std::int64_t> sizes = by_size ? per_axis(attributes, "size", n) : std::vector<std::int64_t>(n);
  for (std::size_t i = 0; i < n; ++i) {
    Resampled axis{x[i + 2], sizes[i]};
    const double scaled = std::floor(static_cast<double>(axis.from) * factor);
    if (!by_size && !(scaled >= 0 && scaled < 0x1p53))
      throw ShapeError("scale_factor " + to_string(Attribute(factor)) + " does not give a size");
    if (!by_size) axis.to = static_cast<std::int64_t>(scaled);
    if (axis.to < 1 || axis.from < 1)
      throw ShapeError("spatial axis " + std::to_string(i) + " of " + to_string(x) +
                       " must have elements, and get at " + "least one, not " + std::to_string(axis.to));
    const bool by_sizes = by_size || ignores_factor(axis.from, axis.to, n, attributes.get<std::string>("mode"));
    axis.step = by_sizes ? static_cast<double>(axis.from) : 1;
    axis.parts = by_sizes ? static_cast<double>(axis.to) : factor;
    axes.push_back(axis);
  }
  return axes;
}

/// Returns the coefficients of the four neighbours of a point at position t in [0, 1) between the middle two (Keys,
/// 1981). Uses the parameter -0.75, as PyTorch does.
Vars cubic_weights(const Var& t) {
  constexpr double a = -0.75;
  const auto near = [&](const Var& d) { return ((a + 2) * d - (a + 3)) * d * d + 1; };
  const auto far = [&](const Var& d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
  return {far(t + 1), near(t), near(1 - t), far(2 - t)};
}

/// Resamples x along an axis. Positions and weights are computed in float64. Players compute them only once, because
/// they depend on no input.
Var resampled_along(const Var& x, std::size_t axis, const Resampled& by, const std::string& mode, bool align_corners) {
  const auto place = static_cast<std::int64_t>(axis);
  const Var i = iota(x.tape(), {by.to}, 0, Dtype::float64);
  const auto pick = [&](const Var& at) {
    return take(x, cast(clip(at, 0, static_cast<double>(by.from - 1)), Dtype::int64), place);
  };
  // As in PyTorch, quotients are rounded before the floor is taken. For example, 10 / 0.1 is 100.
  if (mode == "nearest") return pick(floor(i * by.step / by.parts));
  if (mode == "nearest-exact") return pick(floor((i + 0.5) * by.step / by.parts));
  Var at;
  if (align_corners)
    at = by.to > 1 ? i * static_cast<double>(by.from - 1) / static_cast<double>(by.to - 1) : i * 0;
  else
    at = (i + 0.5) * by.step / by.parts - 0.5;
  const bool linear = is_linear(mode);
  if (linear) at = maximum(at, 0);
  const Var whole = floor(at), t = at - whole;
  const Vars weights = linear ? Vars{1 - t, t} : cubic_weights(t);
  Shape along = Shape::filled(x.rank() - axis, 1);
  along[0] = by.to;
  Var total;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    const Var weight = reshape(cast(weights[k], x.dtype()), along);
    const Var term = pick(whole + static_cast<double>(static_cast<std::int64_t>(k) - (linear ? 0 : 1))) * weight;
    total = k == 0 ? term : total + term;
  }
  return total;
}

Vars expand_interpolate(const ExpandCall& call) {
  Var x = call.inputs[0];
  const auto& mode = call.text("mode");
  const bool align_corners = call.flag("align_corners");
  const std::vector<Resampled> axes = resampled_axes(x.shape(), call.attributes);
  for (std::size_t i = axes.size(); i-- > 0;) x = resampled_along(x, i + 2, axes[i], mode, align_corners);
  return {x};
}

/// Returns the coordinate of a point in elements, relative to the centre of the first element.
Var coordinate(const Var& point, std::int64_t size, const std::string& padding, bool align_corners) {
  const auto n = static_cast<double>(size);
  Var at = align_corners ? (point + 1) * ((n - 1) / 2) : ((point + 1) * n - 1) / 2;
  if (padding == "reflection") {
    const double low = align_corners ? 0 : -0.5, span = align_corners ? n - 1 : n;
    if (span == 0) return at * 0;
    const Var away = abs(at - low), turns = floor(away / span), rest = away - turns * span;
    at = where(mod(turns, 2) == 0, rest, span - rest) + low;
  }
  return padding == "zeros" ? at : clip(at, 0, n - 1);
}

/// Channels come last, so that each point reads one row for each neighbour.
Vars expand_grid_sample(const ExpandCall& call) {
  const Var &x = call.inputs[0], &grid = call.inputs[1];
  const auto &mode = call.text("mode"), &padding = call.text("padding_mode");
  const bool align_corners = call.flag("align_corners");
  const Shape& shape = x.shape();
  const std::int64_t batch = shape[0], height = shape[2], width = shape[3];
  const Var rows = reshape(transpose(x, {0, 2, 3, 1}), {batch * height * width, shape[1]});
  const Vars points = unstack(grid, -1);
  const Var across = coordinate(points[0], width, padding, align_corners),
            down = coordinate(points[1], height, padding, align_corners);
  const Var image = iota(call.tape, {batch, 1, 1});
  const auto inside = [](const Var& at, std::int64_t size) { return (at >= 0) & (at < static_cast<double>(size)); };
  // Clips integers, because the grid's dtype may not represent the last index.
  const auto index = [](const Var& at, std::int64_t size) { return clip(cast(at, Dtype::int64), 0, size - 1); };
  const auto neighbour = [&](const Var& i, const Var& j, const Var& weight) {
    const Var picked = take(rows, (image * height + index(i, height)) * width + index(j, width));
    if (padding != "zeros") return picked * expand_dims(weight, -1);
    const Var outside = ~(inside(i, height) & inside(j, width));
    return picked * expand_dims(masked_fill(weight, outside, 0), -1);
  };
  Var y;
  if (mode == "nearest") {
    y = neighbour(round(down), round(across), ones_like(across));
  } else {
    const Var top = floor(down), left = floor(across), below = down - top, right = across - left;
    const Vars all{neighbour(top, left, (1 - below) * (1 - right)), neighbour(top, left + 1, (1 - below) * right),
                   neighbour(top + 1, left, below * (1 - right)), neighbour(top + 1, left + 1, below * right)};
    y = all[0] + all[1] + all[2] + all[3];
  }
  return {transpose(y, {0, 3, 1, 2})};
}

constexpr AttributeRow corners{
    "align_corners",
    "If true, the ends are the centres of the outermost elements. If false, the ends are their outer edges.", 0,
    AttributeType::boolean};
const ComposedRow interpolate_rows[] = {
    {"interpolate",
     "x",
     "Resamples the spatial axes of x [b, c, ...] one after the other, as torch.nn.functional.interpolate. Element i "
     "of the result is at position (i + 0.5) * s - 0.5 of x, where s is the ratio of the sizes or 1 / scale_factor. "
     "With align_corners it is at i * (n - 1) / (m - 1), where n and m are the sizes of x and of the result. The "
     "neighbours of the position are weighted by their distance. Mode \"nearest\" takes the element at floor(i * s), "
     "and \"nearest-exact\" the element at floor((i + 0.5) * s). As in PyTorch, s stays 1 / scale_factor although the "
     "size is rounded down, with two exceptions, where s is the ratio of the sizes: \"nearest\" with two spatial axes, "
     "along an axis that keeps or doubles its size, and the linear modes along an axis that keeps its size. Positions "
     "are float64. In PyTorch they are float32, so \"nearest\" may take a neighbour where i * s is almost whole.",
     expand_interpolate,
     {{{"scale_factor", "The size of the result divided by the size of x. 0 if `size` is given.", 0}, corners}}}};
const ComposedRow grid_rows[] = {{"grid_sample",
                                  "x grid",
                                  "Samples x [b, c, h, w] at the points (x, y) of the grid [b, i, j, 2]. The "
                                  "coordinates -1 and 1 are the ends of the image (Jaderberg et al., 2015). A sample "
                                  "is the distance-weighted mean of the four nearest elements, or the nearest element.",
                                  expand_grid_sample,
                                  {{corners}}}};

std::vector<ValueType> interpolate_type(const OpCall& call) {
  Shape shape = call.shape(0);
  require_word(call, "mode", {"nearest", "nearest-exact", "linear", "bilinear", "trilinear", "bicubic"});
  const std::string& mode = call.text("mode");
  const std::size_t n = mode == "linear"                          ? 1
                        : mode == "bilinear" || mode == "bicubic" ? 2
                        : mode == "trilinear"                     ? 3
                                                                  : 0;
  if (shape.size() < 3 || shape.size() > 5 || (n > 0 && shape.size() != n + 2))
    throw ShapeError("x of shape " + to_string(shape) + " must be [b, c] with " +
                     (n > 0 ? std::to_string(n) : "one to three") + " spatial axes for mode \"" + mode + "\"");
  const std::vector<Resampled> axes = resampled_axes(shape, call.attributes);
  for (std::size_t i = 0; i < axes.size(); ++i) shape[i + 2] = axes[i].to;
  return {{call.dtype(0), shape}};
}

std::vector<ValueType> grid_type(const OpCall& call) {
  const Shape &x = call.shape(0), &grid = call.shape(1);
  require_word(call, "mode", {"bilinear", "nearest"});
  require_word(call, "padding_mode", {"zeros", "border", "reflection"});
  if (x.size() != 4 || grid.size() != 4 || grid[0] != x[0] || grid[3] != 2 || x[2] < 1 || x[3] < 1)
    throw ShapeError("x of shape " + to_string(x) + " must be [b, c, h, w] with elements, and the grid, of shape " +
                     to_string(grid) + ", [b, i, j, 2]");
  return {{call.dtype(0), {x[0], x[1], grid[1], grid[2]}}};
}
}  // namespace

Var interpolate(const Argument& x, const PerAxis& size, std::optional<double> scale_factor, const std::string& mode,
                bool align_corners) {
  return call_op("interpolate", {x},
                 {{"size", size.list},
                  {"scale_factor", scale_factor.value_or(0)},
                  {"mode", mode},
                  {"align_corners", align_corners}});
}
Var grid_sample(const Argument& x, const Var& grid, const std::string& mode, const std::string& padding_mode,
                bool align_corners) {
  return call_op("grid_sample", {x, grid},
                 {{"mode", mode}, {"padding_mode", padding_mode}, {"align_corners", align_corners}});
}

void list_resampling(OpTable& table) {
  const AttributeSpec size{"size", AttributeType::integers,
                           "The sizes of the spatial axes of the result. Empty if `scale_factor` is given.",
                           std::vector<std::int64_t>{}},
      mode{"mode", AttributeType::text,
           "\"nearest\", \"nearest-exact\", \"linear\", \"bilinear\", \"trilinear\" or \"bicubic\".",
           std::string("nearest")},
      sampling{"mode", AttributeType::text, "\"bilinear\" or \"nearest\".", std::string("bilinear")},
      padding{"padding_mode", AttributeType::text,
              "The values beyond the image: \"zeros\", \"border\" or \"reflection\".", std::string("zeros")};
  static const std::vector<std::vector<Op>> families{composed(interpolate_rows, interpolate_type, {size, mode}),
                                                     composed(grid_rows, grid_type, {sampling, padding})};
  add_all(table, families);
}

}  // namespace xtape
