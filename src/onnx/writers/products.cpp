// Products, convolutions, norms.
#include <algorithm>
#include <cctype>
#include <map>
#include <optional>

#include "base/messages/wording.hpp"
#include "onnx/writing.hpp"
#include "ops/convolution/windows.hpp"

namespace xtape::onnx {

namespace {
/// An einsum equation of two operands as a matrix product. Contains the letters of the axes of the batch, the rows, the
/// columns and the summed axes.
struct MatrixProduct {
  std::string a, b, y, batch, rows, columns, summed;
  std::map<char, std::int64_t> sizes;

  /// Returns nothing if the equation is not a matrix product.
  static std::optional<MatrixProduct> of(const std::string& text, const Shape& a_shape, const Shape& b_shape) {
    const std::size_t comma = text.find(','), arrow = text.find("->");
    if (comma == std::string::npos || arrow == std::string::npos || comma > arrow) return std::nullopt;
    MatrixProduct form{
        text.substr(0, comma), text.substr(comma + 1, arrow - comma - 1), text.substr(arrow + 2), {}, {}, {}, {}, {}};
    const std::vector<std::pair<const std::string*, const Shape*>> operands = {{&form.a, &a_shape},
                                                                               {&form.b, &b_shape}};
    for (const auto& [letters, shape] : operands) {
      if (letters->size() != shape->size()) return std::nullopt;  // also excludes ellipses and a third operand
      for (std::size_t i = 0; i < letters->size(); ++i) {
        const char letter = (*letters)[i];
        if (std::isalpha(static_cast<unsigned char>(letter)) == 0 || letters->find(letter) != i) return std::nullopt;
        if (form.sizes.emplace(letter, (*shape)[i]).first->second != (*shape)[i]) return std::nullopt;
      }
    }
    for (const auto& [letter, size] : form.sizes) {
      const bool in_a = contains(form.a, letter), in_b = contains(form.b, letter), in_y = contains(form.y, letter);
      if (!in_y && !(in_a && in_b)) return std::nullopt;
    }
    for (const char letter : form.y)
      (!contains(form.a, letter) ? form.columns : contains(form.b, letter) ? form.batch : form.rows) += letter;
    for (const char letter : form.a)
      if (!contains(form.y, letter)) form.summed += letter;
    return form;
  }
  std::int64_t size(const std::string& letters) const {
    std::int64_t product = 1;
    for (const char letter : letters) product *= sizes.at(letter);
    return product;
  }
  Shape shape(const std::string& letters) const {
    Shape shape;
    for (const char letter : letters) shape.push_back(sizes.at(letter));
    return shape;
  }
};

/// Reorders the axes of `value`. `from` has the letters of its axes, `to` the same letters in the new order.
std::string reordered(const WriteCall& call, const std::string& value, const std::string& from, const std::string& to) {
  Integers axes;
  for (const char letter : to) axes.push_back(static_cast<std::int64_t>(from.find(letter)));
  return call.transposed(value, axes);
}

/// Returns the value [batch…, first…, last…] with each group of axes merged into one axis.
std::string as_matrices(const WriteCall& call, const MatrixProduct& form, const std::string& value,
                        const std::string& first, const std::string& last) {
  if (first.size() == 1 && last.size() == 1) return value;
  Shape shape = form.shape(form.batch);
  shape.push_back(form.size(first));
  shape.push_back(form.size(last));
  return call.reshaped(value, shape);
}

Names einsum(const WriteCall& call) {
  const std::string& equation = call.text("equation");
  const auto form = call.inputs.size() == 2 ? MatrixProduct::of(equation, call.shape(0), call.shape(1)) : std::nullopt;
  if (!form || form->batch.size() > Shape::max_rank - 2)
    return {call.add("Einsum", call.inputs, {{"equation", equation}})};
  const auto& [a, b, y, batch, rows, columns, summed, sizes] = *form;
  std::string left = reordered(call, call.inputs[0], a, batch + rows + summed);
  // If there is no batch, the rows of the first operand may have several axes.
  const bool many_rows = batch.empty() && rows.size() > 1 && summed.size() == 1 && columns.size() == 1;
  if (!many_rows) left = as_matrices(call, *form, left, rows, summed);
  const std::string right =
      as_matrices(call, *form, reordered(call, call.inputs[1], b, batch + summed + columns), summed, columns);
  std::string product = call.add("MatMul", {left, right});
  if (!many_rows && (rows.size() != 1 || columns.size() != 1))
    product = call.reshaped(product, form->shape(batch + rows + columns));
  return {reordered(call, product, batch + rows + columns, y)};
}

WrittenAttributes windows_of(const ConvolutionGeometry& form) {
  return {{"kernel_shape", form.size},
          {"strides", form.stride},
          {"dilations", form.dilation},
          {"pads", ConvolutionGeometry::joined(form.before, form.after)},
          {"group", form.groups}};
}

Names conv(const WriteCall& call) {
  if (!is_floating(call.type().dtype)) return {};
  return {call.add("Conv", call.inputs, windows_of({call.attributes, call.shape(0), call.shape(1)}))};
}

Names conv_transpose(const WriteCall& call) {
  if (!is_floating(call.type().dtype)) return {};
  const ConvolutionGeometry form(call.attributes, call.shape(0), call.shape(1));
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

/// Uses DequantizeLinear for int8 numbers with one scale, or with one scale per index of a single axis. Casts and
/// multiplies in all other cases.
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

Names dequantize_blocks(const WriteCall& call) {
  return {call.inputs[0]};  // add_blocks has written it in float32
}
}  // namespace

const WriterRows& product_writers() {
  static const WriterRows rows = {{"conv", conv},
                                  {"conv_transpose", conv_transpose},
                                  {"dequantize", dequantize},
                                  {"dequantize_blocks", dequantize_blocks},
                                  {"einsum", einsum},
                                  {"layer_norm", layer_norm},
                                  {"rms_norm", rms_norm}};
  return rows;
}

}  // namespace xtape::onnx
