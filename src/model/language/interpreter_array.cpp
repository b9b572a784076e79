// array(values, dtype=none): a constant array of nested tuples of numbers or flags.
#include <algorithm>

#include "model/language/interpreter.hpp"
#include "xtape/ops.hpp"

namespace xtape::model {

namespace {
/// Appends the numbers or flags of nested tuples, which must have this shape from `axis` on.
void flatten(const Value& value, const Shape& shape, std::size_t axis, Tuple& elements) {
  const auto* tuple = value.as<Tuple>();
  if (axis == shape.size() && tuple == nullptr) {
    if (!value.is_number() && value.as<bool>() == nullptr)
      throw Error("array takes numbers or flags, not " + describe(value) +
                  (value.as<Var>() != nullptr ? ": stack(tuple) joins arrays" : ""));
    elements.push_back(value);
    return;
  }
  if (axis == shape.size() || tuple == nullptr || std::ssize(*tuple) != shape[axis])
    throw Error("array: the elements along axis " + std::to_string(std::min(axis, shape.size() - 1)) +
                " differ in their numbers of elements: " + describe(value) + " does not fit shape " + to_string(shape));
  for (const Value& each : *tuple) flatten(each, shape, axis + 1, elements);
}

/// Returns the shape that the first elements of nested tuples have.
Shape shape_of(const Value& value) {
  Shape shape;
  for (const Value* each = &value; each->as<Tuple>() != nullptr; each = each->as<Tuple>()->data()) {
    if (shape.size() == Shape::max_rank)
      throw Error("an array has at most " + std::to_string(Shape::max_rank) + " axes");
    shape.push_back(std::ssize(*each->as<Tuple>()));
    if (shape.back() == 0) break;
  }
  return shape;
}

/// Returns an array of flags, of int64 or of float64.
Array array_of(const Tuple& elements, const Shape& shape) {
  const auto is_flag = [](const Value& each) { return each.as<bool>() != nullptr; };
  const auto is_integer = [](const Value& each) { return each.as<std::int64_t>() != nullptr; };
  const auto flags = std::ranges::count_if(elements, is_flag), count = std::ssize(elements);
  if (flags != 0 && flags != count) throw Error("array takes either numbers or flags, not both");
  const bool integers = count != 0 && std::ranges::all_of(elements, is_integer);
  Array array(flags != 0 ? Dtype::boolean : integers ? Dtype::int64 : Dtype::float64, shape);
  for (std::int64_t i = 0; i < count; ++i) {
    const Value& each = elements[static_cast<std::size_t>(i)];
    if (flags != 0)
      array.as<bool>()[i] = *each.as<bool>();
    else if (integers)
      array.as<std::int64_t>()[i] = *each.as<std::int64_t>();
    else
      array.as<double>()[i] = each.number();
  }
  return array;
}
}  // namespace

Value Interpreter::array(std::size_t column, const Arguments& arguments, const At& at) {
  if (!tape_) fail(at, column, "array gives an array: only sizes and numbers are allowed here");
  return guarded(at, column, [&]() -> Value {
    std::vector<Value> given;
    for (const auto& each : arguments.positional) given.push_back(each.value);
    for (const auto& each : arguments.named)
      each.name == "dtype" && given.size() == 1 ? given.push_back(each.value)
                                                : throw Error("array takes (values, dtype=), not '" + each.name + "'");
    if (given.empty() || given.size() > 2) throw Error("array takes (values, dtype=)");
    std::optional<Dtype> dtype;
    if (given.size() == 2 && !given[1].is_none()) {
      const auto* name = given[1].as<std::string>();
      if (name == nullptr) throw Error("array: 'dtype' must be the name of a dtype, not " + describe(given[1]));
      dtype = *name == "float" ? context_.dtype : *name == "int" ? Dtype::int64 : dtype_named(*name);
    }
    if (const auto* var = given[0].as<Var>()) return dtype ? cast(*var, *dtype) : *var;
    const Shape shape = shape_of(given[0]);
    Tuple elements;
    flatten(given[0], shape, 0, elements);
    const Var made = tape_->constant(array_of(elements, shape));
    return cast(made, dtype ? *dtype : made.dtype() == Dtype::float64 ? context_.dtype : made.dtype());
  });
}

}  // namespace xtape::model
