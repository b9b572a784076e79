#include <algorithm>

#include "base/messages/wording.hpp"
#include "onnx/writing.hpp"

namespace xtape::onnx {

std::int64_t WriteCall::axis(const char* name) const {
  return static_cast<std::int64_t>(normal_axis(integer(name), shape().size()));
}

bool WriteCall::more_wanted() const {
  return std::find(wanted.begin() + 1, wanted.end(), true) != wanted.end();
}

std::string WriteCall::add(const std::string& op, Names operands, const WrittenAttributes& attributes) const {
  return graph.add(op, operands, 1, attributes)[0];
}

Names WriteCall::add(const std::string& op, Names operands, std::size_t outputs,
                     const WrittenAttributes& attributes) const {
  return graph.add(op, operands, outputs, attributes);
}

std::string WriteCall::cast(const std::string& value, Dtype dtype) const {
  return add("Cast", {value}, {{"to", static_cast<std::int64_t>(element_of(dtype))}});
}

std::string WriteCall::where(const std::string& condition, const std::string& a, const std::string& b,
                             Dtype dtype) const {
  const Dtype wide = number_dtype(dtype);
  return cast(add("Where", {condition, cast(a, dtype, wide), cast(b, dtype, wide)}), wide, dtype);
}

std::string WriteCall::list(const Integers& numbers) const {
  Array array(Dtype::int64, {std::ssize(numbers)});
  std::copy(numbers.begin(), numbers.end(), array.as<std::int64_t>());
  return graph.shared().constant(array);
}

std::string WriteCall::scalar(const Literal& number, Dtype dtype) const {
  Tape tape;
  return graph.shared().constant(tape.constant(number, dtype).node().storage);
}

std::string WriteCall::reshaped(const std::string& value, const Shape& shape) const {
  const bool has_zero = contains(shape, 0);
  return add("Reshape", {value, list(Integers(shape.begin(), shape.end()))},
             has_zero ? WrittenAttributes{{"allowzero", 1}} : WrittenAttributes{});
}

std::string WriteCall::transposed(const std::string& value, const Integers& axes) const {
  if (std::is_sorted(axes.begin(), axes.end())) return value;
  return add("Transpose", {value}, {{"perm", axes}});
}

}  // namespace xtape::onnx
