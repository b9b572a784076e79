// Operators that are computed at record time.
#include <algorithm>
#include <cmath>

#include "onnx/operators.hpp"
#include "xtape/ops.hpp"

namespace xtape::onnx {

namespace {
template <class T, class Number>
Var constant_list(NodeCall& node, const std::vector<Number>& numbers, bool scalar) {
  Array array(dtype_of<T>(), scalar ? Shape{} : Shape{std::ssize(numbers)});
  for (std::size_t i = 0; i < numbers.size(); ++i) array.as<T>()[i] = static_cast<T>(numbers[i]);
  return constant_of(node.tape(), with_floats(std::move(array), node.setting()));
}

Vars constant(NodeCall& node) {
  if (node.has("value_int")) return {constant_list<std::int64_t>(node, Integers{node.integer("value_int")}, true)};
  if (node.has("value_ints")) return {constant_list<std::int64_t>(node, node.integers("value_ints"), false)};
  if (node.has("value_float")) return {constant_list<float>(node, std::vector<double>{node.real("value_float")}, true)};
  if (node.has("value_floats")) return {constant_list<float>(node, node.reals("value_floats"), false)};
  return {constant_of(node.tape(), node.array("value"))};
}

Shape shape_of(const Integers& sizes) {
  return Shape(sizes.begin(), sizes.end());
}

Vars constant_of_shape(NodeCall& node) {
  const Shape shape = shape_of(node.known_integers(0));
  if (!node.has("value")) return {zeros(node.tape(), shape, node.setting().floats.value_or(Dtype::float32))};
  return {broadcast_to(reshape(node.tape().constant(node.array("value")), {}), shape)};
}

/// Returns the sizes from `start` to `end`, with the rules of Python slices.
Vars sizes(NodeCall& node) {
  const Shape& shape = node.at(0).shape();
  const auto rank = std::ssize(shape);
  const auto place = [&](std::int64_t i) { return std::min(std::max(i < 0 ? i + rank : i, std::int64_t{0}), rank); };
  const std::int64_t start = place(node.integer("start", 0)), end = place(node.integer("end", rank));
  Integers list;
  for (std::int64_t i = start; i < end; ++i) list.push_back(shape[static_cast<std::size_t>(i)]);
  return {constant_integers(node.tape(), list)};
}

Vars count(NodeCall& node) {
  return {node.tape().constant(count_of(node.at(0).shape()), Dtype::int64)};
}

/// Returns start, start + delta, … up to the limit, which is not included.
Vars range(NodeCall& node) {
  const double start = node.known_number(0), limit = node.known_number(1), step = node.known_number(2);
  const double count = std::max(0.0, std::ceil((limit - start) / step));
  if (!(count < 0x1p62)) node.fail("the range has no end");
  const Var steps = iota(node.tape(), {static_cast<std::int64_t>(count)}, 0);
  return {cast(steps, node.at(0).dtype()) * node.at(2) + node.at(0)};
}

Vars eye_like(NodeCall& node) {
  const Var& x = node.at(0);
  if (x.rank() != 2) node.fail("the input has the shape " + to_string(x.shape()) + ", but must be a matrix");
  Element element = node.element(0);
  if (node.has("dtype")) element = static_cast<Element>(node.integer("dtype"));
  node.set_element(0, element);
  const Dtype dtype =
      node.has("dtype") ? dtype_in(static_cast<std::int64_t>(element), node.setting(), "the result") : x.dtype();
  const Var ones = full(node.tape(), x.shape(), 1, dtype);
  const std::int64_t k = node.integer("k", 0);
  return {tril(triu(ones, k), k)};
}

/// Returns a window of length `size`, which is a sum of cosines.
template <int kind>
Vars window(NodeCall& node) {
  constexpr double factors[][3] = {{0.5, -0.5, 0}, {25.0 / 46, -21.0 / 46, 0}, {0.42, -0.5, 0.08}};
  const std::int64_t size = node.known_integer(0);
  const Dtype dtype = dtype_in(node.integer("output_datatype", 1), node.setting(), "the result");
  const double length = static_cast<double>(size - (node.flag("periodic", true) ? 0 : 1));
  const Var angle = cast(iota(node.tape(), {size}), dtype) * (2 * M_PI / length);
  const Var sum = factors[kind][0] + factors[kind][1] * cos(angle);
  return {kind == 2 ? sum + factors[kind][2] * cos(2.0 * angle) : sum};
}
}  // namespace

const Operators& constant_operators() {
  static const Operators operators = {
      {"BlackmanWindow", window<2>, own},
      {"Constant", constant, own},
      {"ConstantOfShape", constant_of_shape, own},
      {"EyeLike", eye_like, own},
      {"HammingWindow", window<1>, own},
      {"HannWindow", window<0>, own},
      {"Range", range},
      {"Shape", sizes, own},
      {"Size", count, own},
  };
  return operators;
}

}  // namespace xtape::onnx
