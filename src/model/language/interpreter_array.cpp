// array(values, dtype=none): a constant array of nested tuples of numbers or flags.
#include <algorithm>

#include "base/arrays/elements.hpp"
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

/// Floats are of the dtype `floats`.
Array array_of(const Tuple& elements, const Shape& shape, Dtype floats, bool as_floats) {
  const auto count_if = [&](const auto& holds) { return std::ranges::count_if(elements, holds); };
  const auto flags = count_if([](const Value& each) { return each.as<bool>() != nullptr; });
  const auto integers = count_if([](const Value& each) { return each.as<std::int64_t>() != nullptr; });
  const auto count = std::ssize(elements);
  if (flags != 0 && flags != count) throw Error("array takes either numbers or flags, not both");
  if (flags != 0) {
    Array array(Dtype::boolean, shape);
    std::ranges::transform(elements, array.as<bool>(), [](const Value& each) { return *each.as<bool>(); });
    return array;
  }
  if (integers == count && count != 0 && !as_floats) {
    Array array(Dtype::int64, shape);
    std::ranges::transform(elements, array.as<std::int64_t>(),
                           [](const Value& each) { return *each.as<std::int64_t>(); });
    return array;
  }
  Array exact(Dtype::float64, shape), array(floats, shape);
  std::ranges::transform(elements, exact.as<double>(), &Value::number);
  convert_floats(exact, array);
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
    const bool floats = dtype && is_floating(*dtype);
    const auto made = [&] {
      if (const auto* var = given[0].as<Var>()) return *var;
      const Shape shape = shape_of(given[0]);
      Tuple elements;
      flatten(given[0], shape, 0, elements);
      return tape_->constant(array_of(elements, shape, floats ? *dtype : context_.dtype, floats));
    }();
    return dtype ? cast(made, *dtype) : made;
  });
}

}  // namespace xtape::model
