// Matrix products and convolutions, also of quantised arrays.
#include <algorithm>
#include <limits>

#include "operators.hpp"
#include "operators/spatial.hpp"
#include "xtape/ops.hpp"
#include "xtape/ops/convolution.hpp"
#include "xtape/ops/elementwise.hpp"
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

/// Returns `bias` [c] as [c, 1, …], to add it to the channels of x.
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

/// Splits axis `axis` of x, the channels, into groups.
Var grouped(const Var& x, std::size_t axis, std::int64_t groups) {
  Shape shape = x.shape();
  shape[axis] /= groups;
  shape.insert(axis, groups);
  return reshape(x, shape);
}

/// Merges axes 1 and 2.
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
  const bool fits = x.rank() > 1 && weight.rank() > 1 && groups > 0 && groups <= x.size(1);
  check_convolution(node, x, weight, groups, fits ? weight.size(1) * groups : -1);
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

/// The adjoint of the convolution. Every element of x adds a window to the result. The paddings of the result are then
/// cut off.
Vars convolved_back(NodeCall& node) {
  const Var &x = node.at(0), &weight = node.at(1);
  const std::int64_t groups = node.integer("group", 1);
  check_convolution(node, x, weight, groups, weight.size(0));
  const Integers sizes = spatial_sizes(x);
  Spatial at = spatial_of(node, sizes, spatial_sizes(weight));
  const Integers more = node.integers("output_padding", Integers(at.axes(), 0));
  Integers wanted = node.integers("output_shape", Integers{});
  if (wanted.size() > at.axes()) wanted.erase(wanted.begin(), wanted.end() - static_cast<std::ptrdiff_t>(at.axes()));
  if (wanted.empty() && node.text("auto_pad", "NOTSET").rfind("SAME", 0) == 0)
    // both factors are below 2^31, so the product does not overflow
    for (std::size_t i = 0; i < at.axes(); ++i) wanted.push_back(sizes[i] * at.stride[i]);
  const auto far = [](std::int64_t each) { return each < 0 || each > std::numeric_limits<std::int32_t>::max(); };
  if (more.size() != at.axes() || (!wanted.empty() && wanted.size() != at.axes()) || std::ranges::any_of(more, far) ||
      std::ranges::any_of(wanted, far))
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
      if (wanted[i] > whole + more[i]) at.after[i] = whole + more[i] - wanted[i];  // extends the result
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

/// Returns a scale or zero point in a shape that broadcasts to an array of rank `rank`. `numbers` is one number for the
/// whole array, or one number for each index of the axis `axis`.
Var per_index(const Var& numbers, std::int64_t axis, std::size_t rank) {
  if (numbers.rank() == 0) return numbers;
  if (numbers.rank() != 1 || numbers.size(0) == 1) return reshape(numbers, {});
  Shape shape = Shape::filled(rank, 1);
  shape[normal_axis(axis, rank)] = numbers.size(0);
  return reshape(numbers, shape);
}

/// Returns input x minus its zero point, in int32.
Var from_zero(NodeCall& node, std::size_t x, std::size_t zero, std::int64_t axis) {
  const Var number = cast(node.at(x), Dtype::int32);
  return node.has(zero) ? number - per_index(node.at(zero), axis, number.rank()) : number;
}

/// Rounds x, adds the zero point, and clips to the range of the zero point's type: int8, or uint8, which xtape holds as
/// int32. The default zero point is 0 of type uint8.
Var to_zero(NodeCall& node, const Var& x, std::size_t zero, std::int64_t axis = 0) {
  if (!node.has(zero)) return cast(clip(round(x), 0, 255), Dtype::int32);
  const Var& point = node.at(zero);
  const Var moved = round(x) + cast(per_index(point, axis, x.rank()), x.dtype());
  return point.dtype() == Dtype::int8 ? cast(clip(moved, -128, 127), Dtype::int8)
                                      : cast(clip(moved, 0, 255), Dtype::int32);
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
  return {x * per_index(scale, axis, x.rank())};
}

Vars quantized(NodeCall& node) {
  const Var& x = node.at(0);
  const std::int64_t axis = node.integer("axis", 1);
  node.ignore("saturate");  // applies only to 8-bit floats
  // From version 21 on, zero points may also be uint16. xtape holds both uint8 and uint16 as int32 and cannot
  // distinguish them.
  if (node.opset() >= 21 && node.has(2) && node.at(2).dtype() != Dtype::int8)
    node.fail("zero points must be int8 from version 21 on");
  return {to_zero(node, x / per_index(node.at(1), axis, x.rank()), 2, axis)};
}

/// Maps the range of x, extended to contain 0, to the range of uint8.
Vars quantized_by_range(NodeCall& node) {
  const Var& x = node.at(0);
  const Var least = minimum(min(x), 0), scale = (maximum(max(x), 0) - least) / 255;
  const Var zero = round(clip(-least / scale, 0, 255));
  return {cast(clip(round(x / scale) + zero, 0, 255), Dtype::int32), scale, cast(zero, Dtype::int32)};
}

/// Requantises a product of quantised arrays a and b. Inputs 1 and 4 are the scales of a and b. Inputs 6 and 7 are the
/// scale and zero point of the result.
Vars requantized(NodeCall& node, const Var& product, std::int64_t axis_a, std::int64_t axis_b) {
  const Var scale = per_index(node.at(1), axis_a, product.rank()) * per_index(node.at(4), axis_b, product.rank());
  return {to_zero(node, cast(product, scale.dtype()) * (scale / reshape(node.at(6), {})), 7)};
}

Vars quantized_product(NodeCall& node) {
  return requantized(node, matmul(from_zero(node, 0, 2, -2), from_zero(node, 3, 5, -1)), -2, -1);
}

Vars quantized_convolution(NodeCall& node) {
  const Var y = convolution(node, from_zero(node, 0, 2, 1), from_zero(node, 3, 5, 0), node.optional(8));
  return requantized(node, y, 1, 1);
}
}  // namespace

const Operators& product_operators() {
  static const Operators operators = {
      {"Conv", convolved},
      {"ConvInteger", integer_convolution},
      {"ConvTranspose", convolved_back},
      {"DequantizeLinear", dequantized},
      {"Det", [](NodeCall& node) -> Vars { return {linalg::det(node.at(0))}; }},
      {"DynamicQuantizeLinear", quantized_by_range},
      {"Einsum", [](NodeCall& node) -> Vars { return {einsum(node.text("equation", ""), node.all())}; }},
      {"Gemm", general_product},
      {"MatMul", [](NodeCall& node) -> Vars { return {matmul(node.at(0), node.at(1))}; }},
      {"MatMulInteger", integer_product},
      {"QLinearConv", quantized_convolution},
      {"QLinearMatMul", quantized_product},
      {"QuantizeLinear", quantized},
  };
  return operators;
}

}  // namespace xtape::onnx
