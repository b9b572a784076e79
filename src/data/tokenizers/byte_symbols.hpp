/// The characters that represent bytes in GPT-2's files.
#pragma once

#include <cstdint>
#include <string>

namespace xtape {

/// Returns the symbol of a byte in UTF-8. The symbol of a printable Latin-1 character is the character itself. The
/// other bytes have the symbols U+0100 and following, in order ("Ġ" is the space).
const std::string& symbol_of(std::uint8_t byte);

/// Returns the bytes that `symbols` represents, or `symbols` itself if it contains a character that is not a symbol.
std::string bytes_of_symbols(const std::string& symbols);

}  // namespace xtape
