// Products of matrices, and convolutions.
#include <algorithm>
#include <limits>

#include "operators.hpp"
#include "operators/spatial.hpp"
#include "xtape/ops.hpp"
#include "xtape/ops/convolution.hpp"
#include "xtape/ops/linear_algebra.hpp"

namespace xtape::onnx {

namespace {
Var swapped(const Var& x) {
  return transpose(x, {1, 0});
}

/// alpha A B + beta C.
Vars general_product(NodeCall& node) {
  const Var a = node.integer("transA", 0) != 0 ? swapped(node.at(0)) : node.at(0);
  const Var b = node.integer("transB", 0) != 0 ? swapped(node.at(1)) : node.at(1);
  const double alpha = node.real("alpha", 1), beta = node.real("beta", 1);
  const Var product = alpha == 1 ? matmul(a, b) : matmul(a, b) * alpha;
  if (node.opset() < 7) node.ignore("broadcast");
  if (!node.has(2)) return {product};
  return {product + (beta == 1 ? node.at(2) : node.at(2) * beta)};
}

/// `bias` [c] as [c, 1, …], for the channels of x.
Var with_bias(const Var& x, const Var& bias) {
  if (bias.empty()) return x;
  Shape shape = Shape::filled(x.rank() - 1, 1);
  shape[0] = bias.size(0);
  return x + reshape(bias, shape);
}

std::string letters(char first, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text.push_back(static_cast<char>(first + static_cast<char>(i)));
  return text;
}

/// x with axis `axis`, of channels, split into groups.
Var grouped(const Var& x, std::size_t axis, std::int64_t groups) {
  Shape shape = x.shape();
  shape[axis] /= groups;
  shape.insert(axis, groups);
  return reshape(x, shape);
}

/// The axes 1 and 2 as one.
Var joined_groups(const Var& x) {
  Shape shape = x.shape();
  shape.erase(1);
  shape[1] *= x.shape()[1];
  return reshape(x, shape);
}

void check_convolution(NodeCall& node, const Var& x, const Var& weight, std::int64_t groups, std::int64_t channels) {
  if (x.rank() < 3 || weight.rank() != x.rank() || groups < 1 || x.size(1) != channels || channels % groups != 0 ||
      weight.size(0) % groups != 0)
    node.fail("x of shape " + to_string(x.shape()) + " and weights of shape " + to_string(weight.shape()) + " in " +
              std::to_string(groups) + " groups do not fit");
}

Var convolution(NodeCall& node, const Var& x, const Var& weight, const Var& bias) {
  const std::int64_t groups = node.integer("group", 1);
  check_convolution(node, x, weight, groups, weight.rank() > 1 && groups > 0 ? weight.size(1) * groups : 0);
  const Spatial at = spatial_of(node, spatial_sizes(x), spatial_sizes(weight));
  const auto same = [&](const auto& convolve) {
    if (at.symmetric()) return convolve(x, weight, bias, at.stride, ConvPadding(at.before), at.dilation, groups);
    std::vector<std::int64_t> before = {0, 0}, after = {0, 0};
    before.insert(before.end(), at.before.begin(), at.before.end());
    after.insert(after.end(), at.after.begin(), at.after.end());
    return convolve(pad(x, before, after), weight, bias, at.stride, ConvPadding(0), at.dilation, groups);
  };
  if (at.axes() == 1) return same([](auto&&... each) { return conv1d(each...); });
  if (at.axes() == 2) return same([](auto&&... each) { return conv2d(each...); });
  const std::string spots = letters('A', at.axes()), elements = letters('R', at.axes());
  const Var result = einsum("bgc" + spots + elements + ",goc" + elements + "->bgo" + spots,
                            grouped(windows_of(x, at, 0), 1, groups), grouped(weight, 0, groups));
  return with_bias(joined_groups(result), bias);
}

Vars convolved(NodeCall& node) {
  return {convolution(node, node.at(0), node.at(1), node.optional(2))};
}

/// The adjoint: every element of x adds a window to the result, of which the paddings are then cut off.
Vars convolved_back(NodeCall& node) {
  const Var &x = node.at(0), &weight = node.at(1);
  const std::int64_t groups = node.integer("group", 1);
  check_convolution(node, x, weight, groups, weight.size(0));
  const Integers sizes = spatial_sizes(x);
  Spatial at = spatial_of(node, sizes, spatial_sizes(weight), true);
  const Integers more = node.integers("output_padding", Integers(at.axes(), 0));
  Integers wanted = node.integers("output_shape", Integers{});
  if (wanted.size() > at.axes()) wanted.erase(wanted.begin(), wanted.end() - static_cast<std::ptrdiff_t>(at.axes()));
  const auto far = [](std::int64_t each) { return each < 0 || each > std::numeric_limits<std::int32_t>::max(); };
  if (more.size() != at.axes() || (!wanted.empty() && wanted.size() != at.axes()) ||
      std::any_of(more.begin(), more.end(), far) || std::any_of(wanted.begin(), wanted.end(), far))
    node.fail("output_padding and output_shape have one number of 0 to 2^31 - 1 for each spatial axis");

  const std::string spots = letters('A', at.axes()), elements = letters('R', at.axes());
  Var y = joined_groups(einsum("bgc" + spots + ",gco" + elements + "->bgo" + spots + elements, grouped(x, 1, groups),
                               grouped(weight, 0, groups)));
  std::vector<std::int64_t> start = {0, 0}, stop = {open_end, open_end}, beyond = {0, 0};
  for (std::size_t i = 0; i < at.axes(); ++i) {
    const std::int64_t whole = (sizes[i] - 1) * at.stride[i] + at.reach(i);
    if (!wanted.empty()) {
      const std::int64_t total = std::max(whole + more[i] - wanted[i], std::int64_t{0});
      at.before[i] = node.text("auto_pad", "NOTSET") == "SAME_UPPER" ? total / 2 : total - total / 2;
      at.after[i] = total - at.before[i];
      if (wanted[i] > whole + more[i]) at.after[i] = whole + more[i] - wanted[i];  // longer
    }
    start.push_back(at.before[i]);
    stop.push_back(whole + more[i] - at.after[i]);
    beyond.push_back(std::max(stop.back() - whole, std::int64_t{0}));
    if (stop.back() < start.back()) node.fail("the paddings are longer than the result");
  }
  for (std::size_t i = at.axes(); i-- > 0;)
    y = fold(y, static_cast<std::int64_t>(i) + 2, (sizes[i] - 1) * at.stride[i] + at.reach(i), at.stride[i],
             at.dilation[i]);
  y = slice(pad(y, std::vector<std::int64_t>(y.rank(), 0), beyond), start, stop);
  return {with_bias(y, node.optional(2))};
}

/// x minus its zero point, in int32: one number or, with `axis`, one for each index there.
Var from_zero(NodeCall& node, std::size_t x, std::size_t zero, std::int64_t axis) {
  const Var number = cast(node.at(x), Dtype::int32);
  if (!node.has(zero)) return number;
  const Var& point = node.at(zero);
  if (point.rank() != 1 || point.size(0) == 1) return number - reshape(point, {});
  Shape shape = Shape::filled(number.rank(), 1);
  shape[normal_axis(axis, number.rank())] = point.size(0);
  return number - reshape(point, shape);
}

Vars integer_product(NodeCall& node) {
  return {matmul(from_zero(node, 0, 2, -2), from_zero(node, 1, 3, -1))};
}

Vars integer_convolution(NodeCall& node) {
  return {convolution(node, from_zero(node, 0, 2, 1), from_zero(node, 1, 3, 0), Var())};
}

Vars dequantized(NodeCall& node) {
  const Var& scale = node.at(1);
  const std::int64_t axis = node.integer("axis", 1);
  const Var x = cast(from_zero(node, 0, 2, axis), scale.dtype());
  if (scale.rank() == 0) return {x * scale};
  Shape shape = Shape::filled(x.rank(), 1);
  shape[normal_axis(axis, x.rank())] = scale.size(0);
  return {x * reshape(scale, shape)};
}
}  // namespace

const Operators& product_operators() {
  static const Operators operators = {
      {"Conv", convolved},
      {"ConvInteger", integer_convolution},
      {"ConvTranspose", convolved_back},
      {"DequantizeLinear", dequantized},
      {"Det", [](NodeCall& node) -> Vars { return {linalg::det(node.at(0))}; }},
      {"Einsum", [](NodeCall& node) -> Vars { return {einsum(node.text("equation", ""), node.all())}; }},
      {"Gemm", general_product},
      {"MatMul", [](NodeCall& node) -> Vars { return {matmul(node.at(0), node.at(1))}; }},
      {"MatMulInteger", integer_product},
  };
  return operators;
}

}  // namespace xtape::onnx
