/// The characters by which GPT-2's files write bytes.
#pragma once

#include <cstdint>
#include <string>

namespace xtape {

/// The symbol of a byte, as UTF-8: the character of that number where Latin-1 prints one, for the others those from
/// U+0100 on, in order ("Ġ" is the space).
const std::string& symbol_of(std::uint8_t byte);

/// The bytes that the symbols of a text stand for; the text itself where a character in it is none of them.
std::string bytes_of_symbols(const std::string& symbols);

}  // namespace xtape
