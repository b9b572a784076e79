// Matrix products and convolutions, also of quantised arrays.
#include <algorithm>
#include <limits>

#include "base/arrays/lengths.hpp"
#include "onnx/operators.hpp"
#include "xtape/ops.hpp"
#include "xtape/ops/convolution.hpp"
#include "xtape/ops/elementwise.hpp"
#include "xtape/ops/indexing.hpp"
#include "xtape/ops/linear_algebra.hpp"

namespace xtape::onnx {

namespace {
Var swapped(const Var& x) {
  return transpose(x, {1, 0});
}

/// Returns x * factor. Integers are multiplied in float64.
Var scaled(const Var& x, double factor) {
  return factor == 1 ? x : (is_floating(x.dtype()) ? x : wide(x)) * factor;
}

/// alpha A B + beta C. C is not read if beta is 0.
Vars general_product(NodeCall& node) {
  const Var a = node.flag("transA", false) ? swapped(node.at(0)) : node.at(0);
  const Var b = node.flag("transB", false) ? swapped(node.at(1)) : node.at(1);
  const double alpha = node.real("alpha", 1), beta = node.real("beta", 1);
  const Var product = scaled(matmul(a, b), alpha), c = node.optional(2);
  if (node.opset() < 7) node.ignore("broadcast");
  return {c.empty() || beta == 0 ? product : product + scaled(c, beta)};
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
/// whole array, one number for each index of the axis `axis`, or has such a shape already.
Var per_index(const Var& numbers, std::int64_t axis, std::size_t rank) {
  if (numbers.empty()) return numbers;
  if (count_of(numbers.shape()) == 1) return reshape(numbers, {});
  if (numbers.rank() != 1) return numbers;
  Shape shape = Shape::filled(rank, 1);
  shape[normal_axis(axis, rank)] = numbers.size(0);
  return reshape(numbers, shape);
}

/// Returns input x minus its zero point, in int32.
Var from_zero(NodeCall& node, std::size_t x, std::size_t zero, std::int64_t axis) {
  const Var number = cast(node.at(x), Dtype::int32);
  return node.has(zero) ? number - per_index(node.at(zero), axis, number.rank()) : number;
}

/// Returns the element type of a zero point, or uint8 if it is missing.
Element quantised_type(NodeCall& node, std::size_t zero) {
  if (!node.has(zero)) return Element::uint8;
  return node.at(zero).dtype() == Dtype::int8 ? Element::int8 : node.element(zero);
}

/// Rounds x, adds the zero point, and clips to the range of `element`.
Var to_zero(NodeCall& node, const Var& x, const Var& zero, Element element) {
  const auto range = element == Element::int8 ? std::pair<std::int64_t, std::int64_t>{-128, 127} : range_of(element);
  if (!range || element == Element::uint32)
    node.fail("quantised arrays of the element type " + std::to_string(static_cast<int>(element)) +
              " are not supported, only integers of 8 and 16 bits");
  node.set_element(0, element);
  const Var moved = zero.empty() ? round(x) : round(x) + cast(zero, x.dtype());
  return cast(clip(moved, range->first, range->second), element == Element::int8 ? Dtype::int8 : Dtype::int32);
}

Vars integer_product(NodeCall& node) {
  return {matmul(from_zero(node, 0, 2, -2), from_zero(node, 1, 3, -1))};
}

Vars integer_convolution(NodeCall& node) {
  return {convolution(node, from_zero(node, 0, 2, 1), from_zero(node, 1, 3, 0), Var())};
}

/// Returns input i, a scale or zero point, in a shape that broadcasts to x. With block_size, each of its elements is
/// repeated for the elements of a block of x.
Var along_x(NodeCall& node, std::size_t i, std::int64_t axis) {
  const Var &x = node.at(0), numbers = node.optional(i);
  if (numbers.empty() || count_of(numbers.shape()) == 1) return per_index(numbers, axis, x.rank());
  const std::size_t at = normal_axis(axis, x.rank());
  const std::int64_t size = x.shape()[at], given = node.integer("block_size", 0);
  const std::int64_t block = std::min(given, std::max(size, std::int64_t{1}));
  if (given < 0) node.fail("block_size is " + std::to_string(given) + ", but must be at least 0");
  Shape wanted = block > 0 ? x.shape() : Shape{size};
  if (block > 0) wanted[at] = ceiling(size, block);
  if (numbers.shape() != wanted)
    node.fail("input " + std::to_string(i) + " has the shape " + to_string(numbers.shape()) + ", not " +
              to_string(wanted) + ", for x of shape " + to_string(x.shape()) + ", axis " + std::to_string(at) +
              " and block_size " + std::to_string(given));
  if (block == 0) return per_index(numbers, axis, x.rank());
  std::vector<std::int64_t> start(x.rank(), 0), stop(x.rank(), open_end);
  stop[at] = size;
  return slice(repeat_interleave(numbers, block, axis), start, stop);
}

Vars dequantized(NodeCall& node) {
  const std::int64_t axis = node.integer("axis", 1), type = node.integer("output_dtype", 0);
  node.ignore("block_size");  // without an effect where there is one scale
  const Dtype dtype = type == 0 ? node.at(1).dtype() : dtype_in(type, node.setting(), "the result");
  const Var scale = wide(along_x(node, 1, axis)), zero = along_x(node, 2, axis);
  const Var x = cast(node.at(0), Dtype::int32);
  return {cast(cast(zero.empty() ? x : x - zero, scale.dtype()) * scale, dtype)};
}

/// The type of the result is that of the zero point, or output_dtype.
Vars quantized(NodeCall& node) {
  const std::int64_t axis = node.integer("axis", 1), precision = node.integer("precision", 0);
  node.ignore("saturate");    // applies only to 8-bit floats
  node.ignore("block_size");  // without an effect where there is one scale
  const Var zero = along_x(node, 2, axis);
  auto element = static_cast<Element>(node.integer("output_dtype", 0));
  if (element == Element::none) element = quantised_type(node, 2);
  Var x = node.at(0), scale = along_x(node, 1, axis);
  if (precision != 0) {
    const Dtype dtype = dtype_in(precision, node.setting(), "precision");
    x = cast(x, dtype), scale = cast(scale, dtype);
  }
  return {to_zero(node, x / scale, zero, element)};
}

/// Maps the range of x, extended to contain 0, to the range of uint8.
Vars quantized_by_range(NodeCall& node) {
  const Var& x = node.at(0);
  const Var least = minimum(min(x), 0), scale = (maximum(max(x), 0) - least) / 255;
  const Var zero = round(clip(-least / scale, 0, 255));
  node.set_element(0, Element::uint8), node.set_element(2, Element::uint8);
  return {cast(clip(round(x / scale) + zero, 0, 255), Dtype::int32), scale, cast(zero, Dtype::int32)};
}

/// Requantises a product of quantised arrays a and b. Inputs 1 and 4 are the scales of a and b. Inputs 6 and 7 are the
/// scale and zero point of the result.
Vars requantized(NodeCall& node, const Var& product, std::int64_t axis_a, std::int64_t axis_b) {
  const Var scale = per_index(node.at(1), axis_a, product.rank()) * per_index(node.at(4), axis_b, product.rank());
  return {to_zero(node, cast(product, scale.dtype()) * (scale / reshape(node.at(6), {})), reshape(node.at(7), {}),
                  quantised_type(node, 7))};
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
      {"ConvInteger", integer_convolution, own},
      {"ConvTranspose", convolved_back},
      {"DequantizeLinear", dequantized, own},
      {"Det", [](NodeCall& node) -> Vars { return {linalg::det(node.at(0))}; }},
      {"DynamicQuantizeLinear", quantized_by_range, own},
      {"Einsum", [](NodeCall& node) -> Vars { return {einsum(node.text("equation", ""), node.all())}; }, 0, wraps},
      {"Gemm", general_product, 0, wraps},
      {"MatMul", [](NodeCall& node) -> Vars { return {matmul(node.at(0), node.at(1))}; }, 0, wraps},
      {"MatMulInteger", integer_product, own},
      {"QLinearConv", quantized_convolution, own},
      {"QLinearMatMul", quantized_product, own},
      {"QuantizeLinear", quantized, own},
  };
  return operators;
}

}  // namespace xtape::onnx
