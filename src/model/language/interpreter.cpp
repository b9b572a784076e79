#include "model/language/interpreter.hpp"

#include <algorithm>

#include "base/memory/process_memory.hpp"
#include "base/messages/wording.hpp"
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
      for (const Expression& each : expression.children) tuple.push_back(visit(each, at));
      return tuple;
    }
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
  return weight_on(*tape_, context_.store, weight.path, context_.dtype);
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
  return environment.locals.count(name) != 0 || meaning == Meaning::parameter || meaning == Meaning::hyper;
}

Value Interpreter::name(const Expression& expression, const At& at) {
  const std::string& name = expression.text;
  const Environment& environment = at.environment;
  if (const auto found = environment.locals.find(name); found != environment.locals.end()) return found->second;
  const VisibleNames names = names_in(environment);
  switch (names.of(name)) {
    case Meaning::parameter:
      return environment.module->parameters.at(name);
    case Meaning::weight:
      return weight(*environment.module->find_weight(name));
    case Meaning::module:
      return ModuleReference{environment.module->find_module(name)};
    case Meaning::hyper:
      return context_.hyper.at(environment.home).at(name);
    case Meaning::training:
      return tape_->mode() == Mode::train;
    case Meaning::pi:
      return 3.14159265358979323846;
    case Meaning::definition:
      return name;
    default:
      break;
  }
  std::vector<std::string> locals;
  for (const auto& each : environment.locals) locals.push_back(each.first);
  fail(at, expression.column, names.unknown(name, locals));
}

Value Interpreter::attribute(const Expression& expression, const At& at) {
  return attribute_of(visit(expression.children[0], at), expression, at);
}

