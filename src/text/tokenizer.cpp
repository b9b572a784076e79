#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "utf8.hpp"
#include "xtape/text.hpp"

namespace xtape {

namespace {
constexpr char32_t replacement = 0xFFFD;  // how an unknown character is shown
}

std::string read_text(const std::string& path) {
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  in.peek();  // where the path is a directory, it opens, and reading fails
  if (!in.is_open() || in.bad())
    throw FileError("cannot read " + path + ": " + std::strerror(errno != 0 ? errno : EIO));
  std::ostringstream text;
  if (!in.eof()) text << in.rdbuf();
  return text.str();
}

CharacterTokenizer::CharacterTokenizer(const std::string& text, Unknown unknown) : unknown_(unknown) {
  std::vector<bool> seen(0x110000);
  for (std::size_t at = 0; at < text.size();) seen[next_character(text, at)] = true;
  for (char32_t c = 0; c < seen.size(); ++c)
    if (seen[c]) characters_.push_back(c);
}

std::int64_t CharacterTokenizer::size() const {
  return static_cast<std::int64_t>(characters_.size()) + (unknown_ == Unknown::token ? 1 : 0);
}

Tokens CharacterTokenizer::encode(const std::string& text) const {
  Tokens tokens;
  tokens.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t place = at;
    const char32_t character = next_character(text, at);
    const auto found = std::lower_bound(characters_.begin(), characters_.end(), character);
    if (found != characters_.end() && *found == character) {
      tokens.push_back(static_cast<std::int32_t>(found - characters_.begin()));
    } else if (unknown_ == Unknown::token) {
      tokens.push_back(static_cast<std::int32_t>(characters_.size()));
    } else {
      throw Error("character " + describe_character(character) + " at byte " + std::to_string(place) +
                  " is not among the " + std::to_string(characters_.size()) +
                  " characters that the tokenizer knows from the training text");
    }
  }
  return tokens;
}

std::string CharacterTokenizer::decode(const Tokens& tokens) const {
  std::string text;
  for (const std::int32_t token : tokens) {
    if (token < 0 || token >= size())
      throw Error("token " + std::to_string(token) + " is outside the vocabulary of " + std::to_string(size()));
    const auto place = static_cast<std::size_t>(token);
    append_character(text, place < characters_.size() ? characters_[place] : replacement);
  }
  return text;
}

std::string CharacterTokenizer::to_json() const {
  std::string characters;
  for (const char32_t c : characters_) append_character(characters, c);
  const nlohmann::ordered_json json = {{"xtape", 1},
                                       {"kind", "character"},
                                       {"unknown", unknown_ == Unknown::token ? "token" : "error"},
                                       {"characters", characters}};
  return json.dump(2) + "\n";
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path) {
  const std::string text = read_text(path);
  try {
    const auto json = nlohmann::json::parse(text);
    const std::string kind = json.at("kind");
    if (kind != "character") throw FileError(path + ": tokenizer kind '" + kind + "' is not known; known: character");
    const std::string unknown = json.at("unknown");
    if (unknown != "error" && unknown != "token")
      throw FileError(path + ": \"unknown\" is \"error\" or \"token\", not \"" + unknown + "\"");
    return std::make_unique<CharacterTokenizer>(
        json.at("characters").get<std::string>(),
        unknown == "token" ? CharacterTokenizer::Unknown::token : CharacterTokenizer::Unknown::error);
  } catch (const nlohmann::json::exception& error) {
    throw FileError(path + " is not a tokenizer: " + error.what());
  }
}

}  // namespace xtape
