#include <algorithm>
#include <charconv>
#include <limits>
#include <set>
#include <string_view>

#include "base/messages/wording.hpp"
#include "base/system/process_memory.hpp"
#include "model/language/location.hpp"
#include "model/language/synonyms.hpp"
#include "model/language/syntax.hpp"

namespace xtape::model {

namespace {
const std::string too_deep = "this is nested more than " + std::to_string(deepest) + " deep";

template <class... Each>
std::vector<Expression> list_of(Each&&... each) {
  std::vector<Expression> list;
  (list.push_back(std::forward<Each>(each)), ...);
  return list;
}

class Parser {
 public:
  explicit Parser(Line& line) : line_(line), tokens_(tokens_of(line.text, line.location)) {}

  void run(bool may_assign) {
    line_.value = list(Token::Kind::end, "");
    if (token().is("=")) {
      if (!may_assign) fail(token().column, "an expression belongs here, not an assignment");
      assign_targets(line_.value);
      ++at_;
      line_.value = list(Token::Kind::end, "");
    }
    if (token().kind != Token::Kind::end) refuse(token(), "an operator or the end of the line");
  }

 private:
  struct Deeper {
    explicit Deeper(Parser& parser) : parser_(parser) {
      constexpr std::size_t least_stack = 64 << 10;  // bytes of stack for one more level and an error
      if (++parser_.depth_ > deepest) parser_.fail(parser_.token().column, too_deep);
      if (stack_left() < least_stack)
        parser_.fail(parser_.token().column, "this is nested too deeply for this thread's stack");
    }
    ~Deeper() { --parser_.depth_; }
    Parser& parser_;
  };

  const Token& token() const { return tokens_[at_]; }
  const Token& take() { return tokens_[at_++]; }
  [[noreturn]] void fail(std::size_t column, const std::string& message) const { line_.fail(column, message); }
  /// Throws the error that `found` is in a place where `wanted` is expected.
  [[noreturn]] void refuse(const Token& found, const std::string& wanted) const {
    const std::string received = found.kind == Token::Kind::end ? "the end of the line" : "'" + found.text + "'";
    fail(found.column, wanted + " belongs here, not " + received + symbol_hint(found));
  }
  /// Skips the comma after an element of a list, unless the list ends at this element.
  void separate(const char* closing) {
    if (token().is(closing)) return;
    if (!token().is(",")) refuse(token(), "',' or '" + std::string(closing) + "'");
    ++at_;
  }

  void assign_targets(const Expression& left) {
    line_.unpacks = left.form == Form::tuple;
    for (const Expression& each : line_.unpacks ? left.children : std::vector<Expression>{left}) {
      if (each.form != Form::name) fail(each.column, "only names can be assigned to");
      line_.targets.push_back({each.text, each.column});
    }
    if (line_.targets.empty()) fail(left.column, "only names can be assigned to");
  }

  Expression node(Form form, std::size_t column, std::string text, std::vector<Expression> children) const {
    Expression expression;
    expression.form = form;
    expression.column = column;
    expression.text = std::move(text);
    expression.children = std::move(children);
    measure(expression);
    return expression;
  }

  void measure(Expression& expression) const {
    int below = 0;
    for (const Expression& each : expression.children) below = std::max(below, each.height);
    for (const Keyword& each : expression.keywords) below = std::max(below, each.value.height);
    expression.height = below + 1;
    if (expression.height > deepest) fail(expression.column, too_deep);
  }

  /// Parses one expression, or several expressions separated by commas, which form a tuple, or in parentheses a
  /// comprehension. Stops before the symbol `closing` or at the end. If `tuple`, one expression is a tuple, too.
  Expression list(Token::Kind last, const char* closing, bool tuple = false) {
    const std::size_t column = token().column;
    Expression first = argument();
    if (last != Token::Kind::end && token().is_word("for")) return comprehension(std::move(first));
    if (!tuple && !token().is(",")) return first;
    std::vector<Expression> elements = list_of(std::move(first));
    while (token().is(",")) {
      ++at_;
      if (token().kind == last && (last == Token::Kind::end || token().is(closing))) break;
      if (token().is("=")) break;
      elements.push_back(argument());
    }
    return node(Form::tuple, column, "", std::move(elements));
  }

  Expression expression() {
    const Deeper deeper(*this);
    Expression chosen = either();
    if (!token().is_word("if")) return chosen;
    const std::size_t column = take().column;
    Expression condition = either();
    if (!token().is_word("else")) refuse(token(), "'else' of 'a if c else b'");
    ++at_;
    return node(Form::condition, column, "", list_of(std::move(chosen), std::move(condition), expression()));
  }

