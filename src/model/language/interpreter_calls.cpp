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
    const Value spread = visit(each.children[0], at);
    const auto* tuple = spread.as<Tuple>();
    if (tuple == nullptr) fail(at, each.column, "'*' spreads a tuple, not " + describe(spread));
    for (const Value& element : *tuple) arguments.positional.push_back({element, each.column});
  }
  for (const Keyword& each : expression.keywords)
    arguments.named.push_back({each.name, each.column, visit(each.value, at)});
  return arguments;
}

Value Interpreter::call(const Expression& expression, const At& at) {
  const Expression& callee = expression.children[0];
  const auto local = at.environment.locals.find(callee.text);
  const bool chosen = callee.form == Form::name && local != at.environment.locals.end() &&
                      local->second.as<ModuleReference>() != nullptr;
  if (callee.form != Form::name || chosen) {
    const Value object = visit(callee, at);
    const auto* module = object.as<ModuleReference>();
    if (module == nullptr) fail(at, callee.column, describe(object) + " cannot be called");
    return call_module(*module, expression, arguments_of(expression, at), at);
  }
  const std::string& name = callee.text;
  const VisibleNames names = names_in(at.environment);
  const Meaning meaning = names.of_callee(name);
  if (meaning == Meaning::require) return require(expression, at);
  if (meaning == Meaning::is_named) return is_named(expression, at);
  if (meaning == Meaning::scan) return scan_module(expression, at);
  if (meaning == Meaning::vmap) return vmap_module(expression, at);
  if (meaning == Meaning::derivative) return derivative(name, expression, at);
  const Arguments arguments = arguments_of(expression, at);
  if (meaning == Meaning::module)
    return call_module({at.environment.module->find_module(name)}, expression, arguments, at);
  if (meaning == Meaning::function)
    return guarded(at, expression.column, [&] {
      return named("function '" + name + "'", [&] {
        return called(at, [&] { return call_function(*context_.definition->find_function(name), arguments); });
      });
    });
  const bool plain = !arguments.positional.empty() && arguments.named.empty() &&
                     std::ranges::all_of(arguments.positional,
                                         [](const Arguments::Positional& each) { return each.value.is_number(); });
  if (plain && is_number_function(name)) {
    std::vector<Value> numbers;
    for (const auto& each : arguments.positional) numbers.push_back(each.value);
    return guarded(at, expression.column, [&] { return number_function(name, numbers); });
  }
  if (const Op* op = context_.ops->find(name)) return call_op(*op, expression, arguments, at);
  fail(at, callee.column, names.unknown_callee(name));
}

/// Returns a text such as " (d_model = 8, heads = 3)". It has the numbers, texts and flags to which the names in an
/// expression refer.
std::string Interpreter::values_in(const Expression& expression, const At& at) {
  std::vector<std::string> names, values;
  each_expression(expression, [&](const Expression& each) {
    if (each.form != Form::name || !knows(each.text, at.environment) || contains(names, each.text)) return;
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

Value Interpreter::call_op(const Op& op, const Expression& expression, const Arguments& arguments, const At& at) {
  if (!tape_)
    fail(at, expression.column, "op '" + op.name + "' gives an array: only sizes and numbers are allowed here");
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
    model::fail(location, std::string(error.what()) + "\n" + with_caret(at.line.text, expression.column) +
                              "\n    called with (" + joined(list) + ")");
  }
}

/// Applies a repeated module in sequence. The n results of each repeat replace the first n arguments of the next
/// repeat. A call of a module that is left out returns its first argument.
Value Interpreter::call_module(const ModuleReference& reference, const Expression& expression, Arguments arguments,
                               const At& at) {
  const ModuleList& list = *reference.list;
  return guarded(at, expression.column, [&]() -> Value {
    if (!list.repeated || reference.item >= 0) {
      if (!list.items.empty())
        return call_one(*list.items[std::max<std::int64_t>(0, reference.item)], *list.spec, arguments, at);
      if (arguments.positional.empty())
        throw Error("module '" + list.spec->name +
                    "' is left out of this model, so a call of it returns its first argument: give it an argument");
      return arguments.positional[0].value;
    }
    if (arguments.positional.empty())
      throw Error("a repeated module needs its first argument without a name: each repeat replaces it by its result");
    Value threaded = arguments.positional[0].value;
    Tuple every;
    for (const auto& item : list.items) {
      threaded = call_one(*item, *list.spec, arguments, at);
      every.push_back(threaded);
      if (const auto* several = threaded.as<Tuple>()) {
        if (several->size() > arguments.positional.size())
          throw Error("module '" + item->path + "' gives " + std::to_string(several->size()) + " results and takes " +
                      std::to_string(arguments.positional.size()) +
                      " arguments: a repeat's results must be arguments of the next");
        for (std::size_t i = 0; i < several->size(); ++i) arguments.positional[i].value = (*several)[i];
      } else {
        arguments.positional[0].value = threaded;
      }
    }
    return reference.every ? Value(every) : threaded;
  });
}

Interpreter::GivenModule Interpreter::given_module(const std::string& function, const Arguments& arguments) const {
  const auto* reference = arguments.positional.empty() ? nullptr : arguments.positional[0].value.as<ModuleReference>();
  if (reference == nullptr) throw Error(function + ": its first argument must be a module, then come its inputs");
  const ModuleList& list = *reference->list;
  if ((list.repeated && reference->item < 0) || list.items.empty())
    throw Error(function + ": '" + list.spec->name + "' must be one module" +
                (list.items.empty() ? ", and it is left out" : ": choose a repeat, " + list.spec->name + "[0]"));
  return {*list.items[std::max<std::int64_t>(0, reference->item)], *list.spec};
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
