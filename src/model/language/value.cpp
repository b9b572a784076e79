#include "model/language/value.hpp"

#include <algorithm>

#include "model/language/interpreter.hpp"
#include "model/recording/module.hpp"
#include "xtape/model.hpp"

namespace xtape::model {

ModuleReference::ModuleReference(const ModuleList& list)
    : list(&list), several(list.repeated), range{0, 1, std::ssize(list.items)} {}

const Module* ModuleReference::at(std::int64_t i) const {
  return i < range.count ? list->items[static_cast<std::size_t>(range.at(i))].get() : nullptr;
}

ModuleReference ModuleReference::one(std::int64_t i) const {
  ModuleReference one = *this;
  one.several = one.every = false;
  one.range = {range.at(i), 1, 1};
  return one;
}

double Value::number() const {
  if (const auto* integer = as<std::int64_t>()) return static_cast<double>(*integer);
  return std::get<double>(held);
}

std::string describe(const Value& value) {
  struct Describe {
    std::string operator()(None) const { return "none"; }
    std::string operator()(bool flag) const { return xtape::to_string(Hyper::Value(flag)); }
    std::string operator()(std::int64_t integer) const { return std::to_string(integer); }
    std::string operator()(double number) const { return xtape::to_string(Hyper::Value(number)); }
    std::string operator()(const std::string& text) const {
      return text.size() <= 200 ? xtape::to_string(Hyper::Value(text)) : "'" + text.substr(0, 200) + "…'";
    }
    std::string operator()(const Var& var) const { return to_string(var.type()); }
    std::string operator()(const Tuple& tuple) const {
      std::string list;
      constexpr std::size_t shown = 16;
      for (std::size_t i = 0; i < std::min(shown, tuple.size()); ++i) {
        if (list.size() > 400) return "(" + list + ", …)";
        list += (list.empty() ? "" : ", ") + describe(tuple[i]);
      }
      return "(" + list + (tuple.size() > shown ? ", …)" : tuple.size() == 1 ? ",)" : ")");
    }
    std::string operator()(const ModuleReference& module) const { return "module '" + module.list->spec->name + "'"; }
    std::string operator()(const FunctionReference& function) const { return "function '" + function.name + "'"; }
  };
  return std::visit(Describe{}, value.held);
}

std::optional<Hyper::Value> hyper_value(const Value& value) {
  if (const auto* flag = value.as<bool>()) return *flag;
  if (const auto* integer = value.as<std::int64_t>()) return *integer;
  if (const auto* number = value.as<double>()) return *number;
  if (const auto* text = value.as<std::string>()) return *text;
  const auto* tuple = value.as<Tuple>();
  if (tuple == nullptr) return std::nullopt;
  Hyper::List list;
  for (const Value& each : *tuple) {
    const bool scalar = each.is_number() || each.as<bool>() != nullptr || each.as<std::string>() != nullptr;
    if (!scalar) return std::nullopt;
    std::visit(
        [&](const auto& held) {
          if constexpr (std::is_constructible_v<Hyper::Scalar, decltype(held)>) list.emplace_back(held);
        },
        each.held);
  }
  return list;
}

std::optional<Operand> operand_of(const Value& value) {
  if (const auto* var = value.as<Var>()) return Operand(*var);
  if (const auto* integer = value.as<std::int64_t>()) return Operand(*integer);
  if (const auto* number = value.as<double>()) return Operand(*number);
  if (const auto* flag = value.as<bool>()) return Operand(*flag);
  return std::nullopt;
}

std::int64_t elements_of(const Value& value, int depth) {
  if (const auto* modules = value.as<ModuleReference>()) return modules->several ? modules->range.count : 0;
  const auto* tuple = value.as<Tuple>();
  if (tuple == nullptr) return 0;
  if (depth == deepest) throw Error("tuples are nested more than " + std::to_string(deepest) + " deep");
  auto count = static_cast<std::int64_t>(tuple->size());
  for (const Value& each : *tuple) count += elements_of(each, depth + 1);
  return count;
}

std::optional<Tuple> as_tuple(const Value& value) {
  if (const auto* tuple = value.as<Tuple>()) return *tuple;
  const auto* modules = value.as<ModuleReference>();
  if (modules == nullptr || !modules->several) return std::nullopt;
  Tuple repeats;
  for (std::int64_t i = 0; i < modules->range.count; ++i) repeats.emplace_back(modules->one(i));
  return repeats;
}

void collect_vars(const Value& value, Vars& vars) {
  if (const auto* var = value.as<Var>()) vars.push_back(*var);
  if (const auto* tuple = value.as<Tuple>())
    for (const Value& each : *tuple) collect_vars(each, vars);
}

namespace {
bool holds_only_arrays(const Value& value) {
  const auto* tuple = value.as<Tuple>();
  return tuple != nullptr ? std::ranges::all_of(*tuple, holds_only_arrays)
                          : value.as<Var>() != nullptr || value.is_none();
}
}  // namespace

Vars arrays_of(const std::string& what, const Value& value) {
  Vars vars;
  collect_vars(value, vars);
  if (vars.empty() || !holds_only_arrays(value))
    throw Error(what + " must be an array or a tuple of arrays, not " + describe(value));
  return vars;
}

Value replace_vars(const Value& value, const Vars& vars, std::size_t& next) {
  if (value.as<Var>() != nullptr) return vars.at(next++);
  if (const auto* tuple = value.as<Tuple>()) {
    Tuple replaced;
    for (const Value& each : *tuple) replaced.push_back(replace_vars(each, vars, next));
    return replaced;
  }
  return value;
}

}  // namespace xtape::model
