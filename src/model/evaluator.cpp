#include "evaluator.hpp"

#include <algorithm>

#include "nearest.hpp"
#include "stack.hpp"
#include "xtape/ops.hpp"

namespace xtape::model {

Place Evaluator::place_of(const At& at) const {
  Place place = at.line.place;
  if (at.frame.part != nullptr && !at.frame.part->path.empty()) place.owner += " (part " + at.frame.part->path + ")";
  return place;
}

void Evaluator::fail(const At& at, std::size_t column, const std::string& message) const {
  model::fail(place_of(at), at.line.text, column, message);
}

Value Evaluator::evaluate(const Line& line, const Frame& frame) {
  return visit(line.value, {line, frame});
}

std::int64_t Evaluator::integer(const Line& line, const Frame& frame) {
  const Value value = evaluate(line, frame);
  if (const auto* integer = value.as<std::int64_t>()) return *integer;
  fail({line, frame}, line.value.column, "an integer belongs here, not " + describe(value));
}

double Evaluator::number(const Line& line, const Frame& frame) {
  const Value value = evaluate(line, frame);
  if (value.is_number()) return value.number();
  fail({line, frame}, line.value.column, "a number belongs here, not " + describe(value));
}

bool Evaluator::flag(const Line& line, const Frame& frame) {
  const Value value = evaluate(line, frame);
  if (const auto* flag = value.as<bool>()) return *flag;
  fail({line, frame}, line.value.column, "true or false belongs here, not " + describe(value));
}

Value Evaluator::visit(const Expression& expression, const At& at) {
  constexpr std::size_t least_stack = 160 << 10;  // what recording an op may need
  if (stack_left() < least_stack)
    fail(at, expression.column, "expressions, parts and functions are nested too deeply for this thread's stack");
  Value value = value_of(expression, at);
  guarded(at, expression.column, [&] {
    steps_ += 1 + elements_of(value);
    if (steps_ > world_.max_steps)
      throw Error("this takes more than " + std::to_string(world_.max_steps) +
                  " steps to record, the most that ModelOptions::max_steps allows: parts that apply each other "
                  "repeatedly multiply");
  });
  return value;
}

Value Evaluator::value_of(const Expression& expression, const At& at) {
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

/// Whether a condition holds, which is decided while recording.
bool Evaluator::holds(const Expression& condition, const At& at) {
  const Value value = visit(condition, at);
  if (const auto* flag = value.as<bool>()) return *flag;
  fail(at, condition.column,
       value.as<Var>() != nullptr
           ? "a condition must be known while recording, and this is an array: where(c, a, b) chooses element by element"
           : "a condition is true or false, not " + describe(value));
}

/// Operators between two values, from left to right. `and` and `or` of flags look at the right side only where the left
/// does not decide.
Value Evaluator::chain(const Expression& expression, const At& at) {
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

Value Evaluator::weight(const Weight& weight) {
  if (weight.path.empty()) return None{};
  return tape_->parameter(world_.store, weight.path);
}

VisibleNames Evaluator::names_in(const Frame& frame) const {
  const Part* part = frame.part;
  return {frame.home,
          part != nullptr ? part->block : nullptr,
          part != nullptr ? part->parameters.size() : 0,  // while they are set, only the first of them
          tape_.has_value(),
          frame.in_function ? &world_.definition->functions : nullptr,
          world_.ops};
}

bool Evaluator::knows(const std::string& name, const Frame& frame) const {
  VisibleNames names = names_in(frame);
  names.recording = false;
  return frame.locals.count(name) != 0 || names.of(name) != Meaning::unknown;
}

Value Evaluator::name(const Expression& expression, const At& at) {
  const std::string& name = expression.text;
  const Frame& frame = at.frame;
  if (const auto found = frame.locals.find(name); found != frame.locals.end()) return found->second;
  const VisibleNames names = names_in(frame);
  switch (names.of(name)) {
    case Meaning::parameter:
      return frame.part->parameters.at(name);
    case Meaning::weight:
      return weight(*frame.part->find_weight(name));
    case Meaning::module:
      return PartReference{frame.part->find_part(name)};
    case Meaning::hyper:
      return world_.hyper.at(frame.home).at(name);
    case Meaning::training:
      return tape_->mode() == Mode::train;
    default:
      break;
  }
  std::vector<std::string> known = names.values();
  for (const auto& each : frame.locals) known.push_back(each.first);
  fail(at, expression.column, "unknown name '" + name + "'" + did_you_mean(name, known));
}

Value Evaluator::attribute(const Expression& expression, const At& at) {
  return attribute_of(visit(expression.children[0], at), expression, at);
}

Value Evaluator::attribute_of(const Value& object, const Expression& expression, const At& at) {
  const std::string& name = expression.text;
  if (const auto* var = object.as<Var>()) {
    if (name == "rank") return static_cast<std::int64_t>(var->rank());
    if (name != "shape")
      fail(at, expression.column, "an array has no '" + name + "': .shape and .rank can be asked for");
    Tuple sizes;
    for (const std::int64_t size : var->shape()) sizes.emplace_back(size);
    return sizes;
  }
  if (const auto* several = object.as<Tuple>()) return attribute_of_each(*several, expression, at);
  const auto* reference = object.as<PartReference>();
  if (reference == nullptr) fail(at, expression.column, describe(object) + " has no '" + name + "'");
  const PartList& list = *reference->list;
  if (reference->every) {
    Tuple items;
    for (std::size_t i = 0; i < list.items.size(); ++i)
      items.emplace_back(PartReference{&list, static_cast<std::int64_t>(i)});
    return attribute_of_each(items, expression, at);
  }
  if (name == "all" && list.repeated && reference->item < 0) return PartReference{&list, -1, true};
  if (list.repeated && reference->item < 0)
    fail(at, expression.column, "'" + list.spec->name + "' is repeated: choose one with " + list.spec->name + "[0]");
  if (list.items.empty()) return None{};
  const Part& part = *list.items[static_cast<std::size_t>(std::max<std::int64_t>(0, reference->item))];
  if (const Weight* found = part.find_weight(name)) return weight(*found);
  if (const PartList* found = part.find_part(name)) return PartReference{found};
  std::vector<std::string> known;
  for (const Weight& each : part.weights) known.push_back(each.spec->name);
  for (const PartList& each : part.parts) known.push_back(each.spec->name);
  for (const Line& line : part.block->computation.lines)
    for (const Target& target : line.targets) {
      if (target.name == name) return assigned(part, expression, at);
      known.push_back(target.name);
    }
  fail(at, expression.column,
       "part '" + part.path + "' (block '" + part.block->name + "') has no '" + name + "'" + did_you_mean(name, known));
}

/// Of every part, or of what every part has; what is left out has nothing.
Value Evaluator::attribute_of_each(const Tuple& objects, const Expression& expression, const At& at) {
  Tuple found;
  for (const Value& object : objects) {
    if (object.as<PartReference>() == nullptr)
      fail(at, expression.column, describe(object) + " has no '" + expression.text + "'");
    const Value value = attribute_of(object, expression, at);
    if (!value.is_none()) found.push_back(value);
  }
  return found;
}

/// What a line of the part assigned, where it was applied last.
Value Evaluator::assigned(const Part& part, const Expression& expression, const At& at) const {
  const auto values = applied_.find(&part);
  if (values == applied_.end())
    fail(at, expression.column,
         "'" + expression.text + "' of part '" + part.path +
             "' is not known: the part is not applied before, or is a checkpoint, which keeps nothing");
  return values->second.at(expression.text);
}

Value Evaluator::index(const Expression& expression, const At& at) {
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
  if (object.as<Tuple>() != nullptr || object.as<PartReference>() != nullptr) {
    if (expression.children.size() != 2 || expression.children[1].form == Form::range)
      fail(at, expression.column, describe(object) + " takes one integer as an index");
    std::int64_t item = integer(expression.children[1], 0);
    const auto* tuple = object.as<Tuple>();
    const auto* part = object.as<PartReference>();
    if (part != nullptr && (!part->list->repeated || part->item >= 0 || part->every))
      fail(at, expression.column, describe(object) + " is not repeated here: it takes no index");
    const auto count = static_cast<std::int64_t>(tuple != nullptr ? tuple->size() : part->list->items.size());
    if (item < -count || item >= count)
      fail(at, expression.children[1].column,
           "there are " + std::to_string(count) + " here: no " + std::to_string(item));
    if (item < 0) item += count;
    if (tuple != nullptr) return (*tuple)[static_cast<std::size_t>(item)];
    return PartReference{part->list, item};
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

Value Evaluator::compute(const Computation& computation, Frame& frame, const std::shared_ptr<const Scope>& scope) {
  for (const Line& line : computation.lines) {
    const auto guard = tape_->in_scope(scope, line.place.line);
    const At at{line, frame};
    Value value = visit(line.value, at);
    if (line.targets.empty()) {
      if (!is_requirement(line.value))
        fail(at, line.value.column, "a line assigns its value to a name: this one is lost");
      continue;
    }
    if (!line.unpacks) {
      frame.locals[line.targets[0].name] = std::move(value);
      continue;
    }
    const auto* tuple = value.as<Tuple>();
    if (tuple == nullptr || tuple->size() != line.targets.size())
      fail(at, line.targets[0].column,
           std::to_string(line.targets.size()) + " names on the left, but the value is " +
               (tuple == nullptr ? describe(value) : std::to_string(tuple->size()) + " things"));
    for (std::size_t i = 0; i < tuple->size(); ++i) frame.locals[line.targets[i].name] = (*tuple)[i];
  }
  Tuple results;
  for (const auto& [name, line] : computation.results) {
    const auto guard = tape_->in_scope(scope, line.place.line);
    results.push_back(visit(line.value, {line, frame}));
  }
  return results.size() == 1 ? results[0] : Value(results);
}

}  // namespace xtape::model