  /// Parses `for a, b in tuple if condition`, after `each`, the value for each element. A second `for` follows as part
  /// of that value.
  Expression comprehension(Expression each) {
    const Deeper deeper(*this);
    Expression result = node(Form::comprehension, take().column, "", {});
    do {
      const Token& target = take();
      if (target.kind != Token::Kind::name || name(target).form != Form::name)
        fail(target.column, "only names can be assigned to");
      result.targets.push_back({target.text, target.column});
    } while (token().is(",") && take().is(","));
    if (!token().is_word("in")) refuse(token(), "'in' of 'for a in tuple'");
    ++at_;
    Expression elements = either();
    Expression condition = node(Form::flag, result.column, "true", {});
    condition.integer = 1;
    if (token().is_word("if")) {
      ++at_;
      condition = either();
    }
    result.integer = token().is_word("for");
    if (result.integer != 0) each = comprehension(std::move(each));
    result.children = list_of(std::move(each), std::move(elements), std::move(condition));
    measure(result);
    return result;
  }

  /// Parses operands joined by left-associative operators of the same precedence.
  template <class Operand>
  Expression chain(std::initializer_list<const char*> symbols, const Operand& operand) {
    Expression first = operand();
    if (!at_any(symbols)) return first;
    Expression result = node(Form::binary, token().column, "", {});
    result.children.push_back(std::move(first));
    while (at_any(symbols)) {
      const Token& symbol = take();
      result.operators.push_back({symbol.text, symbol.column});
      result.children.push_back(operand());
    }
    measure(result);
    return result;
  }

  Expression either() {
    return chain({"or"}, [&] { return both(); });
  }

  Expression both() {
    return chain({"and"}, [&] { return negation(); });
  }

  Expression negation() {
    if (!token().is_word("not")) return comparison();
    const Deeper deeper(*this);
    const std::size_t column = take().column;
    return node(Form::unary, column, "not", list_of(negation()));
  }

  bool at_any(std::initializer_list<const char*> symbols) const {
    return std::ranges::any_of(symbols,
                               [&](const char* symbol) { return token().is(symbol) || token().is_word(symbol); });
  }

  bool at_comparison() const {
    return at_any({"==", "!=", "<", "<=", ">", ">=", "in"}) ||
           (token().is_word("not") && tokens_[at_ + 1].is_word("in"));
  }

  Expression comparison() {
    Expression left = sum();
    if (!at_comparison()) return left;
    const Token& compare = take();
    const std::string symbol = compare.is_word("not") ? "not " + take().text : compare.text;
    Expression result = node(Form::binary, compare.column, "", list_of(std::move(left), sum()));
    result.operators.push_back({symbol, compare.column});
    if (at_comparison()) fail(token().column, "comparisons do not chain: join two with 'and'");
    return result;
  }

  Expression sum() {
    return chain({"+", "-"}, [&] { return product(); });
  }

  Expression product() {
    return chain({"*", "/", "//", "%", "@"}, [&] { return sign(); });
  }

  Expression sign() {
    if (!token().is("-")) return power();
    const Deeper deeper(*this);
    const std::size_t column = take().column;
    return node(Form::unary, column, "-", list_of(sign()));
  }

  Expression power() {
    Expression base = postfix();
    if (!token().is("**")) return base;
    const Deeper deeper(*this);
    const std::size_t column = take().column;
    Expression result = node(Form::binary, column, "", list_of(std::move(base), sign()));
    result.operators.push_back({"**", column});
    return result;
  }

  Expression postfix() {
    Expression object = primary();
    for (;;) {
      if (token().is("(")) {
        object = call(std::move(object));
      } else if (token().is("[")) {
        object = index(std::move(object));
      } else if (token().is(".")) {
        ++at_;
        if (token().kind != Token::Kind::name) refuse(token(), "a name");
        const Token name = take();
        object = node(Form::attribute, name.column, name.text, list_of(std::move(object)));
      } else {
        return object;
      }
    }
  }

