// A line of the expression language.
#include <cstring>

#include "model/language/syntax.hpp"
#include "target.hpp"

namespace xtape::fuzz {

namespace {
bool same(const model::Expression& a, const model::Expression& b) {
  if (a.form != b.form || a.text != b.text || a.children.size() != b.children.size() ||
      a.keywords.size() != b.keywords.size() || a.targets.size() != b.targets.size())
    return false;
  for (std::size_t i = 0; i < a.targets.size(); ++i)
    if (a.targets[i].name != b.targets[i].name) return false;
  if (a.form == model::Form::comprehension && a.integer != b.integer) return false;
  for (std::size_t i = 0; i < a.children.size(); ++i)
    if (!same(a.children[i], b.children[i])) return false;
  for (std::size_t i = 0; i < a.keywords.size(); ++i)
    if (a.keywords[i].name != b.keywords[i].name || !same(a.keywords[i].value, b.keywords[i].value)) return false;
  return true;
}
}  // namespace

void expression(Input input) {
  const model::Location place{"f", "", 1};
  const auto read = [&](const std::string& text, bool may_assign) {
    return model::parse_line(text, place, may_assign);
  };
  const auto line = accepted([&] { return read(std::string(input), true); });
  if (!line) return;
  const std::string text = model::to_source(line->value);
  const auto again = accepted([&] {
    try {
      return read(text, false);
    } catch (const Error& error) {  // the written line has more parentheses and may be nested too deeply
      require(std::strstr(error.what(), "nested more than") != nullptr, "an expression that is written can be read");
      throw;
    }
  });
  if (!again) return;
  require(same(again->value, line->value), "an expression that is written and read is the same");
  require(model::to_source(again->value) == text, "an expression that is written and read is written the same way");
}

}  // namespace xtape::fuzz
