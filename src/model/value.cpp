#include "value.hpp"

#include "part.hpp"
#include "xtape/model.hpp"

namespace xtape::model {

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
    std::string operator()(const std::string& text) const { return xtape::to_string(Hyper::Value(text)); }
    std::string operator()(const Var& var) const { return to_string(var.type()); }
    std::string operator()(const Tuple& tuple) const {
      std::string list;
      for (const Value& each : tuple) list += (list.empty() ? "" : ", ") + describe(each);
      return "(" + list + (tuple.size() == 1 ? ",)" : ")");
    }
    std::string operator()(const PartReference& part) const { return "part '" + part.list->spec->name + "'"; }
  };
  return std::visit(Describe{}, value.held);
}

void collect_vars(const Value& value, Vars& vars) {
  if (const auto* var = value.as<Var>()) vars.push_back(*var);
  if (const auto* tuple = value.as<Tuple>())
    for (const Value& each : *tuple) collect_vars(each, vars);
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
