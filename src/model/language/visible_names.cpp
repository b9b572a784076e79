#include "model/language/visible_names.hpp"

#include <algorithm>

#include "base/messages/wording.hpp"
#include "model/language/synonyms.hpp"
#include "model/language/value.hpp"
#include "nn/layers.hpp"

namespace xtape::model {

namespace {
const std::string training = "training", pi = "pi";
/// Functions that are not ops because they record several calls.
const std::vector<std::string> derivatives = {"grad", "jvp", "hvp", "jacobian", "hessian"};

bool is_op(const std::string& name, const OpTable* ops) {
  return contains(plain_functions(), name) || (ops != nullptr && ops->find(name) != nullptr);
}

template <class List>
void add(const List& list, std::vector<std::string>& names) {
  for (const auto& each : list) names.push_back(each.name);
}
}  // namespace

Meaning VisibleNames::of(const std::string& name) const {
  if (block != nullptr) {
    const auto parameter = block->parameter_index.find(name);
    if (parameter != block->parameter_index.end() && parameter->second < parameters) return Meaning::parameter;
    if (recording && block->weight_index.count(name) != 0) return Meaning::weight;
    if (recording && block->module_index.count(name) != 0) return Meaning::module;
  }
  if (home != nullptr && home->hyper_index.count(name) != 0) return Meaning::hyper;
  if (recording && name == training) return Meaning::training;
  if (name == pi) return Meaning::pi;
  if (recording && functions != nullptr && functions->find_function(name) != nullptr) return Meaning::function;
  if (recording && is_op(name, ops)) return Meaning::op;
  const bool named =
      !recording && home != nullptr && (home->reachable.count(name) != 0 || initialiser_settings(name) != nullptr);
  return named ? Meaning::definition : Meaning::unknown;
}

Meaning VisibleNames::of_callee(const std::string& name) const {
  if (name == "require") return Meaning::require;
  if (name == "is_named" && block != nullptr) return Meaning::is_named;
  if (recording && block != nullptr && block->module_index.count(name) != 0) return Meaning::module;
  if (functions != nullptr && functions->find_function(name) != nullptr) return Meaning::function;
  if (name == "scan") return Meaning::scan;
  if (name == "vmap") return Meaning::vmap;
  if (contains(derivatives, name)) return Meaning::derivative;
  if (name == "array") return Meaning::array;
  return is_op(name, ops) ? Meaning::op : Meaning::unknown;
}

std::vector<std::string> VisibleNames::values() const {
  std::vector<std::string> names;
  if (block != nullptr) {
    add(block->parameters, names);
    names.resize(std::min(names.size(), parameters));
    if (recording) {
      add(block->weights, names);
      add(block->modules, names);
    }
  }
  if (home != nullptr) add(home->hyper, names);
  if (recording) names.push_back(training);
  if (recording && functions != nullptr) add(functions->functions, names);
  names.push_back(pi);
  return names;
}

std::string VisibleNames::unknown(const std::string& name, const std::vector<std::string>& locals) const {
  if (recording && of_callee(name) != Meaning::unknown) return "'" + name + "' has no value: call it, " + name + "(…)";
  std::vector<std::string> known = values();
  known.insert(known.end(), locals.begin(), locals.end());
  known.insert(known.end(), {"true", "false", "none", "inf"});
  if (!recording && home != nullptr) {
    known.insert(known.end(), home->reachable.begin(), home->reachable.end());
    for (const std::string& initialiser : initialiser_names()) known.push_back(initialiser);
  }
  const std::string meant = did_you_mean(name, known);
  const bool may_be_text = meant.empty() && !recording;
  return "unknown name '" + name + "'" + meant + (may_be_text ? "; write text in quotes: \"'" + name + "'\"" : "");
}

std::string VisibleNames::unknown_callee(const std::string& name) const {
  if (functions != nullptr && functions->removed.count(name) != 0)
    return "function '" + name + "' is removed, since its entry is null, but this line calls it";
  std::vector<std::string> names;
  if (recording && block != nullptr) add(block->modules, names);
  if (functions != nullptr) add(functions->functions, names);
  if (ops != nullptr)
    for (const auto& row : ops->ops()) names.push_back(row.first);
  names.insert(names.end(), {"scan", "vmap", "array"});
  names.insert(names.end(), plain_functions().begin(), plain_functions().end());
  if (block != nullptr) names.push_back("is_named");
  names.insert(names.end(), derivatives.begin(), derivatives.end());
  return or_synonym(name, "there is no module, function or op '" + name + "'" + did_you_mean(name, names));
}

std::string nearest_or_all(const std::string& name, const std::vector<std::string>& names) {
  const std::string meant = did_you_mean(name, names);
  return meant.empty() && !names.empty() ? "; it has " + xtape::joined(names) : meant;
}

std::string wrong_keyword(const Op& op, const std::string& name) {
  std::vector<std::string> known;
  add(op.inputs, known);
  add(op.attributes, known);
  const auto takes_any = [](const AttributeSpec& each) { return each.type == AttributeType::named_sizes; };
  if (contains(known, name) || std::ranges::any_of(op.attributes, takes_any)) return "";
  const std::string synonym = keyword_synonym(name, known);
  return "op '" + op.name + "' has no attribute '" + name + "'" +
         (synonym.empty() ? nearest_or_all(name, known) : ": " + synonym);
}

std::string wrong_text(const AttributeSpec& attribute, const std::string& text) {
  if (attribute.type != AttributeType::dtype || text == "float" || text == "int") return "";
  try {
    dtype_named(text);
  } catch (const DtypeError& error) {
    return error.what();
  }
  return "";
}

bool takes_text(const AttributeSpec& attribute) {
  return attribute.type == AttributeType::text || attribute.type == AttributeType::dtype;
}

}  // namespace xtape::model
