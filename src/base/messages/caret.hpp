/// Text in messages. Replaces unprintable characters, and puts a caret under the location of an error.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace xtape {

/// Returns `text` on one line with one column per character. Tabs and line ends become a blank. Other control
/// characters, and bytes that are not UTF-8, become the replacement character U+FFFD.
std::string printable(std::string_view text);

/// Returns `text` on one line and a caret under byte `column` on the next line, both indented. A long text is cut to 80
/// bytes on either side of the caret.
std::string with_caret(std::string_view text, std::size_t column);

}  // namespace xtape
