// Collects the intermediate values of a recording under the paths of their modules and the names of their lines.
#include <algorithm>
#include <optional>

#include "model/language/interpreter.hpp"

namespace xtape::model {

namespace {
/// Returns the node of a var of the tape. Returns nothing if the var belongs to a body, or if its node became part of a
/// body.
std::optional<std::int32_t> node_of(const Var& var, const Tape& tape) {
  try {
    if (var.tape() == tape) return var.id().node;
  } catch (const HandleError&) {
  }
  return std::nullopt;
}

struct NamedValue {
  std::int32_t node;
  std::string name;
  Var var;
};

void add(const std::string& name, const Value& value, const Tape& tape, std::vector<NamedValue>& found) {
  if (const auto* tuple = value.as<Tuple>())
    for (std::size_t i = 0; i < tuple->size(); ++i) add(name + "." + std::to_string(i), (*tuple)[i], tape, found);
  const auto* var = value.as<Var>();
  if (var == nullptr) return;
  if (const auto node = node_of(*var, tape)) found.push_back({*node, name, *var});
}
}  // namespace

RecordedLines Interpreter::recorded_lines() const {
  std::vector<NamedValue> found;
  for (const auto& [module, result] : returned_) add(module->path, result, *tape_, found);
  const auto add_locals = [&](const std::string& path, const Values& locals) {
    for (const auto& [name, value] : locals) add(path.empty() ? name : path + "." + name, value, *tape_, found);
  };
  for (const auto& [module, locals] : applied_) add_locals(module->path, locals);
  for (const auto& [function, locals] : called_) add_locals(function->name, locals);
  std::ranges::sort(found, [](const NamedValue& a, const NamedValue& b) {
    return a.node != b.node ? a.node < b.node : a.name < b.name;
  });
  RecordedLines recorded{{}, application_lines_, updates_};
  for (const NamedValue& each : found)
    if (!each.name.empty()) recorded.values.set(each.name, each.var);
  return recorded;
}

}  // namespace xtape::model
