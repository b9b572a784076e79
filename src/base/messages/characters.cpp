#include <cstdio>

#include "base/messages/wording.hpp"
#include "xtape/error.hpp"

namespace xtape {

const char* other_encoding(std::string_view text) {
  using namespace std::string_view_literals;
  if (text.starts_with("\xFF\xFE\0\0"sv) || text.starts_with("\0\0\xFE\xFF"sv)) return "UTF-32";
  return text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF") ? "UTF-16" : nullptr;
}

std::size_t character_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char lead = byte(0);
  const std::size_t length = lead < 0x80                   ? 1
                             : lead >= 0xC2 && lead < 0xE0 ? 2
                             : (lead & 0xF0) == 0xE0       ? 3
                             : lead >= 0xF0 && lead < 0xF5 ? 4
                                                           : 0;
  if (at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  // Rejects overlong forms, surrogates, and code points above U+10FFFF.
  if (lead == 0xE0 && byte(1) < 0xA0) return 0;
  if (lead == 0xED && byte(1) >= 0xA0) return 0;
  if (lead == 0xF0 && byte(1) < 0x90) return 0;
  if (lead == 0xF4 && byte(1) >= 0x90) return 0;
  return length;
}

std::size_t shown_length(std::string_view text, std::size_t at) {
  const std::size_t length = character_length(text, at);
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const bool control =
      length == 1 ? byte(0) < 0x20 || byte(0) == 0x7F : length == 2 && byte(0) == 0xC2 && byte(1) < 0xA0;
  return control ? 0 : length;
}

std::string escaped(std::string_view text) {
  std::string shown;
  shown.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = text[at] == '\n' || text[at] == '\t' ? 1 : shown_length(text, at);
    if (length > 0) {
      shown.append(text, at, length);
      at += length;
    } else {
      char code[8];
      std::snprintf(code, sizeof code, "\\x%02X", static_cast<unsigned>(static_cast<unsigned char>(text[at])));
      shown += code;
      ++at;
    }
  }
  return shown;
}

}  // namespace xtape
