// Hyper-parameters: expressions over each other, with overrides.
#include <algorithm>
#include <optional>

#include "evaluator.hpp"
#include "nearest.hpp"
#include "xtape/model.hpp"

namespace xtape::model {

namespace {
using Overrides = std::vector<std::pair<std::string, std::string>>;

/// The hyper-parameters of one file. Each may stand before or after those that it needs: they are resolved as they are
/// asked for, in whatever order lets each be known in turn.
class Resolver {
 public:
  Resolver(World& world, const Definition& definition, const Overrides& overrides)
      : world_(world), definition_(definition) {
    std::vector<std::string> names;
    for (const Parameter& each : definition.hyper) names.push_back(each.name);
    for (const auto& [name, text] : overrides) {
      if (std::find(names.begin(), names.end(), name) == names.end())
        throw DefinitionError(definition.file + " has no hyper-parameter '" + name + "'" + did_you_mean(name, names));
      overrides_[name] = text;
    }
  }

  void run() {
    world_.hyper[&definition_];
    for (const Parameter& each : definition_.hyper) resolve(each);
  }

 private:
  void resolve(const Parameter& parameter) {
    Values& known = world_.hyper[&definition_];
    if (known.count(parameter.name) != 0) return;
    if (std::find(resolving_.begin(), resolving_.end(), parameter.name) != resolving_.end())
      fail(parameter.place, "'" + parameter.name + "' depends on itself");
    resolving_.push_back(parameter.name);
    const auto given = overrides_.find(parameter.name);
    if (given == overrides_.end() && !parameter.initial)
      fail(parameter.place, "hyper-parameter '" + parameter.name + "' has no default and must be given");
    Value value;
    if (given == overrides_.end()) {
      value = evaluated(*parameter.initial);
    } else {
      const Form form = parameter.initial ? parameter.initial->value.form : Form::none;
      value = form == Form::text ? Value(given->second) : overridden(parameter, given->second);
    }
    if (!value.is_number() && value.as<bool>() == nullptr && value.as<std::string>() == nullptr)
      fail(parameter.place, "a hyper-parameter is a number, a flag or a string, not " + describe(value));
    known[parameter.name] = std::move(value);
    resolving_.pop_back();
  }

  Value overridden(const Parameter& parameter, const std::string& text) {
    Value value = evaluated(parse_line(text, {"override of hyper-parameter '" + parameter.name + "'", "", 0}, false));
    if (!parameter.initial) return value;
    const Form form = parameter.initial->value.form;
    const auto* number = value.as<double>();
    const bool fits = form == Form::flag      ? value.as<bool>() != nullptr
                      : form == Form::integer ? value.as<std::int64_t>() != nullptr
                      : form == Form::number  ? value.is_number()
                                              : true;
    if (!fits)
      throw DefinitionError("hyper-parameter '" + parameter.name + "' of " + definition_.file + " is " +
                            (form == Form::flag      ? "a flag (true or false)"
                             : form == Form::integer ? "an integer"
                                                     : "a number") +
                            ", and cannot be " + describe(value));
    return form == Form::number && number == nullptr ? Value(value.number()) : value;
  }

  /// What the expression needs is resolved first.
  Value evaluated(const Line& line) {
    need(line.value);
    return Evaluator(world_).evaluate(line, {&definition_, nullptr, false, {}});
  }

  void need(const Expression& expression) {
    if (expression.form == Form::name)
      for (const Parameter& each : definition_.hyper)
        if (each.name == expression.text) resolve(each);
    for (const Expression& child : expression.children) need(child);
    for (const Keyword& each : expression.keywords) need(each.value);
  }

  World& world_;
  const Definition& definition_;
  std::map<std::string, std::string> overrides_;
  std::vector<std::string> resolving_;
};

void resolve_file(World& world, const Definition& definition, const Overrides& overrides) {
  if (world.hyper.count(&definition) != 0) return;
  Resolver(world, definition, overrides).run();
  for (const auto& used : definition.used) resolve_file(world, *used, {});
}
}  // namespace

void resolve_hyper(World& world, const Overrides& overrides) {
  resolve_file(world, *world.definition, overrides);
}

}  // namespace xtape::model
