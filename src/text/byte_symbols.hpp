/// The characters that represent bytes in GPT-2's files.
#pragma once

#include <cstdint>
#include <string>

namespace xtape {

/// The symbol of a byte, in UTF-8. A byte that is a printable Latin-1 character is that character; the other bytes are
/// U+0100 and following, in order ("Ġ" is the space).
const std::string& symbol_of(std::uint8_t byte);

/// The bytes that `symbols` represents; `symbols` itself if it contains a character that is not a symbol.
std::string bytes_of_symbols(const std::string& symbols);

}  // namespace xtape