Value Interpreter::attribute_of(const Value& object, const Expression& expression, const At& at) {
  const std::string& name = expression.text;
  if (const auto* var = object.as<Var>()) {
    if (name == "rank") return static_cast<std::int64_t>(var->rank());
    if (name != "shape") fail(at, expression.column, "an array has no '" + name + "', only .shape and .rank");
    Tuple sizes;
    for (const std::int64_t size : var->shape()) sizes.emplace_back(size);
    return sizes;
  }
  if (const auto* several = object.as<Tuple>()) return attribute_of_each(*several, expression, at);
  const auto* reference = object.as<ModuleReference>();
  if (reference == nullptr) fail(at, expression.column, describe(object) + " has no '" + name + "'");
  const ModuleList& list = *reference->list;
  if (reference->every) {
    Tuple items;
    for (std::size_t i = 0; i < list.items.size(); ++i)
      items.emplace_back(ModuleReference{&list, static_cast<std::int64_t>(i)});
    return attribute_of_each(items, expression, at);
  }
  if (name == "all" && list.repeated && reference->item < 0) return ModuleReference{&list, -1, true};
  if (list.repeated && reference->item < 0)
    fail(at, expression.column, "'" + list.spec->name + "' is repeated: choose one with " + list.spec->name + "[0]");
  if (list.items.empty()) return None{};
  const Module& module = *list.items[std::max<std::int64_t>(0, reference->item)];
  if (const Weight* found = module.find_weight(name)) return weight(*found);
  if (const ModuleList* found = module.find_module(name)) return ModuleReference{found};
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

Value Interpreter::index(const Expression& expression, const At& at) {
  const Value object = visit(expression.children[0], at);
  const auto integer = [&](const Expression& each, std::int64_t otherwise) {
    if (each.form == Form::none) return otherwise;
    const Value value = visit(each, at);
    if (const auto* found = value.as<std::int64_t>()) return *found;
    fail(at, each.column,
         value.as<Var>() != nullptr
             ? "an index must be known while recording: take(x, indices, axis=0) indexes by an array"
             : "an integer belongs here, not " + describe(value));
  };
  if (const auto* tuple = object.as<Tuple>();
      tuple != nullptr && expression.children.size() == 2 && expression.children[1].form == Form::range) {
    const auto& bounds = expression.children[1].children;
    const std::int64_t step = integer(bounds[2], 1), first = step > 0 ? 0 : open_end;
    if (step == 0) fail(at, bounds[2].column, "a step cannot be 0");
    return slice_of(*tuple, integer(bounds[0], first), integer(bounds[1], open_end), step);
  }
  if (object.as<Tuple>() != nullptr || object.as<ModuleReference>() != nullptr) {
    if (expression.children.size() != 2 || expression.children[1].form == Form::range)
      fail(at, expression.column,
           describe(object) + " takes one integer as an index" +
               (object.as<Tuple>() != nullptr ? ", or one range" : ""));
    std::int64_t item = integer(expression.children[1], 0);
    const auto* tuple = object.as<Tuple>();
    const auto* module = object.as<ModuleReference>();
    if (module != nullptr && (!module->list->repeated || module->item >= 0 || module->every))
      fail(at, expression.column, describe(object) + " is not repeated here: it takes no index");
    const auto count = static_cast<std::int64_t>(tuple != nullptr ? tuple->size() : module->list->items.size());
    if (item < -count || item >= count)
      fail(at, expression.children[1].column,
           describe(object) + " has " + std::to_string(count) + (tuple != nullptr ? " elements" : " repeats") +
               ": there is no index " + std::to_string(item));
    if (item < 0) item += count;
    if (tuple != nullptr) return (*tuple)[item];
    return ModuleReference{module->list, item};
  }
  const auto* var = object.as<Var>();
  if (var == nullptr) fail(at, expression.column, describe(object) + " cannot be indexed");
  std::vector<AxisIndex> axes;
  for (std::size_t i = 1; i < expression.children.size(); ++i) {
    const Expression& each = expression.children[i];
    if (each.form == Form::ellipsis) {
      axes.push_back({AxisIndex::Kind::ellipsis, 0, 0, 0, 0});
    } else if (each.form == Form::none) {
      axes.push_back({AxisIndex::Kind::fresh, 0, 0, 0, 0});
    } else if (each.form == Form::range) {
      const std::int64_t step = integer(each.children[2], 1);
      if (step == 0) fail(at, each.children[2].column, "a step cannot be 0");
      const std::int64_t first = step > 0 ? 0 : open_end;
      axes.push_back(
          {AxisIndex::Kind::range, 0, integer(each.children[0], first), integer(each.children[1], open_end), step});
    } else {
      axes.push_back({AxisIndex::Kind::at, integer(each, 0), 0, 0, 0});
    }
  }
  return guarded(at, expression.column, [&] { return Value(index_var(*var, axes)); });
}

Value Interpreter::compute(const Computation& computation, Environment& environment, const LineScopes& scopes) {
  for (const Line& line : computation.lines) {
    const auto guard = tape_->in_scope(scopes.of(line), line.location.line);
    const At at{line, environment};
    Value value = visit(line.value, at);
    if (line.targets.empty()) {
      if (!is_call_of("require", line.value)) fail(at, line.value.column, "a line must assign its value to a name");
      continue;
    }
    if (!line.unpacks) {
      environment.locals[line.targets[0].name] = std::move(value);
      continue;
    }
    const auto* tuple = value.as<Tuple>();
    if (tuple == nullptr || tuple->size() != line.targets.size())
      fail(at, line.targets[0].column,
           std::to_string(line.targets.size()) + " names on the left, but the value is " +
               (tuple == nullptr ? describe(value) : std::to_string(tuple->size()) + " values: " + describe(value)) +
               (is_call_of("scan", line.value) ? ": scan gives the outputs of its cell, then its last states" : ""));
    for (std::size_t i = 0; i < tuple->size(); ++i) environment.locals[line.targets[i].name] = (*tuple)[i];
  }
  Tuple results;
  for (const auto& [name, line] : computation.results) {
    const auto guard = tape_->in_scope(scopes.of(line), line.location.line);
    results.push_back(visit(line.value, {line, environment}));
  }
  return results.size() == 1 ? results[0] : Value(results);
}

}  // namespace xtape::model
