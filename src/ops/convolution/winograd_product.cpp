// winograd_conv: the convolutions for which Winograd's algorithm needs fewer multiplications. The op is not in the op
// table, because only players record it in place of a product of windows.
#include <algorithm>
#include <cmath>

#include "ops/convolution/windows.hpp"
#include "ops/recording/op_helpers.hpp"

namespace xtape {

namespace {
using Integers = std::vector<std::int64_t>;

// with fewer channels, transforming the tiles takes longer than the products save
constexpr std::int64_t least_channels = 16;
// with fewer tiles, the saving is smaller than the time to transform the weight
constexpr std::int64_t least_tiles = 40;

struct Channels {
  std::int64_t in, out;
};
Channels channels_of(const Shape& weight, bool adjoint) {
  return adjoint ? Channels{weight[0], weight[1]} : Channels{weight[1], weight[0]};
}

/// Returns whether the windows have 3 x 3 elements, or 3 or more elements along a single axis.
bool windows_fit(const Shape& weight) {
  return weight.size() == 4 ? weight[2] == 3 && weight[3] == 3 : weight.size() == 3 && weight[2] >= 3;
}

std::vector<ValueType> winograd_shape(const OpCall& call) {
  const Shape &x = call.shape(0), &weight = call.shape(1);
  const Channels channels = channels_of(weight, call.flag("adjoint"));
  if (x.size() != weight.size() || !windows_fit(weight) || channels.in != x[1])
    throw ShapeError("needs windows of 3 x 3 elements, or of 3 or more along one axis, got x of shape " + to_string(x) +
                     " and a weight of shape " + to_string(weight));
  const auto& padding = call.integers("padding");
  const std::size_t n = x.size() - 2;
  if (padding.size() != 2 * n)
    throw Error("padding must have " + std::to_string(2 * n) + " numbers, got " + std::to_string(padding.size()));
  Shape shape{x[0], channels.out};
  for (std::size_t i = 0; i < n; ++i) {
    std::int64_t length = x[i + 2] + 1 - weight[i + 2];
    if (!checked_add(length, padding[i]) || !checked_add(length, padding[i + n]) || length < 1)
      throw ShapeError("a window does not fit x of shape " + to_string(x) + " with padding " +
                       to_string(Attribute(padding)));
    shape.push_back(length);
  }
  return {{call.dtype(0), shape}};
}

Vars expand_winograd(const ExpandCall& call) {
  const Var &x = call.inputs[0], &weight = call.inputs[1];
  const auto& padding = call.integers("padding");
  const auto middle = padding.begin() + static_cast<std::ptrdiff_t>(padding.size() / 2);
  const ConvolutionGeometry g(
      {{"stride", Integers{1}}, {"padding", Integers{0}}, {"dilation", Integers{1}}, {"groups", std::int64_t{1}}},
      x.shape(), weight.shape());
  const Var padded = extended(x, 2, {padding.begin(), middle}, {middle, padding.end()});
  if (!call.flag("adjoint")) return {g.product(padded, weight, "oc")};
  return {g.product(padded, flip(weight, g.n == 1 ? Axes{2} : Axes{2, 3}), "co")};
}

/// Returns the number of tiles. A tile has two results along each spatial axis.
double tiles_of(const Shape& x, const Shape& weight, const Integers& before, const Integers& after) {
  double tiles = static_cast<double>(x[0]);
  for (std::size_t i = 0; i + 2 < x.size(); ++i)
    tiles *= std::ceil(static_cast<double>(x[i + 2] + before[i] + after[i] - weight[i + 2] + 1) / 2);
  return tiles;
}

/// Counts the products. A tile of 2 x 2 results needs 16 multiplications. Along a single axis, a tile of two results
/// needs 4 multiplications for every three elements of the window, and one more than the number of remaining elements.
double winograd_flops(const OpCall& call) {
  const Shape &y = call.outputs[0].shape, &weight = call.shape(1);
  double products = static_cast<double>(y[0] * y[1]) * static_cast<double>(call.shape(0)[1]);
  for (std::size_t i = 2; i < y.size(); ++i) {
    const std::int64_t rest = weight[i] % 3;
    products *=
        static_cast<double>((y[i] + 1) / 2) * static_cast<double>(weight[i] / 3 * 4 + (rest == 0 ? 0 : rest + 1));
  }
  return 2 * products;
}

const Op& winograd_conv_op() {
  static const Op entry{
      .name = "winograd_conv",
      .doc =
          R"(conv with stride 1 of x [b, c, h, w] and a weight [o, c, 3, 3], or of x [b, c, l] and a weight [o, c, k]
           with k >= 3, computed by Winograd's algorithm (Lavin and Gray, 2016). With `adjoint`, the weight is [c, o,
           ...] and flipped. Float32 only.)",
      .inputs = {{"x", Accept::floating}, {"weight", Accept::floating}},
      .attributes = {{"padding", AttributeType::integers,
                      "The numbers of zeros before all spatial axes of x, then the numbers after them. Negative "
                      "numbers remove elements.",
                      Integers{0, 0, 0, 0}},
                     {"adjoint", AttributeType::boolean, "If true, the weight is flipped.", false}},
      .shape = winograd_shape,
      .expand = expand_winograd,
      .lowering = {.kernel = kernel_by_name, .cost = {winograd_flops}}};
  return entry;
}
}  // namespace

Var winograd_conv(const Var& x, const Var& weight, const Integers& before, const Integers& after, bool adjoint) {
  if (x.dtype() != Dtype::float32 || count_of(x.shape()) == 0 || !windows_fit(weight.shape())) return {};
  const Channels channels = channels_of(weight.shape(), adjoint);
  if (std::min(channels.in, channels.out) < least_channels) return {};
  if (tiles_of(x.shape(), weight.shape(), before, after) < least_tiles) return {};
  return apply(winograd_conv_op(), {x, weight},
               {{"padding", ConvolutionGeometry::joined(before, after)}, {"adjoint", adjoint}})[0];
}

}  // namespace xtape
