#include <array>
#include <unordered_map>

#include "data/tokenizers/unicode.hpp"
#include "data/tokenizers/utf8.hpp"

namespace xtape {

namespace {

struct Symbols {
  std::array<std::string, 256> of_byte;
  std::unordered_map<char32_t, char> byte_of;

  Symbols() {
    char32_t further = 0x100;
    for (char32_t byte = 0; byte < 256; ++byte) {
      const bool printed = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
      const char32_t symbol = printed ? byte : further++;
      append_character(of_byte[byte], symbol);
      byte_of.emplace(symbol, static_cast<char>(byte));
    }
  }
};

const Symbols& symbols_of_all() {
  static const Symbols symbols;
  return symbols;
}

}  // namespace

const std::string& symbol_of(std::uint8_t byte) {
  return symbols_of_all().of_byte[byte];
}

std::string bytes_of_symbols(const std::string& symbols) {
  const auto& byte_of = symbols_of_all().byte_of;
  std::string bytes;
  for (std::size_t at = 0; at < symbols.size();) {
    const auto found = byte_of.find(next_character(symbols, at));
    if (found == byte_of.end()) return symbols;
    bytes += found->second;
  }
  return bytes;
}

}  // namespace xtape
