#include "base/messages/wording.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "xtape/named.hpp"

namespace xtape {

namespace {
/// Returns the number of letters that are missing, surplus, replaced, or swapped with the next letter.
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> above_that(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(above_that, above);
    std::swap(above, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j - 1] + (a[i - 1] != b[j - 1]), above[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], above_that[j - 2] + 1);
    }
  }
  return row.back();
}

/// Returns whether `name` may be a misspelling of `each`. Up to a third of the letters may be wrong. A short name may
/// have one error. A name of three or more letters may also be the beginning of `each`. A name of one letter is never a
/// misspelling of another letter.
bool may_mean(const std::string& name, const std::string& each, std::size_t distance) {
  constexpr std::size_t beginning = 3;
  return distance <= (std::max(name.size(), each.size()) + 1) / 3 ||
         (name.size() >= beginning && each.compare(0, name.size(), name) == 0);
}
}  // namespace

std::string nearest(const std::string& name, const std::vector<std::string>& names) {
  constexpr std::size_t longest = 200;  // longer texts are not names
  std::string best;
  if (name.size() > longest) return best;
  std::size_t least = longest + 1;
  for (const std::string& each : names) {
    if (each.size() > longest) continue;
    const std::size_t distance = edit_distance(name, each);
    if (distance < least && may_mean(name, each, distance)) {
      least = distance;
      best = each;
    }
  }
  return best;
}

std::string did_you_mean(const std::string& name, const std::vector<std::string>& names) {
  const std::string best = nearest(name, names);
  return best.empty() ? "" : "; did you mean '" + best + "'?";
}

void throw_no_such_name(const char* kind, const std::string& name, const std::vector<std::string>& names) {
  throw Error(std::string("there is no ") + kind + " '" + name + "'" + did_you_mean(name, names));
}

namespace {
/// Returns whether the byte at `at` is a continuation byte of a UTF-8 character.
bool continues(std::string_view text, std::size_t at) {
  return at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U;
}
}  // namespace

std::string printable(std::string_view text) {
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = shown_length(text, at);
    const char c = text[at];
    if (length > 0)
      shown += text.substr(at, length);
    else
      shown += c == '\t' || c == '\n' || c == '\r' ? " " : "\xEF\xBF\xBD";
    at += std::max<std::size_t>(length, 1);
  }
  return shown;
}

std::string with_caret(std::string_view text, std::size_t column) {
  constexpr std::size_t around = 80;
  column = std::min(column, text.size());
  std::size_t first = column > around ? column - around : 0;
  std::size_t last = std::min(text.size(), column + around);
  while (first > 0 && first < column && continues(text, first)) ++first;
  while (last < text.size() && continues(text, last)) ++last;
  std::string spaces(first > 0 ? 1 : 0, ' ');
  for (const char c : printable(text.substr(first, column - first)))
    if ((static_cast<unsigned char>(c) & 0xC0U) != 0x80U) spaces += ' ';
  const std::string before = first > 0 ? "…" : "", after = last < text.size() ? "…" : "";
  return "    " + before + printable(text.substr(first, last - first)) + after + "\n    " + spaces + "^";
}

}  // namespace xtape
