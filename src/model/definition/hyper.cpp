// Resolves hyper-parameters. They are expressions over other hyper-parameters, and overrides may replace them.
#include <map>
#include <optional>
#include <set>

#include "base/messages/wording.hpp"
#include "model/language/interpreter.hpp"
#include "xtape/model.hpp"

namespace xtape::model {

namespace {
using Overrides = std::vector<std::pair<std::string, std::string>>;

/// Returns the hint for an unknown name: `meant`, or a list of `names` if `meant` is empty.
std::string or_these(const std::string& meant, const std::vector<std::string>& names) {
  constexpr std::size_t most = 40;
  if (!meant.empty() || names.empty() || names.size() > most) return meant;
  return "; it has " + joined(names);
}

/// Resolves the hyper-parameters of one file. The expression of a hyper-parameter may use other hyper-parameters from
/// anywhere in the file. These others are resolved first.
class Resolver {
 public:
  Resolver(ModelContext& context, const Definition& definition, const Overrides& overrides)
      : context_(context), definition_(definition) {
    std::vector<std::string> names;
    for (const Parameter& each : definition.hyper) {
      names.push_back(each.name);
      parameters_[each.name] = &each;
    }
    for (const auto& [name, text] : overrides) {
      if (parameters_.count(name) == 0)
        throw DefinitionError(definition.file + " has no hyper-parameter '" + name + "'" +
                              or_these(did_you_mean(name, names), names));
      overrides_[name] = text;
    }
  }

  void run() {
    context_.hyper[&definition_];
    for (const Parameter& each : definition_.hyper) resolve(each);
  }

 private:
  /// A hyper-parameter that waits for the hyper-parameters in its expression.
  struct Waiting {
    const Parameter* parameter;
    std::optional<Line> given;  ///< The override.
    std::vector<const Parameter*> needs = {};
    std::size_t next = 0;  ///< The index in `needs` of the next hyper-parameter to resolve.
    const Line* line() const { return given ? &*given : parameter->initial ? &*parameter->initial : nullptr; }
  };

  /// Depth-first search with an explicit stack, because a chain of dependencies may be arbitrarily long.
  void resolve(const Parameter& first) {
    Values& known = context_.hyper[&definition_];
    std::vector<Waiting> waiting;
    std::set<const Parameter*> open;
    const auto wait_for = [&](const Parameter& parameter) {
      if (known.count(parameter.name) != 0) return;
      if (!open.insert(&parameter).second) fail(parameter.location, "'" + parameter.name + "' depends on itself");
      waiting.push_back(begun(parameter));
    };
    wait_for(first);
    while (!waiting.empty()) {
      Waiting& last = waiting.back();
      if (last.next < last.needs.size()) {
        wait_for(*last.needs[last.next++]);
        continue;
      }
      known[last.parameter->name] = value_of(last);
      open.erase(last.parameter);
      waiting.pop_back();
    }
  }

  Waiting begun(const Parameter& parameter) const {
    Waiting waiting{&parameter, {}};
    if (const auto text = overrides_.find(parameter.name); text != overrides_.end()) {
      waiting.given = parse_line(text->second, {"override of hyper-parameter '" + parameter.name + "'", "", 0}, false);
    } else if (!parameter.initial) {
      fail(parameter.location, "hyper-parameter '" + parameter.name + "' has no default and must be given: --set " +
                                   parameter.name + "=…, or ModelOptions::hyper");
    }
    if (const Line* line = waiting.line()) need(line->value, waiting.needs);
    return waiting;
  }

  Value value_of(const Waiting& waiting) const {
    const Parameter& parameter = *waiting.parameter;
    Value value = Interpreter(context_).evaluate(*waiting.line(), {.home = &definition_});
    if (waiting.given) value = overridden(parameter, value);
    if (!hyper_value(value))
      fail(parameter.location,
           "a hyper-parameter is a number, a flag, a string or a tuple of these, not " + describe(value));
    return value;
  }

  Value overridden(const Parameter& parameter, const Value& value) const {
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

  /// Appends the hyper-parameters that the expression names.
  void need(const Expression& expression, std::vector<const Parameter*>& needs) const {
    each_name(expression, [&](const Expression& each) {
      if (const auto found = parameters_.find(each.text); found != parameters_.end()) needs.push_back(found->second);
    });
  }

  ModelContext& context_;
  const Definition& definition_;
  std::map<std::string, std::string> overrides_;
  std::map<std::string, const Parameter*> parameters_;
};

void resolve_file(ModelContext& context, const Definition& definition, const Overrides& overrides) {
  if (context.hyper.count(&definition) != 0) return;
  Resolver(context, definition, overrides).run();
  for (const auto& used : definition.used) resolve_file(context, *used.file, {});
}
}  // namespace

void resolve_hyper(ModelContext& context, const Overrides& overrides) {
  resolve_file(context, *context.definition, overrides);
}

}  // namespace xtape::model
