#include "base/files/encodings.hpp"
#include "base/messages/wording.hpp"
#include "data/tokenizers/normalizers.hpp"
#include "data/tokenizers/unicode.hpp"
#include "xtape/error.hpp"

namespace xtape {

Charsmap::Charsmap(const std::string& base64) {
  const std::optional<std::string> decoded = from_base64(base64);
  if (!decoded) throw Error("the map of characters is not base64");
  const std::string& bytes = *decoded;
  const auto word = [&](std::size_t at) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) value |= std::uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
    return value;
  };
  const std::size_t size = bytes.size() < 4 ? 0 : word(0);
  if (bytes.size() < 4 || size % 4 != 0 || size > bytes.size() - 4)
    throw Error("the map of characters has " + std::to_string(bytes.size()) + " bytes, and its trie says " +
                std::to_string(size) + ": a multiple of 4 that is at most the number of bytes after it");
  for (std::size_t at = 4; at < 4 + size; at += 4) units_.push_back(word(at));
  texts_ = bytes.substr(4 + size);
}

std::uint32_t Charsmap::unit(std::size_t at) const {
  if (at >= units_.size()) throw Error("the map of characters refers outside its trie");
  return units_[at];
}

const char* Charsmap::replacement(std::string_view key) const {
  const auto offset_of = [](std::uint32_t unit) { return std::size_t{unit >> 10} << ((unit & 1U << 9) >> 6); };
  if (units_.empty()) return nullptr;
  std::size_t node = offset_of(unit(0));
  for (const char each : key) {
    const auto byte = static_cast<unsigned char>(each);
    if (byte == 0) return nullptr;
    node ^= byte;
    if (node >= units_.size()) return nullptr;
    const std::uint32_t here = unit(node);
    if ((here & (1U << 31 | 0xFFU)) != byte) return nullptr;
    node ^= offset_of(here);
    if ((here >> 8 & 1U) == 0) continue;
    const std::uint32_t at = unit(node) & ~(1U << 31);
    if (at >= texts_.size()) throw Error("the map of characters refers outside its replacements");
    return texts_.c_str() + at;
  }
  return nullptr;
}

std::string Charsmap::applied(const std::string& text) const {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = grapheme_end(text, at);
    if (end - at < 6) {
      if (const char* found = replacement(std::string_view(text).substr(at, end - at))) {
        result += found;
        at = end;
        continue;
      }
    }
    while (at < end) {
      const std::string_view one = std::string_view(text).substr(at, character_length(text, at));
      const char* found = replacement(one);
      if (found != nullptr)
        result += found;
      else
        result += one;
      at += one.size();
    }
  }
  return result;
}

}  // namespace xtape
