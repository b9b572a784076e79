// The functions grad, jvp, hvp, jacobian and hessian, and vmap(function, x, …), which applies a function to each
// example.
#include <algorithm>
#include <map>

#include "base/messages/wording.hpp"
#include "model/language/interpreter.hpp"
#include "xtape/derivatives.hpp"
#include "xtape/grad.hpp"
#include "xtape/vmap.hpp"

namespace xtape::model {

namespace {
/// Returns the arguments of a call in the order of `names`. An argument that is left out is none.
std::vector<Value> by_name(const std::string& function, const Arguments& arguments,
                           const std::vector<std::string>& names, std::size_t required) {
  std::vector<Value> values(names.size());
  std::vector<bool> given(names.size(), false);
  if (arguments.positional.size() > names.size())
    throw Error(function + " takes at most " + std::to_string(names.size()) + " arguments, got " +
                std::to_string(arguments.positional.size()));
  for (std::size_t i = 0; i < arguments.positional.size(); ++i) {
    values[i] = arguments.positional[i].value;
    given[i] = true;
  }
  for (const auto& each : arguments.named) {
    const auto found = std::ranges::find(names, each.name);
    if (found == names.end()) throw Error(function + " has no '" + each.name + "'" + did_you_mean(each.name, names));
    const auto place = static_cast<std::size_t>(found - names.begin());
    if (given[place]) throw Error(function + ": '" + each.name + "' is given twice");
    values[place] = each.value;
    given[place] = true;
  }
  for (std::size_t i = 0; i < required; ++i)
    if (!given[i]) throw Error(function + " needs '" + names[i] + "'");
  return values;
}

Vars arrays(const std::string& function, const std::string& name, const Value& value) {
  return arrays_of(function + ": '" + name + "'", value);
}
Var array(const std::string& function, const std::string& name, const Value& value) {
  if (const auto* var = value.as<Var>()) return *var;
  throw Error(function + ": '" + name + "' must be an array, not " + describe(value));
}

/// Returns `vars` in the form of `like`: a single var or a tuple.
Value shaped(const Value& like, const Vars& vars) {
  std::size_t next = 0;
  return replace_vars(like, vars, next);
}

JacobianOptions jacobian_options(const std::string& function, const Value& mode, const Value& chunk_size) {
  JacobianOptions options;
  if (const auto* text = mode.as<std::string>()) {
    if (*text == "forward")
      options.mode = JacobianMode::forward;
    else if (*text == "reverse")
      options.mode = JacobianMode::reverse;
    else
      throw Error(function + ": 'mode' must be 'forward' or 'reverse', not '" + *text + "'");
  } else if (!mode.is_none()) {
    throw Error(function + ": 'mode' must be 'forward' or 'reverse', not " + describe(mode));
  }
  if (const auto* size = chunk_size.as<std::int64_t>())
    options.chunk_size = *size;
  else if (!chunk_size.is_none())
    throw Error(function + ": 'chunk_size' must be an integer, not " + describe(chunk_size));
  return options;
}

/// The names of the arguments of each function, and how many are required. The first two are what is differentiated,
/// and by what.
const std::map<std::string, std::pair<std::vector<std::string>, std::size_t>> derivative_arguments = {
    {"grad", {{"outputs", "inputs", "cotangents"}, 2}},
    {"jvp", {{"outputs", "inputs", "tangents"}, 3}},
    {"hvp", {{"output", "inputs", "directions"}, 3}},
    {"jacobian", {{"output", "inputs", "mode", "chunk_size"}, 2}},
    {"hessian", {{"output", "input", "mode", "chunk_size"}, 2}}};

Value derivative_of(const std::string& name, const std::vector<Value>& given) {
  if (name == "grad") {
    const Vars cotangents = given[2].is_none() ? Vars{} : arrays(name, "cotangents", given[2]);
    return shaped(given[1], grad(arrays(name, "outputs", given[0]), arrays(name, "inputs", given[1]), cotangents));
  }
  if (name == "jvp")
    return shaped(given[0], jvp(arrays(name, "outputs", given[0]), arrays(name, "inputs", given[1]),
                                arrays(name, "tangents", given[2])));
  if (name == "hvp")
    return shaped(given[1], hvp(array(name, "output", given[0]), arrays(name, "inputs", given[1]),
                                arrays(name, "directions", given[2])));
  const JacobianOptions options = jacobian_options(name, given[2], given[3]);
  if (name == "jacobian")
    return shaped(given[1], jacobian(array(name, "output", given[0]), arrays(name, "inputs", given[1]), options));
  return hessian(array(name, "output", given[0]), array(name, "input", given[1]), options);
}

/// Reads an axis, the value `none` for no axis, or a tuple of axes and `none`.
std::vector<std::optional<std::int64_t>> axes(const std::string& name, const Value& value) {
  const auto* tuple = value.as<Tuple>();
  std::vector<std::optional<std::int64_t>> found;
  for (const Value& each : tuple != nullptr ? *tuple : Tuple{value}) {
    if (!each.is_none() && each.as<std::int64_t>() == nullptr)
      throw Error("vmap: '" + name + "' must be an integer or a tuple of integers, not " + describe(value));
    found.push_back(each.is_none() ? std::nullopt : std::optional(*each.as<std::int64_t>()));
  }
  return found;
}

VmapOptions vmap_options(const Arguments& arguments, std::size_t inputs) {
  VmapOptions options;
  for (const auto& given : arguments.named) {
    if (given.name == "in_axes") {
      options.in_axes = axes(given.name, given.value);
      if (given.value.as<Tuple>() == nullptr) options.in_axes.resize(inputs, options.in_axes[0]);
    } else if (given.name == "out_axes") {
      for (const auto& axis : axes(given.name, given.value)) {
        if (!axis) throw Error("vmap: 'out_axes' must be integers: every result differs from example to example");
        options.out_axes.push_back(*axis);
      }
    } else if (given.name == "randomness") {
      const auto* text = given.value.as<std::string>();
      if (text == nullptr || (*text != "different" && *text != "same"))
        throw Error("vmap: 'randomness' must be 'different' or 'same', not " + describe(given.value));
      options.randomness = *text == "same" ? Randomness::same : Randomness::different;
    } else {
      throw Error("vmap has no '" + given.name + "'" + did_you_mean(given.name, {"in_axes", "out_axes", "randomness"}));
    }
  }
  return options;
}
}  // namespace

Value Interpreter::derivative(const std::string& name, const Expression& expression, const At& at) {
  const Arguments arguments = arguments_of(expression, at);
  return guarded(at, expression.column, [&] {
    const auto& [names, required] = derivative_arguments.at(name);
    std::vector<Value> given = by_name(name, arguments, names, required);
    if (given[0].is_callable()) {  // stands for its results for these inputs
      Arguments inputs;
      for (const Value& each : given[1].as<Tuple>() != nullptr ? *given[1].as<Tuple>() : Tuple{given[1]})
        inputs.positional.push_back({each, expression.column});
      given[0] = call_value(given[0], expression.column, inputs, at);
    }
    return derivative_of(name, given);
  });
}

/// Records vmap(function, x, …). The function is recorded for one example. It receives the arguments after it, with
/// each mapped array replaced by the slice for this example.
Value Interpreter::vmap_function(const Expression& expression, const At& at) {
  Arguments arguments = arguments_of(expression, at);
  return guarded(at, expression.column, [&]() -> Value {
    const Value& given = given_function("vmap", arguments);
    Arguments inputs;
    inputs.positional.assign(arguments.positional.begin() + 1, arguments.positional.end());
    Vars batch;
    for (const auto& each : inputs.positional) collect_vars(each.value, batch);
    Value result;
    const Inside inside(*this);
    const Vars mapped = vmap(
        [&](const Vars& example) {
          std::size_t next = 0;
          Arguments replaced = inputs;
          for (auto& each : replaced.positional) each.value = replace_vars(each.value, example, next);
          result = call_value(given, expression.column, replaced, at);
          Vars results;
          collect_vars(result, results);
          return results;
        },
        batch, vmap_options(arguments, batch.size()));
    return returned(given, shaped(result, mapped));
  });
}

}  // namespace xtape::model
