/// The expression language of definitions: what a line looks like once parsed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "place.hpp"

namespace xtape::model {

enum class Form : std::uint8_t {
  integer,
  number,
  text,
  flag,
  none,
  name,
  tuple,
  call,       ///< children: what is called, then the positional arguments; keywords.
  attribute,  ///< children: the object; text: the attribute's name.
  index,      ///< children: the object, then one per axis.
  range,      ///< children: start, stop, step (each none where left out); only inside an index.
  ellipsis,   ///< Only inside an index.
  star,       ///< children: the tuple whose elements become arguments; only inside a call.
  unary,      ///< text: "-" or "not".
  condition,  ///< `a if c else b`; children: a, c, b.
  binary      ///< children: two or more, joined from left to right by the operators between them.
};

/// So deep may expressions be nested, and modules, functions and files that use each other: what goes down into them
/// recurses. A chain of operators is as deep as its deepest operand.
inline constexpr int deepest = 200;

struct Keyword;

struct Operator {
  std::string symbol;
  std::size_t column = 0;
};

struct Expression {
  Form form = Form::none;
  std::size_t column = 0;  ///< The byte that errors point at.
  std::string text;
  std::int64_t integer = 0;  ///< Also a flag: 0 or 1.
  double number = 0;
  int height = 1;  ///< Levels of expressions, with this one.
  std::vector<Expression> children;
  std::vector<Operator> operators;
  std::vector<Keyword> keywords;
};

struct Keyword {
  std::string name;
  std::size_t column = 0;
  Expression value;
};

struct Target {
  std::string name;
  std::size_t column = 0;
};

/// One line of a computation, or one expression that stands somewhere in a definition.
struct Line {
  Place place;
  std::string text;
  std::vector<Target> targets;  ///< Empty for an expression alone.
  bool unpacks = false;         ///< "a, b = …" and "a, = …": the value must be a tuple.
  Expression value;

  [[noreturn]] void fail(std::size_t column, const std::string& message) const {
    model::fail(place, text, column, message);
  }
};

/// Parses "a, b = expression" or "expression" (`may_assign` false: only the latter). Throws DefinitionError.
Line parse_line(const std::string& text, const Place& place, bool may_assign);

/// Whether this is a call of `require`, the one call that may stand on a line by itself.
inline bool is_requirement(const Expression& expression) {
  return expression.form == Form::call && expression.children[0].form == Form::name &&
         expression.children[0].text == "require";
}

/// The expression as text again, in a standard spelling.
std::string to_source(const Expression& expression);

}  // namespace xtape::model
