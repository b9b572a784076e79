// conv and conv_transpose. They are products of sliding windows with weights, and the adjoints of such products.
#include "xtape/ops/convolution.hpp"

#include <algorithm>
#include <numeric>

#include "base/arrays/lengths.hpp"
#include "ops/convolution/windows.hpp"
#include "tape/calls.hpp"
#include "xtape/ops.hpp"
#include "xtape/ops/indexing.hpp"

namespace xtape {

namespace {
using Geometry = ConvolutionGeometry;
using Integers = Geometry::Integers;

/// Throws ShapeError if the groups do not divide the first axis of the weight. Throws ShapeError if x does not have
/// `channels` channels: in each group if `each_group`, in total if not.
void require_channels(const Geometry& g, const Shape& x, const Shape& weight, std::int64_t channels, bool each_group) {
  const bool fits = !each_group || checked_multiply(channels, g.groups);
  if (!fits || channels != x[1] || weight[0] % g.groups != 0)
    throw ShapeError("x of shape " + to_string(x) + " does not fit a weight of shape " + to_string(weight) + " in " +
                     std::to_string(g.groups) + (g.groups == 1 ? " group" : " groups"));
}

void require_product(const OpCall& call) {
  const Attribute* mode = call.attributes.find("padding_mode");
  if (call.inputs.size() != 2 || (mode != nullptr && *mode != Attribute(std::string("zeros"))))
    throw ShapeError("a recorded convolution has two operands and zeros around x: the rest is recorded apart");
  if (call.dtype(0) == Dtype::boolean) throw DtypeError("cannot multiply bool arrays: cast them to numbers");
}

std::vector<ValueType> conv_shape(const OpCall& call) {
  require_product(call);
  const Shape &x = call.shape(0), &weight = call.shape(1);
  const Geometry g(call.attributes, x, weight);
  require_channels(g, x, weight, weight[1], true);
  Shape shape{x[0], weight[0]};
  for (std::size_t i = 0; i < g.n; ++i) shape.push_back(g.count(i, x[i + 2]));
  return {{call.dtype(0), shape}};
}

std::vector<ValueType> transpose_shape(const OpCall& call) {
  require_product(call);
  const Shape &x = call.shape(0), &weight = call.shape(1);
  const Geometry g(call.attributes, x, weight);
  const Integers more = per_axis(call.attributes, "output_padding", g.n);
  require_channels(g, x, weight, weight[0], false);
  Shape shape{x[0], weight[1]};
  bool fits = checked_multiply(shape[1], g.groups);
  for (std::size_t i = 0; i < g.n; ++i) {
    if (more[i] < 0 || more[i] >= std::max(g.stride[i], g.dilation[i]))
      throw ShapeError("output_padding must be at least 0 and below the stride or the dilation, got " +
                       std::to_string(more[i]));
    std::int64_t length = x[i + 2] - 1;
    fits = fits && checked_multiply(length, g.stride[i]) && checked_add(length, g.span(i)) &&
           checked_add(length, more[i]) && checked_add(length, -g.before[i]) && checked_add(length, -g.after[i]);
    if (fits && (length < 1 || x[i + 2] < 1))
      throw ShapeError("spatial axis " + std::to_string(i) + " of x, " + to_string(x) + ", gives " +
                       std::to_string(length) + " elements, fewer than 1");
    shape.push_back(length);
  }
  if (!fits) throw ShapeError("the result has an axis longer than 2^63 - 1");
  return {{call.dtype(0), shape}};
}

/// Returns the convolution by Winograd's algorithm (winograd.hpp), or an empty var if the algorithm is not applicable.
/// It requires strides and dilations of 1 and a single group.
Var by_winograd(const Geometry& g, const Var& x, const Var& weight, const Integers& before, const Integers& after,
                bool adjoint) {
  for (std::size_t i = 0; i < g.n; ++i)
    if (g.stride[i] != 1 || g.dilation[i] != 1 || g.groups != 1) return {};
  return winograd_conv(x, weight, before, after, adjoint);
}

Vars expand_conv(const ExpandCall& call) {
  const Var &x = call.inputs[0], &weight = call.inputs[1];
  const Geometry g(call.attributes, x.shape(), weight.shape());
  const Var y = by_winograd(g, x, weight, g.before, g.after, false);
  return {y.empty() ? g.product(extended(x, 2, g.before, g.after), weight, "oc") : y};
}

/// The adjoint of a convolution with stride 1. It is the product of the windows over x and the flipped weight.
/// before[i] and after[i] are the numbers of zeros around x. Negative numbers cut elements off.
Var backwards(const Geometry& g, const Var& x, const Var& weight, const Integers& before, const Integers& after) {
  const Var y = by_winograd(g, x, weight, before, after, true);
  if (!y.empty()) return y;
  Axes axes;
  for (std::size_t i = 0; i < g.n; ++i) axes.push_back(static_cast<std::int64_t>(i) + 2);
  return g.product(extended(x, 2, before, after), flip(weight, axes), "co");
}

/// The adjoint of a convolution with larger strides. Along each axis with stride s, the result has s phases. A phase
/// consists of every s-th element. Each phase is an adjoint with stride 1, and uses only the elements of the weight
/// that meet the phase. The phases are then interleaved.
class Phases {
 public:
  Phases(const Geometry& g, const Var& x, const Var& weight, const Shape& result)
      : g_(g), x_(x), weight_(weight), result_(result), phase_(g.n) {}

