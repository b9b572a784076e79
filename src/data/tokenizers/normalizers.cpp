#include "data/tokenizers/normalizers.hpp"

#include <algorithm>
#include <memory>

#include "base/bytes/encodings.hpp"
#include "base/messages/wording.hpp"
#include "data/tokenizers/published.hpp"
#include "data/tokenizers/utf8.hpp"
#include "data/tokenizers/word_pattern.hpp"
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

namespace {
/// Applies `each` to every character of a text and returns the concatenated results. See Normalizer for `first`.
template <class Each>
std::string by_character(const std::string& text, bool& first, const Each& each) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    each(result, next_character(text, at));
    first = first && !result.empty();
  }
  return result;
}

std::string without(const std::string& text, bool& first, bool (*removed)(char32_t)) {
  return by_character(text, first, [&](std::string& result, char32_t character) {
    if (!removed(character)) append_character(result, character);
  });
}

std::string stripped(const std::string& text, bool& first, bool left, bool right) {
  std::size_t begin = text.size(), end = 0;  // the range without white space at the ends
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t here = at;
    if (is_white_space(next_character(text, at))) continue;
    begin = std::min(begin, here);
    end = at;
  }
  if (begin >= end) return left || right ? "" : text;
  if (!left) begin = 0;
  if (!right) end = text.size();
  first = first && begin == 0;
  return text.substr(begin, end - begin);
}

/// Removes control characters, and replaces each white-space character by a space.
std::string cleaned(const std::string& text, bool& first) {
  return by_character(text, first, [](std::string& result, char32_t c) {
    const bool line = c == '\t' || c == '\n' || c == '\r';
    if (c == 0 || c == replacement_character || (!line && is_other(c))) return;
    append_character(result, is_white_space(c) ? U' ' : c);
  });
}

/// Returns whether the character is in one of the blocks that BERT treats as Chinese characters.
bool is_chinese(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

std::string spaced_chinese(const std::string& text, bool& first) {
  return by_character(text, first, [](std::string& result, char32_t character) {
    const bool apart = is_chinese(character);
    if (apart) result += ' ';
    append_character(result, character);
    if (apart) result += ' ';
  });
}

std::string in_lower_case(const std::string& text, bool& first) {
  return by_character(text, first, append_lower_case);
}

/// Replaces the matches of a pattern. A replacement stems from the last character of its match.
std::string replaced(const std::string& text, bool& first, const WordPattern& pattern, const std::string& with) {
  std::string result;
  pattern.cut(text, [&](const Span& span) {
    result += span.matched ? with : text.substr(span.begin, span.end - span.begin);
    if (span.matched && span.begin == 0 && span.end > (with.empty() ? 0 : character_length(text, 0))) first = false;
  });
  return result;
}

void add_bert(std::vector<Normalizer>& all, const JsonNode& node) {
  const bool lower = flag_of(node, "lowercase", true);
  if (flag_of(node, "clean_text", true)) all.emplace_back(cleaned);
  if (flag_of(node, "handle_chinese_chars", true)) all.emplace_back(spaced_chinese);
  if (flag_of(node, "strip_accents", lower))
    all.emplace_back([](const std::string& text, bool& first) {
      return without(normal_form(text, {false, false}), first, is_nonspacing_mark);
    });
  if (lower) all.emplace_back(in_lower_case);
}

void add(std::vector<Normalizer>& all, const JsonNode& node) {
  const std::string& type = node.at("type").text();
  const auto form = [&](bool compatible, bool composed) {
    all.emplace_back([=](const std::string& text, bool&) { return normal_form(text, {compatible, composed}); });
  };
  if (type == "NFC") return form(false, true);
  if (type == "NFD") return form(false, false);
  if (type == "NFKC") return form(true, true);
  if (type == "NFKD") return form(true, false);
  if (type == "Lowercase") return void(all.emplace_back(in_lower_case));
  if (type == "StripAccents")
    return void(all.emplace_back([](const std::string& text, bool& first) { return without(text, first, is_mark); }));
  if (type == "BertNormalizer") return add_bert(all, node);
  if (type == "Strip") {
    const bool left = flag_of(node, "strip_left", true), right = flag_of(node, "strip_right", true);
    all.emplace_back([=](const std::string& text, bool& first) { return stripped(text, first, left, right); });
  } else if (type == "Replace") {
    all.emplace_back([pattern = read_pattern(node.at("pattern")), with = node.at("content").text()](
                         const std::string& text, bool& first) { return replaced(text, first, pattern, with); });
  } else if (type == "Prepend") {
    all.emplace_back([start = node.at("prepend").text()](const std::string& text, bool&) {
      return text.empty() ? text : start + text;
    });
  } else if (type == "Precompiled") {
    const JsonNode map = node.at("precompiled_charsmap");
    if (map.is_null() || map.text().empty()) return;
    const auto charsmap = at_node(map, [&] { return std::make_shared<const Charsmap>(map.text()); });
    all.emplace_back([charsmap](const std::string& text, bool&) { return charsmap->applied(text); });
  } else {
    refuse_type(node, "the normalizer",
                "BertNormalizer, Lowercase, NFC, NFD, NFKC, NFKD, Precompiled, Prepend, Replace, Sequence, Strip, "
                "StripAccents");
  }
}
}  // namespace

std::vector<Normalizer> read_normalizers(const JsonNode& node) {
  std::vector<Normalizer> all;
  for (const JsonNode& part : parts_of(node, "normalizers")) add(all, part);
  return all;
}

}  // namespace xtape
