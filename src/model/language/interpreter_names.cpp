// is_named(names) tells whether the module that calls it has one of these names.
#include "base/messages/wording.hpp"
#include "model/language/interpreter.hpp"

namespace xtape::model {

/// Returns true if the path of the module is one of the names, or ends with a dot and one of the names. "*" is every
/// name.
Value Interpreter::is_named(const Expression& expression, const At& at) {
  const Arguments arguments = arguments_of(expression, at);
  Tuple names;
  for (const auto& each : arguments.positional) {
    const auto* tuple = each.value.as<Tuple>();
    if (tuple != nullptr)
      names.insert(names.end(), tuple->begin(), tuple->end());
    else
      names.push_back(each.value);
  }
  const std::string& path = at.environment.module->path;
  asking_.insert(path.substr(path.rfind('.') + 1));
  bool found = false;
  for (const Value& each : names) {
    const auto* name = each.as<std::string>();
    if (name == nullptr || name->empty())
      fail(at, expression.column,
           "is_named takes names of modules, as texts or as tuples of them, not " + describe(each));
    const bool same = *name == "*" || path == *name || path.ends_with("." + *name);
    AskedName& asked = asked_names_.emplace(*name, AskedName{&at.line, expression.column, false}).first->second;
    asked.found = asked.found || same;
    found = found || same;
  }
  if (!arguments.named.empty()) fail(at, arguments.named[0].column, "is_named takes no named argument");
  return found;
}

void Interpreter::check_asked_names() const {
  for (const auto& [name, asked] : asked_names_)
    if (!asked.found)
      asked.line->fail(asked.column, "no module that asks this is named '" + name + "'" +
                                         did_you_mean(name, {asking_.begin(), asking_.end()}));
}

}  // namespace xtape::model
