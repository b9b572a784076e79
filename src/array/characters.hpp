/// Characters in UTF-8 text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace xtape {

/// How many bytes the character at byte `at` has; 0 where no character stands there.
std::size_t character_length(std::string_view text, std::size_t at);

/// The same, but 0 for control characters, too: U+0000 to U+001F, and U+007F to U+009F, which terminals also obey.
std::size_t shown_length(std::string_view text, std::size_t at);

/// The text as a terminal can show it: control characters other than line ends and tabs, and bytes that are not UTF-8,
/// are written as \x1B.
std::string escaped(std::string_view text);

}  // namespace xtape