  /// Returns the result, interleaved along axis `axis` and all later axes, for one phase of each earlier axis
  /// (`phase_`).
  Var interleaved(std::size_t axis = 0) {
    if (axis == g_.n) return of_phases();
    if (g_.stride[axis] == 1) return interleaved(axis + 1);
    Vars parts;
    for (phase_[axis] = 0; phase_[axis] < g_.stride[axis]; ++phase_[axis]) parts.push_back(interleaved(axis + 1));
    const Var beside = stack(parts, static_cast<std::int64_t>(axis) + 3);
    Shape shape = parts[0].shape();
    shape[axis + 2] *= g_.stride[axis];
    const Var all = reshape(beside, shape);
    return shape[axis + 2] == result_[axis + 2] ? all : cut(all, axis);
  }

 private:
  Var cut(const Var& all, std::size_t axis) const {
    std::vector<std::int64_t> start(all.rank(), 0), stop(all.shape().begin(), all.shape().end());
    stop[axis + 2] = result_[axis + 2];
    return slice(all, start, stop);
  }

  Var of_phases() const {
    Geometry part = g_;
    std::vector<std::int64_t> start(weight_.rank(), 0), stop(weight_.shape().begin(), weight_.shape().end()),
        step(weight_.rank(), 1);
    Integers before(g_.n), after(g_.n);
    Shape shape{result_[0], result_[1]};
    bool reached = true;
    for (std::size_t i = 0; i < g_.n; ++i) {
      const std::int64_t stride = g_.stride[i], length = ceiling(result_[i + 2], stride);
      const std::int64_t first = (phase_[i] + g_.before[i]) % stride;  // the remainder that k * dilation must have
      const std::int64_t common = std::gcd(stride, g_.dilation[i]);
      const std::int64_t most = std::min(g_.size[i], stride);  // for larger k, the remainders repeat
      std::int64_t k = 0;
      while (k < most && k * g_.dilation[i] % stride != first) ++k;
      start[i + 2] = k;
      step[i + 2] = stride / common;
      part.size[i] = k < most ? (g_.size[i] - 1 - k) / step[i + 2] + 1 : 0;
      part.stride[i] = 1;
      part.dilation[i] = g_.dilation[i] / common;
      reached = reached && part.size[i] > 0;
      shape.push_back(length);
      // The product for element u of the phase combines element u + ahead - t * dilation of x with element k + t * step
      // of the weight.
      const std::int64_t ahead = (phase_[i] + g_.before[i] - k * g_.dilation[i]) / stride;
      before[i] = (part.size[i] - 1) * part.dilation[i] - ahead;
      after[i] = length + ahead - x_.shape()[i + 2];
    }
    if (!reached) return zeros(x_.tape(), shape, x_.dtype());
    return backwards(part, x_, slice(weight_, start, stop, step), before, after);
  }

