/// Characters in UTF-8 text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace xtape {

/// The number of bytes of the character that begins at byte `at`; 0 if no valid character begins there.
std::size_t character_length(std::string_view text, std::size_t at);

/// As character_length, but also 0 for control characters: U+0000 to U+001F, and U+007F to U+009F, which terminals also
/// interpret.
std::size_t shown_length(std::string_view text, std::size_t at);

/// The text with control characters other than line ends and tabs, and bytes that are not UTF-8, written in the form
/// \x1B, so that a terminal can show it.
std::string escaped(std::string_view text);

}  // namespace xtape