  Expression call(Expression callee) {
    Expression result = node(Form::call, callee.column, "", {});
    std::set<std::string> given;
    result.children.push_back(std::move(callee));
    ++at_;
    while (!token().is(")")) {
      if (token().kind == Token::Kind::name && tokens_[at_ + 1].is("=")) {
        const Token name = take();
        ++at_;
        if (!given.insert(name.text).second) fail(name.column, "'" + name.text + "' is given twice");
        result.keywords.push_back({name.text, name.column, expression()});
      } else {
        if (!result.keywords.empty()) fail(token().column, "positional arguments must come before named ones");
        result.children.push_back(argument());
        if (result.children.size() == 2 && token().is_word("for")) {
          result.children[1] = comprehension(std::move(result.children[1]));
          if (!token().is(")")) refuse(token(), "')'");
        }
      }
      separate(")");
    }
    ++at_;
    measure(result);
    return result;
  }

  Expression argument() {
    if (!token().is("*")) return expression();
    const std::size_t column = take().column;
    return node(Form::star, column, "", list_of(expression()));
  }

  Expression index(Expression object) {
    Expression result = node(Form::index, token().column, "", {});
    result.children.push_back(std::move(object));
    ++at_;
    while (!token().is("]")) {
      result.children.push_back(axis());
      separate("]");
    }
    if (result.children.size() == 1) fail(token().column, "an index belongs here");
    ++at_;
    measure(result);
    return result;
  }

  Expression axis() {
    const std::size_t column = token().column;
    if (token().is("...")) {
      ++at_;
      return node(Form::ellipsis, column, "", {});
    }
    if (at_any({",", "]"})) refuse(token(), "an index or a slice");
    const auto bound = [&] {
      return at_any({":", ",", "]"}) ? node(Form::none, token().column, "", {}) : expression();
    };
    Expression start = bound();
    if (!token().is(":")) return start;
    ++at_;
    Expression stop = bound();
    Expression step = node(Form::none, token().column, "", {});
    if (token().is(":")) {
      ++at_;
      step = bound();
    }
    return node(Form::range, column, "", list_of(std::move(start), std::move(stop), std::move(step)));
  }

  Expression primary() {
    const Token first = take();
    switch (first.kind) {
      case Token::Kind::text:
        return node(Form::text, first.column, first.text, {});
      case Token::Kind::integer:
        return integer(first);
      case Token::Kind::number:
        return number(first);
      case Token::Kind::name:
        return name(first);
      case Token::Kind::symbol:
        if (first.is("(") || first.is("[")) return parenthesis(first);
        [[fallthrough]];
      default:
        refuse(first, "an expression");
    }
  }

  Expression integer(const Token& token) const {
    Expression result = node(Form::integer, token.column, token.text, {});
    const auto read = std::from_chars(token.text.data(), token.text.data() + token.text.size(), result.integer);
    if (read.ec != std::errc())
      fail(token.column, "this integer is too large: the largest is 2^63 - 1; write a number as 1.0e20");
    return result;
  }

  Expression number(const Token& token) const {
    Expression result = node(Form::number, token.column, token.text, {});
    const auto read = std::from_chars(token.text.data(), token.text.data() + token.text.size(), result.number);
    if (read.ec != std::errc())
      fail(token.column, "this number is out of range: float64 goes from 4.9e-324 to 1.8e308");
    return result;
  }

  Expression name(const Token& token) const {
    constexpr std::string_view words[] = {"and", "or", "not", "if", "else", "for"};
    const Token& next = tokens_[at_];
    const bool lambda = token.text == "lambda" && next.kind == Token::Kind::name && next.text != "in";  // may be a name
    if (contains(words, token.text) || (lambda && !contains(words, next.text))) refuse(token, "an expression");
    Expression result = node(Form::name, token.column, token.text, {});
    if (token.text == "true" || token.text == "false") {
      result.form = Form::flag;
      result.integer = token.text == "true";
    } else if (token.text == "none") {
      result.form = Form::none;
    } else if (token.text == "inf") {
      result.form = Form::number;
      result.number = std::numeric_limits<double>::infinity();
    }
    return result;
  }

  /// Parses an expression in parentheses, a tuple, or a list, which is a tuple.
  Expression parenthesis(const Token& first) {
    const std::string closing = first.is("(") ? ")" : "]";
    if (token().is(closing.c_str())) {
      ++at_;
      return node(Form::tuple, first.column, "", {});
    }
    Expression inside = list(Token::Kind::symbol, closing.c_str(), first.is("["));
    if (!token().is(closing.c_str())) refuse(token(), "'" + closing + "'");
    ++at_;
    return inside;
  }

  Line& line_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
};
}  // namespace

Line parse_line(const std::string& text, const Location& location, bool may_assign) {
  Line line;
  line.location = location;
  line.text = text;
  Parser(line).run(may_assign);
  return line;
}

}  // namespace xtape::model
