#include <cctype>
#include <cstring>

#include "model/language/location.hpp"

namespace xtape::model {

namespace {
bool starts_name(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

class Lexer {
 public:
  Lexer(const std::string& text, const Location& location) : text_(text), place_(location) {}

  std::vector<Token> run() {
    std::vector<Token> tokens;
    while (skip_space()) tokens.push_back(next());
    tokens.push_back({Token::Kind::end, "", text_.size()});
    return tokens;
  }

 private:
  bool skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    return at_ < text_.size() && text_[at_] != '#';  // a comment extends to the end
  }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  Token next() {
    const char c = peek();
    if (starts_name(c)) return name();
    if (digit(c) || (c == '.' && digit(peek(1)))) return number();
    if (c == '\'' || c == '"') return string();
    for (const char* symbol : {"...", "**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "@", "(", ")", "[",
                               "]", ",", ".", ":", "=", "<", ">",
                               // Operators of other languages, for which the parser suggests a replacement.
                               "&&", "||", "&", "|", "!", "^", "~", "?", ";", "{", "}"})
      if (text_.compare(at_, std::strlen(symbol), symbol) == 0) {
        const Token token{Token::Kind::symbol, symbol, at_};
        at_ += token.text.size();
        return token;
      }
    fail(place_, text_, at_, "this character has no meaning here");
  }

  Token name() {
    const std::size_t first = at_;
    while (starts_name(peek()) || digit(peek())) ++at_;
    return {Token::Kind::name, text_.substr(first, at_ - first), first};
  }

  Token number() {
    const std::size_t first = at_;
    bool whole = true;
    while (digit(peek())) ++at_;
    if (peek() == '.' && peek(1) != '.') {
      whole = false;
      ++at_;
      while (digit(peek())) ++at_;
    }
    if (peek() == 'e' || peek() == 'E') {
      const std::size_t sign = peek(1) == '+' || peek(1) == '-' ? 1 : 0;
      if (digit(peek(1 + sign))) {
        whole = false;
        at_ += 1 + sign;
        while (digit(peek())) ++at_;
      }
    }
    if (starts_name(peek())) fail(place_, text_, at_, "a name cannot follow a number directly");
    return {whole ? Token::Kind::integer : Token::Kind::number, text_.substr(first, at_ - first), first};
  }

  Token string() {
    const std::size_t first = at_;
    const char quote = text_[at_++];
    std::string contents;
    for (; at_ < text_.size(); ++at_) {
      if (text_[at_] == quote) {
        ++at_;
        return {Token::Kind::text, contents, first};
      }
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      contents += text_[at_];
    }
    fail(place_, text_, first, "this string has no end");
  }

  const std::string& text_;
  const Location& place_;
  std::size_t at_ = 0;
};
}  // namespace

std::vector<Token> tokens_of(const std::string& text, const Location& location) {
  return Lexer(text, location).run();
}

}  // namespace xtape::model