  const Geometry& g_;
  const Var &x_, &weight_;
  const Shape& result_;
  Integers phase_;
};

/// If all strides are 1, the result is the product of the windows over x and the flipped weight. If strides are small
/// and windows overlap, each phase of the result is computed in this way. In all other cases, the windows of the result
/// are computed and folded.
Vars expand_transpose(const ExpandCall& call) {
  const Var &x = call.inputs[0], &weight = call.inputs[1];
  const Geometry g(call.attributes, x.shape(), weight.shape());
  const Shape& result = call.node.outputs[0].shape;
  constexpr std::int64_t most_phases = 8;
  std::int64_t phases = 1;
  bool overlap = false;
  Integers before(g.n), after(g.n);
  for (std::size_t i = 0; i < g.n; ++i) {
    phases *= std::min(g.stride[i], most_phases + 1);
    overlap = overlap || g.span(i) > g.stride[i];
    before[i] = g.span(i) - 1 - g.before[i];
    after[i] = result[i + 2] - x.shape()[i + 2] + g.before[i];
  }
  if (phases == 1) return {backwards(g, x, weight, before, after)};
  if (phases <= most_phases && overlap) return {Phases(g, x, weight, result).interleaved()};
  Var windows = g.ungrouped(einsum("b" + g.group() + "c" + g.places() + "," + g.group() + "co" + g.elements() + "->b" +
                                       g.group() + "o" + g.places() + g.elements(),
                                   g.grouped(x, 1), g.grouped(weight, 0)),
                            1);
  for (std::size_t i = g.n; i-- > 0;) {
    const std::int64_t length = (x.shape()[i + 2] - 1) * g.stride[i] + g.span(i);
    windows = fold(windows, static_cast<std::int64_t>(i) + 2, length, g.stride[i], g.dilation[i]);
    before[i] = -g.before[i];
    after[i] = result[i + 2] - length + g.before[i];
  }
  return {extended(windows, 2, before, after)};
}

const Op& conv_op();
const Op& conv_transpose_op();

/// Returns the gradient with respect to the weight, for a convolution of `input` with the cotangent `result`.
Var weight_gradient(const Geometry& g, const Var& input, const Var& result) {
  Integers after = g.after;
  for (std::size_t i = 0; i < g.n; ++i)  // with g.after, one window more than in the result may fit
    after[i] = (result.shape()[i + 2] - 1) * g.stride[i] + g.span(i) - g.before[i] - input.shape()[i + 2];
  const std::string equation = "b" + g.group() + "c" + g.places() + g.elements() + ",b" + g.group() + "o" + g.places() +
                               "->" + g.group() + "oc" + g.elements();
  return g.ungrouped(einsum(equation, g.windows_of(extended(input, 2, g.before, after)), g.grouped(result, 1)), 0);
}

Vars conv_gradient(const GradientCall& call) {
  const Var &x = call.inputs[0], &weight = call.inputs[1], dy = call.cotangent();
  const Geometry g(call.attributes, x.shape(), weight.shape());
  Vars gradients(2);
  if (call.needs[0]) {
    // The gradient is as large as x. It has zeros at the elements that no window reaches.
    Integers more(g.n), none(g.n), unread(g.n);
    for (std::size_t i = 0; i < g.n; ++i)
      more[i] = (x.shape()[i + 2] + g.before[i] + g.after[i] - g.span(i)) % g.stride[i];
    Attributes attributes = g.attributes();
    attributes.set("output_padding", more);
    gradients[0] = apply(conv_transpose_op(), {dy, weight}, attributes)[0];
  }
  if (call.needs[1]) gradients[1] = weight_gradient(g, x, dy);
  return gradients;
}

Vars transpose_gradient(const GradientCall& call) {
  const Var &x = call.inputs[0], &weight = call.inputs[1], dy = call.cotangent();
  const Geometry g(call.attributes, x.shape(), weight.shape());
  Vars gradients(2);
  if (call.needs[0]) {
    const Var all = apply(conv_op(), {dy, weight}, g.attributes())[0];
    gradients[0] = all.shape() == x.shape() ? all : slice(all, {}, {x.shape().begin(), x.shape().end()});
  }
  if (call.needs[1]) gradients[1] = weight_gradient(g, dy, x);
  return gradients;
}

/// Records the convolution and adds a bias for each channel.
Vars record_with_bias(Tape tape, const Op& op, const Vars& inputs, const Attributes& given) {
  Attributes attributes = given;
  Var x = inputs[0];
  const Var& weight = inputs[1];
  const bool forward = &op == &conv_op();
  if (forward && given.get<bool>("same")) {
    const Geometry g(given, x.shape(), weight.shape());
    Integers before, after;
    for (std::size_t i = 0; i < g.n; ++i) {
      if (g.stride[i] != 1) throw Error("padding \"same\" needs stride 1, got " + to_string(Attribute(g.stride)));
      before.push_back((g.span(i) - 1) / 2);
      after.push_back(g.span(i) - 1 - before.back());
    }
    attributes.set("padding", Geometry::joined(before, after));
    attributes.set("same", false);
  }
  if (forward && given.get<std::string>("padding_mode") != "zeros") {
    const Geometry g(attributes, x.shape(), weight.shape());
    x = pad(x, Geometry::joined({0, 0}, g.before), Geometry::joined({0, 0}, g.after),
            given.get<std::string>("padding_mode"));
    attributes.set("padding", Integers{0});
    attributes.set("padding_mode", std::string("zeros"));
  }
  const Var y = record_call(tape, op, {x, weight}, attributes)[0];
  if (inputs.size() < 3) return {y};
  if (inputs[2].shape() != Shape{y.shape()[1]})
    throw ShapeError("bias has shape " + to_string(inputs[2].shape()) + ", but must have one number for each of the " +
                     std::to_string(y.shape()[1]) + " channels of the result");
  Shape shape = Shape::filled(y.rank() - 1, 1);
  shape[0] = y.shape()[1];
  return {y + reshape(inputs[2], shape)};
}

Op convolution(const char* name, const char* doc) {
  Op op;
  op.name = name;
  op.doc = doc;
  op.inputs = {{"x", Accept::value}, {"weight", Accept::value}, {"bias", Accept::value, Arity::optional}};
  const Integers one{1};
  op.attributes = {
      {"stride", AttributeType::integers, "The distance between neighbouring windows; one number, or one per axis.",
       one},
      {"padding", AttributeType::integers,
       "The number of zeros at both ends of an axis: one number, or one per spatial axis. A list with two numbers per "
       "axis has first the numbers before all axes, then the numbers after them.",
       Integers{0}},
      {"dilation", AttributeType::integers, "The distance between neighbouring elements of a window.", one},
      {"groups", AttributeType::integer, "The channels are cut into this many groups, which do not mix.",
       std::int64_t{1}}};
  op.record = record_with_bias;
  return op;
}

const Op& conv_op() {
  static const Op entry = [] {
    Op op = convolution(
        "conv",
        R"(Convolution of x [b, c, ...] with weight [o, c / groups, ...] (Fukushima, 1980; LeCun et al., 1989): y[b, o,
           i] is the sum over c and k of x[b, c, i * stride + k * dilation - padding] * weight[o, c, k], plus bias[o].
           Here i and k are the indices along one to three spatial axes. As in PyTorch, the weight is not flipped. The
           bias is recorded as an addition. In float32 with stride 1, Winograd's algorithm computes windows of 3 x 3, or
           of 3 or more along one axis, if there are at least 16 channels and at least 40 tiles of 2 x 2 results (of 2
           along one axis). An infinity or NaN in x may then also affect results of the same example outside of its
           windows.)");
    op.attributes.push_back(
        {"same", AttributeType::boolean,
         "If true, pads so that the result is as large as x, and ignores `padding`. Needs stride 1.", false});
    op.attributes.push_back({"padding_mode", AttributeType::text,
                             "The padding elements: \"zeros\", or elements of x by \"reflect\", \"replicate\" or "
                             "\"circular\", which is recorded as a separate pad.",
                             std::string("zeros")});
    op.shape = conv_shape;
    op.gradient = conv_gradient;
    op.expand = expand_conv;
    return op;
  }();
  return entry;
}

const Op& conv_transpose_op() {
  static const Op entry = [] {
    Op op = convolution(
        "conv_transpose",
        R"(Transposed convolution, the adjoint of conv with respect to x. For x [b, c, ...] and weight [c, o / groups,
           ...], y[b, o, j] is the sum of x[b, c, i] * weight[c, o, k] over c and all i and k with i * stride + k *
           dilation - padding = j, plus bias[o].)");
    op.attributes.push_back({"output_padding", AttributeType::integers,
                             "The numbers of additional elements at the end of each spatial axis of the result.",
                             Integers{0}});
    op.shape = transpose_shape;
    op.gradient = transpose_gradient;
    op.expand = expand_transpose;
    return op;
  }();
  return entry;
}

