#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "data/tokenizers/added_tokens.hpp"
#include "data/tokenizers/utf8.hpp"
#include "xtape/error.hpp"
#include "xtape/tokenizers.hpp"

namespace xtape {

CharacterTokenizer::CharacterTokenizer(const std::string& text, Unknown unknown, bool special_tokens)
    : unknown_(unknown), special_tokens_(special_tokens) {
  std::vector<bool> seen;  // by code point, up to the largest code point so far
  for (std::size_t at = 0; at < text.size();) {
    const char32_t character = next_character(text, at);
    if (character >= seen.size()) seen.resize(character + 1);
    seen[character] = true;
  }
  for (char32_t c = 0; c < seen.size(); ++c)
    if (seen[c]) characters_.push_back(c);
}

CharacterTokenizer::CharacterTokenizer(const std::vector<std::string>& lines, Unknown unknown, bool special_tokens)
    : CharacterTokenizer(std::accumulate(lines.begin(), lines.end(), std::string()), unknown, special_tokens) {}

std::int32_t CharacterTokenizer::first() const {
  return special_tokens_ ? special_token_count : 0;
}

std::int32_t CharacterTokenizer::pad() const {
  return special_tokens_ ? pad_token : -1;
}

std::int32_t CharacterTokenizer::unknown() const {
  if (special_tokens_) return unknown_token;
  return unknown_ == Unknown::token ? static_cast<std::int32_t>(characters_.size()) : -1;
}

std::int32_t CharacterTokenizer::start() const {
  return special_tokens_ ? start_token : -1;
}

std::int32_t CharacterTokenizer::end() const {
  return special_tokens_ ? end_token : -1;
}

std::int64_t CharacterTokenizer::size() const {
  const bool one_more = unknown_ == Unknown::token && !special_tokens_;
  return first() + std::ssize(characters_) + (one_more ? 1 : 0);
}

Tokens CharacterTokenizer::encode(const std::string& text) const {
  Tokens tokens;
  tokens.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t place = at;
    const char32_t character = next_character(text, at);
    const auto found = std::lower_bound(characters_.begin(), characters_.end(), character);
    if (found != characters_.end() && *found == character) {
      tokens.push_back(first() + static_cast<std::int32_t>(found - characters_.begin()));
    } else if (unknown_ == Unknown::token) {
      tokens.push_back(unknown());
    } else {
      throw Error("character " + describe_character(character) + " at byte " + std::to_string(place) +
                  " is not among the " + std::to_string(characters_.size()) +
                  " characters of the tokenizer, which come from the training text");
    }
  }
  return tokens;
}

std::string CharacterTokenizer::decode(const Tokens& tokens) const {
  std::string text;
  for (const std::int32_t token : tokens) {
    check_token(token);
    if (token == unknown()) {
      append_character(text, replacement_character);
    } else if (token >= first()) {
      append_character(text, characters_[token - first()]);
    }
  }
  return text;
}

std::string CharacterTokenizer::to_json() const {
  std::string characters;
  for (const char32_t c : characters_) append_character(characters, c);
  nlohmann::ordered_json json = {
      {"xtape", 1}, {"kind", "character"}, {"unknown", unknown_ == Unknown::token ? "token" : "error"}};
  if (special_tokens_) json["special_tokens"] = true;
  json["characters"] = characters;
  return json.dump(2) + "\n";
}

}  // namespace xtape
