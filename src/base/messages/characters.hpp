/// Characters in UTF-8 text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace xtape {

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

}  // namespace xtape
