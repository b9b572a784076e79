#include "model/language/interpreter.hpp"

#include <algorithm>

#include "base/messages/wording.hpp"
#include "base/system/process_memory.hpp"
#include "model/language/synonyms.hpp"
#include "model/weights/stored_weights.hpp"
#include "xtape/ops.hpp"

namespace xtape::model {

Location Interpreter::location_of(const At& at) const {
  Location location = at.line.location;
  if (at.environment.module != nullptr && !at.environment.module->path.empty())
    location.owner += " (module " + at.environment.module->path + ")";
  return location;
}

void Interpreter::fail(const At& at, std::size_t column, const std::string& message) const {
  model::fail(location_of(at), at.line.text, column, message);
}

Value Interpreter::evaluate(const Line& line, const Environment& environment) {
  return visit(line.value, {line, environment});
}

std::int64_t Interpreter::integer(const Line& line, const Environment& environment) {
  const Value value = evaluate(line, environment);
  if (const auto* integer = value.as<std::int64_t>()) return *integer;
  fail({line, environment}, line.value.column, "an integer belongs here, not " + describe(value));
}

double Interpreter::number(const Line& line, const Environment& environment) {
  const Value value = evaluate(line, environment);
  if (value.is_number()) return value.number();
  fail({line, environment}, line.value.column, "a number belongs here, not " + describe(value));
}

bool Interpreter::flag(const Line& line, const Environment& environment) {
  const Value value = evaluate(line, environment);
  if (const auto* flag = value.as<bool>()) return *flag;
  fail({line, environment}, line.value.column, "true or false belongs here, not " + describe(value));
}

Value Interpreter::visit(const Expression& expression, const At& at) {
  constexpr std::size_t least_stack = 160 << 10;  // bytes of stack that recording an op may need
  if (stack_left() < least_stack)
    fail(at, expression.column, "expressions, modules and functions are nested too deeply for this thread's stack");
  Value value = value_of(expression, at);
  guarded(at, expression.column, [&] {
    steps_ += 1 + elements_of(value);
    if (steps_ > context_.max_steps)
      throw Error("this takes more than " + std::to_string(context_.max_steps) +
                  " steps to record, the limit of ModelOptions::max_steps: the steps of modules that apply others "
                  "several times multiply");
  });
  return value;
}

Value Interpreter::value_of(const Expression& expression, const At& at) {
  switch (expression.form) {
    case Form::integer:
      return expression.integer;
    case Form::number:
      return expression.number;
    case Form::text:
      return expression.text;
    case Form::flag:
      return expression.integer != 0;
    case Form::none:
      return None{};
    case Form::name:
      return name(expression, at);
    case Form::tuple: {
      Tuple tuple;
      for (const Expression& each : expression.children)
        if (each.form != Form::star)
          tuple.push_back(visit(each, at));
        else
          for (Value& element : elements(each.children[0], "'*' spreads", at)) tuple.push_back(std::move(element));
      return tuple;
    }
    case Form::comprehension:
      return comprehension(expression, at);
    case Form::call:
      return call(expression, at);
    case Form::attribute:
      return attribute(expression, at);
    case Form::index:
      return index(expression, at);
    case Form::unary: {
      const Value value = visit(expression.children[0], at);
      return guarded(at, expression.column, [&] { return unary(expression.text, value); });
    }
    case Form::binary:
      return chain(expression, at);
    case Form::condition:
      return visit(expression.children[holds(expression.children[1], at) ? 0 : 2], at);
    default:
      fail(at, expression.column, "this has no value here");
  }
}

/// Evaluates a condition. It must be known at record time.
bool Interpreter::holds(const Expression& condition, const At& at) {
  const Value value = visit(condition, at);
  if (const auto* flag = value.as<bool>()) return *flag;
  fail(
      at, condition.column,
      value.as<Var>() != nullptr
          ? "a condition must be known while recording, and this is an array: where(c, a, b) chooses element by element"
          : "a condition is true or false, not " + describe(value));
}

/// Applies a chain of binary operators from left to right. `and` and `or` of flags evaluate the right side only if the
/// left side does not determine the result.
Value Interpreter::chain(const Expression& expression, const At& at) {
  Value left = visit(expression.children[0], at);
  for (std::size_t i = 0; i < expression.operators.size(); ++i) {
    const auto& [symbol, column] = expression.operators[i];
    if (const auto* flag = left.as<bool>(); flag != nullptr && (symbol == "and" || symbol == "or"))
      if (*flag == (symbol == "or")) continue;
    const Value right = visit(expression.children[i + 1], at);
    left = guarded(at, column, [&, &symbol = symbol] { return binary(symbol, left, right); });
  }
  return left;
}

Value Interpreter::weight(const Weight& weight) {
  if (weight.path.empty()) return None{};
  if (const Var* updated = updates_.find(weight.path)) return *updated;
  return weight_on(*tape_, context_, weight.path);
}

VisibleNames Interpreter::names_in(const Environment& environment) const {
  const Module* module = environment.module;
  return {environment.home,
          module != nullptr ? module->block : nullptr,
          module != nullptr ? module->parameters.size() : 0,  // the parameters that are set so far
          tape_.has_value(),
          environment.in_function ? context_.definition.get() : nullptr,
          context_.ops};
}

bool Interpreter::knows(const std::string& name, const Environment& environment) const {
  VisibleNames names = names_in(environment);
  names.recording = false;
  const Meaning meaning = names.of(name);
  return environment.local(name) != nullptr || meaning == Meaning::parameter || meaning == Meaning::hyper;
}

Value Interpreter::name(const Expression& expression, const At& at) {
  const std::string& name = expression.text;
  const Environment& environment = at.environment;
  if (const Value* local = environment.local(name)) return *local;
  const VisibleNames names = names_in(environment);
  switch (names.of(name)) {
    case Meaning::parameter:
      return environment.module->parameters.at(name);
    case Meaning::weight:
      return weight(*environment.module->find_weight(name));
    case Meaning::module:
      return ModuleReference(*environment.module->find_module(name));
    case Meaning::hyper:
      return context_.hyper.at(environment.home).at(name);
    case Meaning::training:
      return tape_->mode() == Mode::train;
    case Meaning::pi:
      return 3.14159265358979323846;
    case Meaning::definition:
      return name;
    case Meaning::function:
      return FunctionReference{name, context_.definition->find_function(name)};
    case Meaning::op:
      return FunctionReference{name};
    default:
      break;
  }
  std::vector<std::string> locals;
  for (const Environment* each = &environment; each != nullptr; each = each->outer)
    for (const auto& local : each->locals) locals.push_back(local.first);
  fail(at, expression.column, names.unknown(name, locals));
}

Value Interpreter::attribute(const Expression& expression, const At& at) {
  return attribute_of(visit(expression.children[0], at), expression, at);
}

Value Interpreter::attribute_of(const Value& object, const Expression& expression, const At& at) {
  const std::string& name = expression.text;
  if (const auto* var = object.as<Var>()) {
    if (name == "rank") return static_cast<std::int64_t>(var->rank());
    if (name != "shape") {
      const bool callable = names_in(at.environment).of_callee(name) != Meaning::unknown;
      fail(at, expression.column,
           or_synonym(name, "an array has no '" + name + "', only .shape and .rank" +
                                (callable ? ": write " + name + "(x)" : "")));
    }
    Tuple sizes;
    for (const std::int64_t size : var->shape()) sizes.emplace_back(size);
    return sizes;
  }
  if (const auto* several = object.as<Tuple>()) return attribute_of_each(*several, expression, at);
  const auto* reference = object.as<ModuleReference>();
  if (reference == nullptr) fail(at, expression.column, describe(object) + " has no '" + name + "'");
  const ModuleList& list = *reference->list;
  if (reference->every) return attribute_of_each(*as_tuple(object), expression, at);
  if (name == "all" && reference->several) {
    ModuleReference all = *reference;
    all.every = true;
    return all;
  }
  if (reference->several)
    fail(at, expression.column, "'" + list.spec->name + "' is repeated: choose one with " + list.spec->name + "[0]");
  if (reference->at(0) == nullptr) return None{};
  const Module& module = *reference->at(0);
  if (const Weight* found = module.find_weight(name)) return weight(*found);
  if (const ModuleList* found = module.find_module(name)) return ModuleReference(*found);
  std::vector<std::string> known;
  for (const Weight& each : module.weights) known.push_back(each.spec->name);
  for (const ModuleList& each : module.modules) known.push_back(each.spec->name);
  for (const Line& line : module.block->computation.lines)
    for (const Target& target : line.targets) {
      if (target.name == name) return assigned(module, expression, at);
      known.push_back(target.name);
    }
  fail(at, expression.column,
       "module '" + module.path + "' (block '" + module.block->name + "') has no '" + name + "'" +
           did_you_mean(name, known));
}

/// Returns the attribute of each of several modules as a tuple. Skips modules that are left out and attributes that are
/// none.
Value Interpreter::attribute_of_each(const Tuple& objects, const Expression& expression, const At& at) {
  Tuple found;
  for (const Value& object : objects) {
    if (object.as<ModuleReference>() == nullptr)
      fail(at, expression.column, describe(object) + " has no '" + expression.text + "'");
    const Value value = attribute_of(object, expression, at);
    if (!value.is_none()) found.push_back(value);
  }
  return found;
}

/// Returns the value that a line of the module assigned in the module's last application.
Value Interpreter::assigned(const Module& module, const Expression& expression, const At& at) const {
  const auto values = applied_.find(&module);
  if (values == applied_.end())
    fail(at, expression.column,
         "'" + expression.text + "' of module '" + module.path +
             "' is not known: the module was not applied before, or is a checkpoint, which keeps no values");
  return values->second.at(expression.text);
}

Tuple Interpreter::elements(const Expression& expression, const std::string& what, const At& at) {
  const Value value = visit(expression, at);
  if (std::optional<Tuple> tuple = as_tuple(value)) return std::move(*tuple);
  fail(at, expression.column,
       what + " a tuple or a repeated module, not " + describe(value) +
           (value.as<Var>() != nullptr ? ": unstack(x) gives the rows of an array" : ""));
}

Value Interpreter::comprehension(const Expression& expression, const At& at) {
  Environment environment = {.home = at.environment.home,
                             .module = at.environment.module,
                             .in_function = at.environment.in_function,
                             .outer = &at.environment};
  const At inner{at.line, environment};
  Tuple results;
  for (const Value& element : elements(expression.children[1], "'for' goes over", at)) {
    assign(expression.targets, expression.targets.size() > 1, element, inner, environment.locals);
    if (!holds(expression.children[2], inner)) continue;
    Value value = visit(expression.children[0], inner);
    if (expression.integer == 0)
      results.push_back(std::move(value));
    else
      for (const Value& each : *value.as<Tuple>()) results.push_back(each);
  }
  return results;
}

void Interpreter::assign(const std::vector<Target>& targets, bool unpacks, const Value& value, const At& at,
                         Values& locals) {
  if (!unpacks) {
    locals[targets[0].name] = value;
    return;
  }
  const auto* tuple = value.as<Tuple>();
  if (tuple == nullptr || tuple->size() != targets.size())
    fail(at, targets[0].column,
         std::to_string(targets.size()) + " names on the left, but the value is " +
             (tuple == nullptr ? describe(value) : std::to_string(tuple->size()) + " values: " + describe(value)) +
             (is_call_of("scan", at.line.value) ? ": scan gives the outputs of its cell, then its last states" : ""));
  for (std::size_t i = 0; i < tuple->size(); ++i) locals[targets[i].name] = (*tuple)[i];
}

Value Interpreter::compute(const Computation& computation, Environment& environment, const LineScopes& scopes) {
  for (const Line& line : computation.lines) {
    const auto guard = tape_->in_scope(scopes.of(line), line.location.line);
    const At at{line, environment};
    const Value value = visit(line.value, at);
    if (line.targets.empty()) {
      if (!is_call_of("require", line.value)) fail(at, line.value.column, "a line must assign its value to a name");
      continue;
    }
    assign(line.targets, line.unpacks, value, at, environment.locals);
  }
  Tuple results;
  for (const auto& [name, line] : computation.results) {
    const auto guard = tape_->in_scope(scopes.of(line), line.location.line);
    results.push_back(visit(line.value, {line, environment}));
  }
  return results.size() == 1 ? results[0] : Value(results);
}

}  // namespace xtape::model
