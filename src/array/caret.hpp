/// Text in messages: what cannot be shown as it is, and a caret under the place that an error is about.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace xtape {

/// `text` on one line, a column a character: white space is a blank, other control characters and bytes that are not
/// UTF-8 are the replacement character.
std::string printable(std::string_view text);

/// `text` on one line and a caret under byte `column` on the next, both indented. Of a long text, what is near the
/// caret.
std::string with_caret(std::string_view text, std::size_t column);

}  // namespace xtape