Var convolved(const Op& op, std::size_t n, const Argument& x, const Var& weight, const Var& bias,
              const Attributes& attributes) {
  return at_place(x.caller(), [&] {
    const Shape& shape = x.shape();
    if (shape.size() != n + 2)  // the op also accepts other numbers of spatial axes
      throw ShapeError(op.name + std::to_string(n) + "d: x has shape " + to_string(shape) + ", but must have " +
                       std::to_string(n + 2) + " axes");
    std::vector<Operand> operands{x, weight};
    if (!bias.empty()) operands.emplace_back(bias);
    return apply(op, operands, attributes)[0];
  });
}

Var conv(std::size_t n, const Argument& x, const Var& weight, const Var& bias, const PerAxis& stride,
         const ConvPadding& padding, const PerAxis& dilation, std::int64_t groups, const std::string& mode) {
  return at_place(x.caller(), [&] {
    if (!padding.name.empty() && padding.name != "same" && padding.name != "valid")
      throw Error("conv: padding \"" + padding.name + "\" must be \"same\", \"valid\" or numbers");
    return convolved(conv_op(), n, x, weight, bias,
                     {{"stride", stride.list},
                      {"padding", padding.numbers.list},
                      {"dilation", dilation.list},
                      {"groups", groups},
                      {"same", padding.name == "same"},
                      {"padding_mode", mode}});
  });
}

