// Binds the arguments of a call to the declared inputs of a block or function. Checks dtypes and binds sizes.
#include <algorithm>

#include "base/messages/wording.hpp"
#include "model/language/interpreter.hpp"

namespace xtape::model {

namespace {
std::string declared(const Input& input) {
  const std::string list = joined(input.dims, [](const Line& dim) { return to_source(dim.value); });
  return input.kind + (input.optional ? "?" : "") + (input.has_dims ? " [" + list + "]" : "");
}

bool accepts(const std::string& kind, Dtype dtype, Dtype model_dtype) {
  if (kind == "any") return true;
  if (kind == "int") return is_integer(dtype);
  if (kind == "float") return dtype == model_dtype;
  return kind == name_of(dtype);
}

/// Compares the shape of `var` with the declared sizes, axis by axis. If the name of a size is not yet known, the size
/// becomes a local. Other sizes are checked.
void bind_sizes(const Input& input, const Var& var, Interpreter& interpreter, Environment& environment) {
  const Shape& shape = var.shape();
  const auto ellipsis =
      std::ranges::find_if(input.dims, [](const Line& dim) { return dim.value.form == Form::ellipsis; });
  const bool open = ellipsis != input.dims.end();
  const std::size_t named = input.dims.size() - open;
  const auto refuse = [&](const std::string& why) {
    throw ShapeError("input '" + input.name + "' is " + to_string(var.type()) + ", declared " + declared(input) + ": " +
                     why);
  };
  if (open ? shape.size() < named : shape.size() != named)
    refuse("it has " + std::to_string(shape.size()) + (shape.size() == 1 ? " axis, not " : " axes, not ") +
           (open ? "at least " : "") + std::to_string(named));
  std::size_t axis = 0;
  for (const Line& dim : input.dims) {
    if (dim.value.form == Form::ellipsis) {
      axis += shape.size() - named;
      continue;
    }
    const std::int64_t size = shape[axis++];
    if (dim.value.form == Form::name && !interpreter.knows(dim.value.text, environment)) {
      environment.locals[dim.value.text] = size;
      continue;
    }
    const std::int64_t wanted = interpreter.integer(dim, environment);
    if (size != wanted)
      refuse("axis " + std::to_string(axis - 1) + " should be " + to_source(dim.value) +
             (dim.value.form == Form::integer ? "" : " = " + std::to_string(wanted)));
  }
}

void check(const Input& input, const Value& value, Dtype model_dtype, Interpreter& interpreter,
           Environment& environment) {
  if ((input.kind == "any" && !input.has_dims) || (input.optional && value.is_none())) return;
  const auto* var = value.as<Var>();
  if (var == nullptr) throw Error("input '" + input.name + "' is " + describe(value) + ", declared " + declared(input));
  if (!accepts(input.kind, var->dtype(), model_dtype))
    throw DtypeError("input '" + input.name + "' is " + to_string(var->type()) + ", declared " + declared(input) +
                     (input.kind == "float" ? std::string(" (the model is ") + name_of(model_dtype) + ")" : ""));
  if (input.has_dims) bind_sizes(input, *var, interpreter, environment);
}

std::string list_of(const std::vector<Input>& inputs) {
  return "(" + joined(inputs, [](const Input& input) { return (input.many ? "*" : "") + input.name; }) + ")";
}
}  // namespace

void bind_inputs(const std::vector<Input>& inputs, const Arguments& arguments, Dtype model_dtype,
                 Interpreter& interpreter, Environment& environment) {
  const bool many = !inputs.empty() && inputs.back().many;
  const std::size_t fixed = inputs.size() - many;
  if (!many && arguments.positional.size() > fixed)
    throw Error("takes " + list_of(inputs) + ", got " + std::to_string(arguments.positional.size()) + " arguments");
  for (std::size_t i = 0; i < std::min(fixed, arguments.positional.size()); ++i)
    environment.locals[inputs[i].name] = arguments.positional[i].value;
  Tuple rest;
  for (std::size_t i = fixed; i < arguments.positional.size(); ++i) rest.push_back(arguments.positional[i].value);
  for (const auto& each : arguments.named) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < fixed; ++i) names.push_back(inputs[i].name);
    if (!contains(names, each.name))
      throw Error("takes " + list_of(inputs) + ", not '" + each.name + "'" + did_you_mean(each.name, names));
    if (!environment.locals.emplace(each.name, each.value).second) throw Error("'" + each.name + "' is given twice");
  }
  const Values given = environment.locals;  // a copy, because `check` adds sizes, which are not inputs, to the locals
  for (std::size_t i = 0; i < fixed; ++i) {
    const auto found = given.find(inputs[i].name);
    if (found == given.end()) throw Error("takes " + list_of(inputs) + ", but '" + inputs[i].name + "' is missing");
    check(inputs[i], found->second, model_dtype, interpreter, environment);
  }
  if (!many) return;
  for (const Value& each : rest) check(inputs.back(), each, model_dtype, interpreter, environment);
  environment.locals[inputs.back().name] = rest;
}

}  // namespace xtape::model
