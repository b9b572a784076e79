// Indices of tuples, repeated modules and arrays.
#include "model/language/interpreter.hpp"
#include "xtape/ops.hpp"

namespace xtape::model {

std::int64_t Interpreter::index_integer(const Expression& expression, std::int64_t otherwise, const At& at) {
  if (expression.form == Form::none) return otherwise;
  const Value value = visit(expression, at);
  if (const auto* found = value.as<std::int64_t>()) return *found;
  fail(at, expression.column,
       value.as<Var>() != nullptr
           ? "an index must be known while recording: take(x, indices, axis=0) indexes by an array"
       : value.as<Tuple>() != nullptr
           ? "an integer belongs here, not a tuple: take(x, array(tuple), axis=0) indexes by several"
           : "an integer belongs here, not " + describe(value));
}

/// Returns the bounds of a range with the meaning of the op `slice`.
AxisIndex Interpreter::index_range(const Expression& expression, const At& at) {
  const auto& bounds = expression.children;
  const std::int64_t step = index_integer(bounds[2], 1, at);
  if (step == 0) fail(at, bounds[2].column, "a step cannot be 0");
  return {AxisIndex::Kind::range, 0, index_integer(bounds[0], step > 0 ? 0 : open_end, at),
          index_integer(bounds[1], open_end, at), step};
}

Value Interpreter::index(const Expression& expression, const At& at) {
  const Value object = visit(expression.children[0], at);
  if (object.as<Tuple>() != nullptr || object.as<ModuleReference>() != nullptr)
    return index_list(object, expression, at);
  const auto* var = object.as<Var>();
  if (var == nullptr) fail(at, expression.column, describe(object) + " cannot be indexed");
  std::vector<AxisIndex> axes;
  for (std::size_t i = 1; i < expression.children.size(); ++i) {
    const Expression& each = expression.children[i];
    if (each.form == Form::ellipsis)
      axes.push_back({AxisIndex::Kind::ellipsis, 0, 0, 0, 0});
    else if (each.form == Form::none)
      axes.push_back({AxisIndex::Kind::fresh, 0, 0, 0, 0});
    else if (each.form == Form::range)
      axes.push_back(index_range(each, at));
    else
      axes.push_back({AxisIndex::Kind::at, index_integer(each, 0, at), 0, 0, 0});
  }
  return guarded(at, expression.column, [&] { return Value(index_var(*var, axes)); });
}

/// Returns an element or a range of a tuple, or of the repeats of a module.
Value Interpreter::index_list(const Value& object, const Expression& expression, const At& at) {
  const auto* tuple = object.as<Tuple>();
  const auto* module = object.as<ModuleReference>();
  if (module != nullptr && (!module->several || module->every))
    fail(at, expression.column, describe(object) + " is not repeated here: it takes no index");
  const Expression& wanted = expression.children[1];
  if (expression.children.size() != 2 || wanted.form == Form::ellipsis || wanted.form == Form::none)
    fail(at, expression.column, describe(object) + " takes one integer as an index, or one range");
  const std::int64_t count = tuple != nullptr ? std::ssize(*tuple) : module->range.count;
  if (wanted.form == Form::range) {
    const AxisIndex bounds = index_range(wanted, at);
    const Range part = range_of(count, bounds.start, bounds.stop, bounds.step);
    if (module != nullptr) {
      ModuleReference some = *module;
      some.range = {module->range.at(part.first), module->range.step * part.step, part.count};
      return some;
    }
    Tuple elements;
    for (std::int64_t i = 0; i < part.count; ++i) elements.push_back((*tuple)[static_cast<std::size_t>(part.at(i))]);
    return elements;
  }
  std::int64_t item = index_integer(wanted, 0, at);
  if (item < -count || item >= count)
    fail(at, wanted.column,
         describe(object) + " has " + std::to_string(count) + (tuple != nullptr ? " elements" : " repeats") +
             ": there is no index " + std::to_string(item));
  if (item < 0) item += count;
  return tuple != nullptr ? (*tuple)[static_cast<std::size_t>(item)] : Value(module->one(item));
}

}  // namespace xtape::model