Attributes transpose_attributes(const PerAxis& stride, const PerAxis& padding, const PerAxis& output_padding,
                                std::int64_t groups, const PerAxis& dilation) {
  return {{"stride", stride.list},
          {"padding", padding.list},
          {"dilation", dilation.list},
          {"groups", groups},
          {"output_padding", output_padding.list}};
}
}  // namespace

Var conv1d(const Argument& x, const Var& weight, const Var& bias, const PerAxis& stride, const ConvPadding& padding,
           const PerAxis& dilation, std::int64_t groups, const std::string& padding_mode) {
  return conv(1, x, weight, bias, stride, padding, dilation, groups, padding_mode);
}
Var conv2d(const Argument& x, const Var& weight, const Var& bias, const PerAxis& stride, const ConvPadding& padding,
           const PerAxis& dilation, std::int64_t groups, const std::string& padding_mode) {
  return conv(2, x, weight, bias, stride, padding, dilation, groups, padding_mode);
}
Var conv_transpose1d(const Argument& x, const Var& weight, const Var& bias, const PerAxis& stride,
                     const PerAxis& padding, const PerAxis& output_padding, std::int64_t groups,
                     const PerAxis& dilation) {
  return convolved(conv_transpose_op(), 1, x, weight, bias,
                   transpose_attributes(stride, padding, output_padding, groups, dilation));
}
Var conv_transpose2d(const Argument& x, const Var& weight, const Var& bias, const PerAxis& stride,
                     const PerAxis& padding, const PerAxis& output_padding, std::int64_t groups,
                     const PerAxis& dilation) {
  return convolved(conv_transpose_op(), 2, x, weight, bias,
                   transpose_attributes(stride, padding, output_padding, groups, dilation));
}

void list_convolution(OpTable& table) {
  table.add(conv_op());
  table.add(conv_transpose_op());
}

}  // namespace xtape
