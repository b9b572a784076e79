/// Words of messages.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace xtape {

// Whether a list contains a value.

template <class List, class Value>
bool contains(const List& list, const Value& value) {
  return std::find(std::begin(list), std::end(list), value) != std::end(list);
}

// Lists in messages.

/// Returns "a, b, c": the texts of the elements of a list.
template <class List, class Text = std::identity>
std::string joined(const List& list, const Text& text = {}, const char* between = ", ") {
  std::string all;
  bool first = true;
  for (const auto& each : list) {
    if (!first) all += between;
    all += std::invoke(text, each);
    first = false;
  }
  return all;
}

/// "a, b, …": like joined, but at most the first `most` elements of a list.
template <class List>
std::string joined_first(const List& list, std::size_t most) {
  if (list.size() <= most) return joined(list);
  return joined(std::span(list).first(most)) + ", …";
}

// Lists of words in one text, and words without regard to case.

/// Whether `word` is one of the `words`, which single spaces separate.
inline bool is_one_of(const std::string& words, const std::string& word) {
  return word.find(' ') == std::string::npos && (" " + words + " ").find(" " + word + " ") != std::string::npos;
}

/// Returns the text with its ASCII letters in lower case.
inline std::string with_ascii_in_lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return text;
}

// Finds the valid name that is nearest to an unknown name, for error messages.

/// Returns the name in `names` with the smallest edit distance to `name`, or the first of several such names. Considers
/// only names that differ from `name` in at most a third of the letters, or that begin with `name`. Returns "" if there
/// is none.
std::string nearest(const std::string& name, const std::vector<std::string>& names);

/// "; did you mean 'weight'?", or "" if `nearest` finds no name.
std::string did_you_mean(const std::string& name, const std::vector<std::string>& names);

// Characters in UTF-8 text.

/// The byte-order mark of UTF-8. Readers of text skip it at the beginning of a file.
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

/// Returns "UTF-16" or "UTF-32" if the text begins with the byte-order mark of this encoding, otherwise nullptr.
const char* other_encoding(std::string_view text);

/// Returns the number of bytes of the character that begins at byte `at`, or 0 if no valid character begins there.
std::size_t character_length(std::string_view text, std::size_t at);

/// Like character_length, but also returns 0 for control characters: U+0000 to U+001F, and U+007F to U+009F, which
/// terminals also interpret.
std::size_t shown_length(std::string_view text, std::size_t at);

/// Returns the text in a form that a terminal can show. Control characters other than line ends and tabs, and bytes
/// that are not UTF-8, become escapes such as \x1B.
std::string escaped(std::string_view text);

// Text in messages. Replaces unprintable characters, and puts a caret under the location of an error.

/// Returns `text` on one line with one column per character. Tabs and line ends become a blank. Other control
/// characters, and bytes that are not UTF-8, become the replacement character U+FFFD.
std::string printable(std::string_view text);

/// Returns `text` on one line and a caret under byte `column` on the next line, both indented. A long text is cut to 80
/// bytes on either side of the caret.
std::string with_caret(std::string_view text, std::size_t column);

}  // namespace xtape
