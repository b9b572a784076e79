// winograd_conv: the convolutions that need fewer multiplications by Winograd's algorithm. The op is not in the op
// table: only players record it, in place of a product of windows.
#include "winograd.hpp"

#include <algorithm>

#include "by_name.hpp"
#include "convolution_geometry.hpp"
#include "xtape/ops.hpp"
#include "xtape/ops/indexing.hpp"

namespace xtape {

namespace {
using Integers = std::vector<std::int64_t>;

constexpr std::int64_t least_channels = 16;  // the tiles of fewer take longer to transform than their products save

struct Channels {
  std::int64_t in, out;
};
Channels channels_of(const Shape& weight, bool adjoint) {
  return adjoint ? Channels{weight[0], weight[1]} : Channels{weight[1], weight[0]};
}

std::vector<ValueType> winograd_shape(const OpCall& call) {
  const Shape &x = call.shape(0), &weight = call.shape(1);
  if (x.size() != 4 || weight.size() != 4 || weight[2] != 3 || weight[3] != 3)
    throw ShapeError("needs x of 4 axes and a weight with windows of 3 x 3, got " + to_string(x) + " and " +
                     to_string(weight));
  const Channels channels = channels_of(weight, call.flag("adjoint"));
  if (channels.in != x[1])
    throw ShapeError("x of shape " + to_string(x) + " does not fit a weight of shape " + to_string(weight));
  const auto& padding = call.attributes.get<Integers>("padding");
  if (padding.size() != 4) throw Error("padding must have 4 numbers, got " + std::to_string(padding.size()));
  Shape shape{x[0], channels.out};
  for (std::size_t i = 0; i < 2; ++i) {
    std::int64_t length = x[i + 2] - 2;
    if (!checked_add(length, padding[i]) || !checked_add(length, padding[i + 2]) || length < 1)
      throw ShapeError("a window of 3 x 3 does not fit x of shape " + to_string(x) + " with padding " +
                       to_string(Attribute(padding)));
    shape.push_back(length);
  }
  return {{call.dtype(0), shape}};
}

Vars expand_winograd(const ExpandCall& call) {
  const Var &x = call.inputs[0], &weight = call.inputs[1];
  const bool adjoint = call.attributes().get<bool>("adjoint");
  const auto& padding = call.attributes().get<Integers>("padding");
  const ConvolutionGeometry g(
      {{"stride", Integers{1}}, {"padding", Integers{0}}, {"dilation", Integers{1}}, {"groups", std::int64_t{1}}},
      x.shape(), weight.shape());
  const Var padded = extended(x, 2, {padding[0], padding[1]}, {padding[2], padding[3]});
  return {adjoint ? g.product(padded, flip(weight, {2, 3}), "co") : g.product(padded, weight, "oc")};
}

/// Of the products: 16 multiplications for a tile of 2 x 2 results.
double winograd_flops(const OpCall& call) {
  const Shape& y = call.outputs[0].shape;
  return 2.0 * 16 * static_cast<double>(y[0] * y[1] * ((y[2] + 1) / 2) * ((y[3] + 1) / 2)) *
         static_cast<double>(call.shape(0)[1]);
}

const Op& winograd_conv_op() {
  static const Op entry{
      .name = "winograd_conv",
      .doc =
          R"(conv of x [b, c, h, w] by a weight [o, c, 3, 3] with stride 1, computed by Winograd's
           algorithm (Lavin and Gray, 2016): 16 multiplications for 4 results in place of 36. With `adjoint`, the
           weight is [c, o, 3, 3] and turned around. Float32 only.)",
      .inputs = {{"x", Accept::floating}, {"weight", Accept::floating}},
      .attributes = {{"padding", AttributeType::integers,
                      "The zeros above, left, below and right of x; negative numbers remove elements.",
                      Integers{0, 0, 0, 0}},
                     {"adjoint", AttributeType::boolean, "Whether the weight is turned around.", false}},
      .shape = winograd_shape,
      .expand = expand_winograd,
      .lowering = {.kernel = kernel_by_name, .flops = winograd_flops}};
  return entry;
}
}  // namespace

Var winograd_conv(const Var& x, const Var& weight, const Integers& before, const Integers& after, bool adjoint) {
  const Shape& shape = weight.shape();
  if (x.dtype() != Dtype::float32 || count_of(x.shape()) == 0 || shape.size() != 4 || shape[2] != 3 || shape[3] != 3)
    return {};
  const Channels channels = channels_of(shape, adjoint);
  if (std::min(channels.in, channels.out) < least_channels) return {};
  return apply(winograd_conv_op(), {x, weight},
               {{"padding", ConvolutionGeometry::joined(before, after)}, {"adjoint", adjoint}})[0];
}

}  // namespace xtape
