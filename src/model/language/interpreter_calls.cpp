// Calls in expressions: calls of modules, of the model's functions, and of ops.
#include <algorithm>

#include "base/messages/wording.hpp"
#include "model/language/interpreter.hpp"
#include "xtape/ops.hpp"

namespace xtape::model {

namespace {
/// Runs `body`. Adds the name of the callee to errors without a location.
template <class Body>
auto named(const std::string& callee, const Body& body) {
  try {
    return body();
  } catch (const DefinitionError&) {
    throw;
  } catch (const Error& error) {
    throw Error(callee + ": " + error.what());
  }
}
}  // namespace

Arguments Interpreter::arguments_of(const Expression& expression, const At& at) {
  Arguments arguments;
  for (std::size_t i = 1; i < expression.children.size(); ++i) {
    const Expression& each = expression.children[i];
    if (each.form != Form::star) {
      arguments.positional.push_back({visit(each, at), each.column});
      continue;
    }
    for (const Value& element : elements(each.children[0], "'*' spreads", at))
      arguments.positional.push_back({element, each.column});
  }
  for (const Keyword& each : expression.keywords)
    arguments.named.push_back({each.name, each.column, visit(each.value, at)});
  return arguments;
}

Value Interpreter::call(const Expression& expression, const At& at) {
  const Expression& callee = expression.children[0];
  const std::string& name = callee.text;
  const Value* local = callee.form == Form::name ? at.environment.local(name) : nullptr;
  if (callee.form != Form::name || (local != nullptr && local->is_callable())) {
    const Value object = visit(callee, at);
    if (!object.is_callable()) fail(at, callee.column, describe(object) + " cannot be called");
    return call_value(object, expression.column, arguments_of(expression, at), at);
  }
  const VisibleNames names = names_in(at.environment);
  switch (names.of_callee(name)) {
    case Meaning::require:
      return require(expression, at);
    case Meaning::is_named:
      return is_named(expression, at);
    case Meaning::scan:
      return scan_function(expression, at);
    case Meaning::vmap:
      return vmap_function(expression, at);
    case Meaning::derivative:
      return derivative(name, expression, at);
    case Meaning::array:
      return array(expression.column, arguments_of(expression, at), at);
    case Meaning::module:
      return call_module(ModuleReference(*at.environment.module->find_module(name)), expression.column,
                         arguments_of(expression, at), at);
    case Meaning::function:
      return call_value(FunctionReference{name, context_.definition->find_function(name)}, expression.column,
                        arguments_of(expression, at), at);
    default:
      if (std::optional<Value> result = call_named(name, expression.column, arguments_of(expression, at), at))
        return std::move(*result);
      fail(at, callee.column,
           local != nullptr ? "'" + name + "' is " + describe(*local) + ", which cannot be called"
                            : names.unknown_callee(name));
  }
}

Value Interpreter::call_value(const Value& callee, std::size_t column, const Arguments& arguments, const At& at) {
  if (const auto* module = callee.as<ModuleReference>()) return call_module(*module, column, arguments, at);
  const FunctionReference& given = *callee.as<FunctionReference>();
  if (given.function == nullptr) return *call_named(given.name, column, arguments, at);
  return guarded(at, column, [&] {
    return named("function '" + given.name + "'",
                 [&] { return called(at, [&] { return call_function(*given.function, arguments); }); });
  });
}

std::optional<Value> Interpreter::call_named(const std::string& name, std::size_t column, const Arguments& arguments,
                                             const At& at) {
  const Op* op = context_.ops->find(name);
  if (contains(plain_functions(), name)) {
    if (op == nullptr && !arguments.named.empty())
      fail(at, arguments.named[0].column, name + " takes no named argument");
    Tuple given;
    for (const auto& each : arguments.positional) given.push_back(each.value);
    std::optional<Value> result;
    if (arguments.named.empty()) result = guarded(at, column, [&] { return plain_function(name, given); });
    if (result) return result;
  }
  if (op == nullptr) return std::nullopt;
  return call_op(*op, column, arguments, at);
}

/// Returns a text such as " (d_model = 8, heads = 3)". It has the numbers, texts and flags to which the names in an
/// expression refer.
std::string Interpreter::values_in(const Expression& expression, const At& at) {
  std::vector<std::string> names, values;
  each_name(expression, [&](const Expression& each) {
    if (!knows(each.text, at.environment) || contains(names, each.text)) return;
    names.push_back(each.text);
    const Value value = name(each, at);
    if (value.is_number() || value.as<bool>() != nullptr || value.as<std::string>() != nullptr)
      values.push_back(each.text + " = " + describe(value));
  });
  return values.empty() ? "" : " (" + joined(values) + ")";
}

/// require(condition, 'message') throws DefinitionError if the condition is false. The condition must be known at
/// record time.
Value Interpreter::require(const Expression& expression, const At& at) {
  const Arguments arguments = arguments_of(expression, at);
  const auto& given = arguments.positional;
  if (given.size() != 2 || !arguments.named.empty() || given[0].value.as<bool>() == nullptr ||
      given[1].value.as<std::string>() == nullptr)
    fail(at, expression.column, "require takes a condition that is known while recording, and a message");
  if (!*given[0].value.as<bool>())
    fail(at, given[0].column, *given[1].value.as<std::string>() + values_in(expression.children[1], at));
  return None{};
}

Value Interpreter::call_op(const Op& op, std::size_t column, const Arguments& arguments, const At& at) {
  if (!tape_) fail(at, column, "op '" + op.name + "' gives an array: only sizes and numbers are allowed here");
  const auto& given = arguments.positional;
  if (op.name == "masked_fill" && given.size() > 1 && given[0].value.as<Var>() && given[1].value.is_none())
    return given[0].value;  // a mask that is none masks nothing
  try {
    const OpCall bound = bind_op(op, arguments);
    const Vars outputs = apply(*tape_, op, bound.operands, bound.attributes);
    if (outputs.size() == 1) return outputs[0];
    return Tuple(outputs.begin(), outputs.end());
  } catch (const BindingError& error) {
    fail(at, error.column, error.message);
  } catch (const DefinitionError&) {
    throw;
  } catch (const Error& error) {
    std::vector<std::string> list;
    for (const auto& each : arguments.positional) list.push_back(describe(each.value));
    for (const auto& each : arguments.named) list.push_back(each.name + "=" + describe(each.value));
    Location location = location_of(at);
    location.source = nullptr;  // the message has the line already, so model::fail must not append it
    model::fail(location, std::string(error.what()) + "\n" + with_caret(at.line.text, column) + "\n    called with (" +
                              joined(list) + ")");
  }
}

/// Applies a repeated module in sequence. The n results of each repeat replace the first n arguments of the next
/// repeat. A call of a module that is left out returns its first argument.
Value Interpreter::call_module(const ModuleReference& reference, std::size_t column, Arguments arguments,
                               const At& at) {
  const ModuleSpec& spec = *reference.list->spec;
  return guarded(at, column, [&]() -> Value {
    if (!reference.several) {
      if (const Module* module = reference.at(0)) return call_one(*module, spec, arguments, at);
      if (arguments.positional.empty())
        throw Error("module '" + spec.name +
                    "' is left out of this model, so a call of it returns its first argument: give it an argument");
      return arguments.positional[0].value;
    }
    if (arguments.positional.empty())
      throw Error("a repeated module needs its first argument without a name: each repeat replaces it by its result");
    Value threaded = arguments.positional[0].value;
    Tuple every;
    for (std::int64_t i = 0; i < reference.range.count; ++i) {
      const Module& item = *reference.at(i);
      threaded = call_one(item, spec, arguments, at);
      every.push_back(threaded);
      if (const auto* several = threaded.as<Tuple>()) {
        if (several->size() > arguments.positional.size())
          throw Error("module '" + item.path + "' gives " + std::to_string(several->size()) + " results and takes " +
                      std::to_string(arguments.positional.size()) +
                      " arguments: a repeat's results must be arguments of the next");
        for (std::size_t k = 0; k < several->size(); ++k) arguments.positional[k].value = (*several)[k];
      } else {
        arguments.positional[0].value = threaded;
      }
    }
    return reference.every ? Value(every) : threaded;
  });
}

const Value& given_function(const std::string& caller, const Arguments& arguments) {
  if (arguments.positional.empty() || !arguments.positional[0].value.is_callable())
    throw Error(caller + ": its first argument must be a module or a function, then come its inputs");
  const Value& callee = arguments.positional[0].value;
  const auto* module = callee.as<ModuleReference>();
  if (module != nullptr && (module->several || module->at(0) == nullptr))
    throw Error(
        caller + ": '" + module->list->spec->name + "' must be one module" +
        (module->range.count == 0 ? ", and it is left out" : ": choose a repeat, " + module->list->spec->name + "[0]"));
  return callee;
}

Value Interpreter::returned(const Value& callee, const Value& result) {
  if (const auto* module = callee.as<ModuleReference>()) returned_[module->at(0)] = result;
  return result;
}

Value Interpreter::call_one(const Module& module, const ModuleSpec& spec, const Arguments& arguments, const At& at) {
  std::vector<std::string>& lines = application_lines_[module.path];
  if (const std::string line = to_string(location_of(at)); !contains(lines, line)) lines.push_back(line);
  Vars vars;
  for (const auto& each : arguments.positional) collect_vars(each.value, vars);
  for (const auto& each : arguments.named) collect_vars(each.value, vars);
  const auto apply = [&](const Arguments& given) { return called(at, [&] { return apply_block(module, given); }); };
  if (!spec.checkpoint || tape_->mode() != Mode::train || vars.empty()) return apply(arguments);
  Value result;
  const Inside inside(*this);
  const Vars outputs = checkpoint(
      [&](const Vars& inside) {
        Arguments replaced = arguments;
        std::size_t next = 0;
        for (auto& each : replaced.positional) each.value = replace_vars(each.value, inside, next);
        for (auto& each : replaced.named) each.value = replace_vars(each.value, inside, next);
        result = apply(replaced);
        Vars results;
        collect_vars(result, results);
        return results;
      },
      vars);
  std::size_t next = 0;
  return returned_[&module] = replace_vars(result, outputs, next);
}

Value Interpreter::apply_block(const Module& module, const Arguments& arguments) {
  Environment environment{.home = module.block->home, .module = &module};
  named("block '" + module.block->name + "' (module " + module.path + ")",
        [&] { bind_inputs(module.block->inputs, arguments, context_.dtype, *this, environment); });
  if (module.block->from_file != nullptr) return returned_[&module] = apply_file_block(module, environment);
  Value result = compute(module.block->computation, environment, module.scopes);
  if (tape_->mode() == Mode::train) update_weights(module, environment);
  applied_[&module] = std::move(environment.locals);
  return returned_[&module] = std::move(result);
}

/// Returns one array, or a tuple of several arrays.
Value Interpreter::apply_file_block(const Module& module, const Environment& environment) {
  Vars inputs;
  for (const Input& input : module.block->inputs) {
    const Value& given = environment.locals.at(input.name);
    const auto* var = given.as<Var>();
    if (var == nullptr)
      throw Error("block '" + module.block->name + "': input '" + input.name + "' is an array, not " + describe(given));
    inputs.push_back(*var);
  }
  const auto weight_of = [&](const std::string& name) {
    const Value value = weight(*module.find_weight(name));
    return *value.as<Var>();
  };
  const Vars outputs = module.block->from_file->record(*tape_, inputs, weight_of, context_.dtype, module.path);
  if (outputs.size() == 1) return outputs[0];
  return Tuple(outputs.begin(), outputs.end());
}

/// Evaluates the new values of the block's weights and stores them in updates_. Later reads of the weights in this
/// recording, such as in a second application, use the new values.
void Interpreter::update_weights(const Module& module, const Environment& environment) {
  NamedVars updates;  // applied together, so that each update is computed from the old values
  for (const auto& [name, line] : module.block->updates) {
    const Weight& weight = *module.find_weight(name);
    if (weight.path.empty()) continue;
    const At at{line, environment};
    if (inside_)
      fail(at, line.value.column,
           "a weight cannot be updated inside a scan, a vmap or a checkpoint: '" + weight.path +
               "' has one new value for each update of the training");
    const auto guard = tape_->in_scope(module.scopes.of(line), line.location.line);
    const Value value = visit(line.value, at);
    const ValueType type{context_.dtype, weight.shape};
    const auto* var = value.as<Var>();
    if (var == nullptr || var->type() != type)
      fail(at, line.value.column,
           "the new value of weight '" + weight.path + "' must be " + xtape::to_string(type) +
               " as the weight is, not " + describe(value));
    updates.add(weight.path, stop_gradient(*var));
  }
  for (const auto& [path, var] : updates) updates_.set(path, var);
}

Value Interpreter::call_function(const Function& function, const Arguments& arguments) {
  if (contains(calling_, &function))
    throw Error("function '" + function.name + "' calls itself: functions cannot call each other in a cycle");
  if (calling_.size() == deepest)
    throw Error("functions call each other more than " + std::to_string(deepest) + " deep");
  Environment environment{context_.definition.get(), root_, true, {}};
  bind_inputs(function.inputs, arguments, context_.dtype, *this, environment);
  calling_.push_back(&function);
  const LineScopes scopes =
      scopes_of(context_, function.name, function.location, "function '" + function.name + "'", function.computation);
  try {
    Value result = compute(function.computation, environment, scopes);
    calling_.pop_back();
    called_[&function] = std::move(environment.locals);
    return result;
  } catch (...) {
    calling_.pop_back();
    throw;
  }
}

}  // namespace xtape::model
