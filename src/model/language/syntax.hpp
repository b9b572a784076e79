/// Syntax trees of lines in the expression language of definitions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "model/language/location.hpp"

namespace xtape::model {

enum class Form : std::uint8_t {
  integer,
  number,
  text,
  flag,
  none,
  name,
  tuple,
  call,           ///< children: the callee, then the positional arguments; keywords: the keyword arguments.
  attribute,      ///< children: the object; text: the attribute's name.
  index,          ///< children: the object, then one child per axis.
  range,          ///< children: start, stop, step, each none if left out; only inside an index.
  ellipsis,       ///< Only inside an index.
  star,           ///< children: the tuple whose elements become arguments of a call or elements of a tuple.
  comprehension,  ///< `[a for targets in b if c]`; children: a, b, c. integer: 1 if a is the rest of `for … for …`.
  unary,          ///< text: "-" or "not".
  condition,      ///< `a if c else b`; children: a, c, b.
  binary          ///< children: two or more, joined from left to right by the operators between them.
};

/// The maximum nesting depth of expressions, and of modules, functions and files that use each other. The code that
/// visits them is recursive and needs a limit. A chain of operators of the same precedence is one level above its
/// operands.
inline constexpr int deepest = 200;

struct Keyword;

struct Operator {
  std::string symbol;
  std::size_t column = 0;
};

struct Target {
  std::string name;
  std::size_t column = 0;
};

struct Expression {
  Form form = Form::none;
  std::size_t column = 0;  ///< The byte of the line to which errors point.
  std::string text;
  std::int64_t integer = 0;  ///< The value of an integer. For a flag, 0 or 1.
  double number = 0;
  int height = 1;  ///< The height of the tree, including this node.
  std::vector<Expression> children;
  std::vector<Operator> operators;
  std::vector<Keyword> keywords;
  std::vector<Target> targets;  ///< The names that a comprehension gives to each element.
};

struct Keyword {
  std::string name;
  std::size_t column = 0;
  Expression value;
};

/// One line of a computation, or one expression elsewhere in a definition.
struct Line {
  Location location;
  std::string text;
  std::vector<Target> targets = {};  ///< The assigned names; empty for an expression without assignment.
  bool unpacks = false;              ///< Whether the value must be a tuple: "a, b = …" or "a, = …".
  Expression value;

  [[noreturn]] void fail(std::size_t column, const std::string& message) const {
    model::fail(location, text, column, message);
  }
};

/// Calls visit(expression) for the expression and all expressions inside it.
template <class Visit>
void each_expression(const Expression& expression, const Visit& visit) {
  visit(expression);
  for (const Expression& child : expression.children) each_expression(child, visit);
  for (const Keyword& keyword : expression.keywords) each_expression(keyword.value, visit);
}

/// Calls visit(name) for each name in the expression, with the expression of the name, except for the names that a
/// comprehension gives to its elements.
template <class Visit>
void each_name(const Expression& expression, const Visit& visit, const std::vector<std::string>& own = {}) {
  if (expression.form == Form::name && std::ranges::find(own, expression.text) == own.end()) visit(expression);
  if (expression.form == Form::comprehension) {
    each_name(expression.children[1], visit, own);
    std::vector<std::string> inner = own;
    for (const Target& each : expression.targets) inner.push_back(each.name);
    for (const int child : {0, 2}) each_name(expression.children[child], visit, inner);
    return;
  }
  for (const Expression& child : expression.children) each_name(child, visit, own);
  for (const Keyword& keyword : expression.keywords) each_name(keyword.value, visit, own);
}

/// Parses "a, b = expression" or "expression". If `may_assign` is false, only the latter is valid. Throws
/// DefinitionError.
Line parse_line(const std::string& text, const Location& location, bool may_assign);

inline bool is_call_of(const char* name, const Expression& expression) {
  return expression.form == Form::call && expression.children[0].form == Form::name &&
         expression.children[0].text == name;
}

/// The expression as source text, with normalised spaces and parentheses.
std::string to_source(const Expression& expression);

}  // namespace xtape::model
