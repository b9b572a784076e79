#include "model/language/formula.hpp"

#include <set>

#include "base/messages/wording.hpp"
#include "model/language/interpreter.hpp"
#include "xtape/ops.hpp"

namespace xtape::model {

namespace {
void check_names_in(const Expression& expression, const std::vector<std::string>& names, const Line& line) {
  std::set<const Expression*> callees;
  each_expression(expression, [&](const Expression& each) {
    if (each.form == Form::call) callees.insert(each.children.data());
  });
  each_name(expression, [&](const Expression& each) {
    if (callees.count(&each) == 0 && !contains(names, each.text))
      line.fail(each.column, "the data has no '" + each.text + "'" + did_you_mean(each.text, names) +
                                 " (known: " + joined(names) + ")");
  });
}

ModelContext context_without_model() {
  ModelContext context;
  context.ops = &builtin_ops();
  context.max_steps = 1 << 16;
  return context;
}
}  // namespace

void check_formula(const std::string& text, const std::vector<std::string>& names, const std::string& whose) {
  const Line line = parse_line(text, {whose, ""}, false);
  if (!names.empty()) check_names_in(line.value, names, line);
}

std::string value_of_formula(const std::string& text, const Named<std::int64_t>& numbers, const std::string& whose) {
  const Line line = parse_line(text, {whose, ""}, false);
  check_names_in(line.value, numbers.names(), line);
  const ModelContext context = context_without_model();
  Environment environment;
  for (const auto& [name, number] : numbers) environment.locals[name] = number;
  const Value value = Interpreter(context).evaluate(line, environment);
  if (!value.is_number()) line.fail(line.value.column, "a number belongs here, not " + describe(value));
  return describe(value);
}

std::int64_t integer_of_formula(const std::string& text, const Hyper& hyper, const std::string& whose) {
  const ModelContext context = context_without_model();
  Environment environment;
  for (const auto& [name, value] : hyper.items())
    if (const auto* number = std::get_if<std::int64_t>(&value)) environment.locals[name] = *number;
  return Interpreter(context).integer(parse_line(text, {whose, ""}, false), environment);
}

}  // namespace xtape::model
