// Writes expressions as source text.
#include "model/language/syntax.hpp"

namespace xtape::model {

namespace {
std::string joined_from(const std::vector<Expression>& expressions, std::size_t first) {
  std::string list;
  for (std::size_t i = first; i < expressions.size(); ++i) list += (i > first ? ", " : "") + to_source(expressions[i]);
  return list;
}

std::string quoted(const std::string& text) {
  std::string literal = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') literal += '\\';
    literal += c;
  }
  return literal + "'";
}

bool needs_parentheses(const Expression& expression) {
  return expression.form == Form::binary || expression.form == Form::unary || expression.form == Form::condition;
}

std::string operand(const Expression& expression) {
  return needs_parentheses(expression) ? "(" + to_source(expression) + ")" : to_source(expression);
}

std::string comprehension(const Expression& expression) {
  const Expression* each = &expression;
  std::string loops;
  for (bool more = true; more; each = &each->children[0]) {
    std::string targets;
    for (const Target& target : each->targets) targets += (targets.empty() ? "" : ", ") + target.name;
    const Expression& condition = each->children[2];
    loops += " for " + targets + " in " + operand(each->children[1]);
    if (condition.form != Form::flag || condition.integer == 0) loops += " if " + operand(condition);
    more = each->integer != 0;
  }
  return "[" + to_source(*each) + loops + "]";
}
}  // namespace

std::string to_source(const Expression& expression) {
  const std::vector<Expression>& children = expression.children;
  switch (expression.form) {
    case Form::integer:
    case Form::number:
    case Form::flag:
    case Form::name:
      return expression.text;
    case Form::text:
      return quoted(expression.text);
    case Form::none:
      return "none";
    case Form::ellipsis:
      return "...";
    case Form::tuple:
      return "(" + joined_from(children, 0) + (children.size() == 1 ? ",)" : ")");
    case Form::comprehension:
      return comprehension(expression);
    case Form::star:
      return "*" + operand(children[0]);
    case Form::attribute: {
      const bool number =
          children[0].form == Form::integer || children[0].form == Form::number;  // for these, "2.x" would not parse
      return (number ? "(" + children[0].text + ")" : operand(children[0])) + "." + expression.text;
    }
    case Form::index:
      return operand(children[0]) + "[" + joined_from(children, 1) + "]";
    case Form::unary:
      return expression.text + (expression.text == "not" ? " " : "") + operand(children[0]);
    case Form::binary: {
      std::string chain = operand(children[0]);
      for (std::size_t i = 0; i < expression.operators.size(); ++i)
        chain += " " + expression.operators[i].symbol + " " + operand(children[i + 1]);
      return chain;
    }
    case Form::condition:
      return operand(children[0]) + " if " + operand(children[1]) + " else " + operand(children[2]);
    case Form::range: {
      const auto bound = [](const Expression& each) { return each.form == Form::none ? "" : to_source(each); };
      const std::string step = bound(children[2]);
      return bound(children[0]) + ":" + bound(children[1]) + (step.empty() ? "" : ":" + step);
    }
    case Form::call:
      break;
  }
  std::string list = joined_from(children, 1);
  for (const Keyword& each : expression.keywords)
    list += (list.empty() ? "" : ", ") + each.name + "=" + to_source(each.value);
  return operand(children[0]) + "(" + list + ")";
}

}  // namespace xtape::model
