// Products, convolutions, norms.
#include <algorithm>

#include "convolution_geometry.hpp"
#include "equation.hpp"
#include "writing.hpp"

namespace xtape::onnx {

namespace {
/// Whether the equation is that of MatMul: axes of the batch that both operands have, or only the first one has; then
/// the axes of the product.
bool is_matmul(const std::string& text) {
  const std::size_t comma = text.find(','), arrow = text.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || text.find('.') != std::string::npos ||
      text.find(',', comma + 1) != std::string::npos || text.find(' ') != std::string::npos)
    return false;
  const std::string a = text.substr(0, comma), b = text.substr(comma + 1, arrow - comma - 1),
                    y = text.substr(arrow + 2);
  const std::string letters = a + b.substr(b.size() < 2 ? 0 : b.size() - 1);
  for (const char letter : letters)
    if (std::count(letters.begin(), letters.end(), letter) > 1) return false;
  if (a.size() < 2 || b.size() < 2 || y.size() != a.size()) return false;
  const std::string rows = a.substr(0, a.size() - 1), batch = b.substr(0, b.size() - 2);
  const bool same_batch = batch.empty() || (a.size() == b.size() && batch == a.substr(0, a.size() - 2));
  return same_batch && b[b.size() - 2] == a.back() && y == rows + b.back();
}

Names einsum(const WriteCall& call) {
  const std::string& equation = call.text("equation");
  if (is_matmul(equation)) return {call.add("MatMul", call.inputs)};
  return {call.add("Einsum", call.inputs, {{"equation", equation}})};
}

WrittenAttributes windows_of(const ConvolutionGeometry& form) {
  return {{"kernel_shape", form.size},
          {"strides", form.stride},
          {"dilations", form.dilation},
          {"pads", ConvolutionGeometry::joined(form.before, form.after)},
          {"group", form.groups}};
}

Names conv(const WriteCall& call) {
  return {call.add("Conv", call.inputs, windows_of({call.attributes(), call.shape(0), call.shape(1)}))};
}

Names conv_transpose(const WriteCall& call) {
  const ConvolutionGeometry form(call.attributes(), call.shape(0), call.shape(1));
  WrittenAttributes attributes = windows_of(form);
  Integers more = call.integers("output_padding");
  if (more.size() == 1) more.resize(form.n, more[0]);
  attributes.emplace_back("output_padding", more);
  return {call.add("ConvTranspose", call.inputs, attributes)};
}

Names layer_norm(const WriteCall& call) {
  if (call.more_wanted() || call.type().dtype == Dtype::float64) return {};
  Names operands = call.inputs;
  if (operands.size() < 2) {
    Array ones(Dtype::float32, {call.shape().back()});
    std::fill_n(ones.as<float>(), ones.count(), 1.0F);
    operands.push_back(call.cast(call.graph.shared().constant(ones), Dtype::float32, call.type().dtype));
  }
  return {call.add("LayerNormalization", operands, {{"axis", -1}, {"epsilon", call.number("epsilon")}})};
}

Names rms_norm(const WriteCall& call) {
  if (call.more_wanted() || call.graph.shared().opset < 23 || call.inputs.size() < 2) return {};
  return {call.add("RMSNormalization", call.inputs, {{"axis", -1}, {"epsilon", call.number("epsilon")}})};
}

/// int8 numbers with one scale, or one for each index of an axis; others are cast and multiplied.
Names dequantize(const WriteCall& call) {
  const Shape &x = call.shape(0), &scale = call.shape(1);
  std::vector<std::size_t> long_axes;
  for (std::size_t i = 0; i < scale.size(); ++i)
    if (scale[i] > 1) long_axes.push_back(x.size() - scale.size() + i);
  if (call.type().dtype == Dtype::float32 && long_axes.size() < 2) {
    const Shape line = long_axes.empty() ? Shape{} : Shape{x[long_axes[0]]};
    const std::string scales = line == scale ? call.inputs[1] : call.reshaped(call.inputs[1], line);
    if (long_axes.empty()) return {call.add("DequantizeLinear", {call.inputs[0], scales})};
    return {
        call.add("DequantizeLinear", {call.inputs[0], scales}, {{"axis", static_cast<std::int64_t>(long_axes[0])}})};
  }
  return {call.add("Mul", {call.cast(call.inputs[0], call.type().dtype), call.inputs[1]})};
}
}  // namespace

const WriterRows& product_writers() {
  static const WriterRows rows = {{"conv", conv},     {"conv_transpose", conv_transpose}, {"dequantize", dequantize},
                                  {"einsum", einsum}, {"layer_norm", layer_norm},         {"rms_norm", rms_norm}};
  return rows;
}

}  // namespace xtape::onnx
