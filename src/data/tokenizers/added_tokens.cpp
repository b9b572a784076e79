#include "data/tokenizers/added_tokens.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "data/tokenizers/published.hpp"
#include "data/tokenizers/utf8.hpp"

namespace xtape {

namespace {
constexpr char32_t none = 0xFFFFFFFF;

/// Returns the character at byte `at` and sets `end` to the byte after it. Returns `none` at the end of the text or if
/// the bytes are not UTF-8.
char32_t character_at(std::string_view text, std::size_t at, std::size_t& end) {
  const std::size_t length = at < text.size() ? character_length(text, at) : 0;
  end = at + length;
  std::size_t zero = 0;
  return length == 0 ? none : next_character(std::string(text.substr(at, length)), zero);
}

/// Returns the character that ends before byte `at`, in the same way.
char32_t character_before(std::string_view text, std::size_t at, std::size_t& begin) {
  for (begin = at; begin > 0 && at - begin < 4;) {
    std::size_t end = 0;
    const char32_t character = character_at(text, --begin, end);
    if (character != none && end == at) return character;
  }
  return none;
}
}  // namespace

void AddedTokens::add(const std::string& text, const AddedToken& token) {
  trie_.add(text, static_cast<std::int32_t>(tokens_.size()));
  tokens_.push_back(token);
}

void AddedTokens::cut(std::string_view text, const std::function<void(std::string_view, std::int32_t)>& visit) const {
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size() && !tokens_.empty();) {
    std::size_t length = 0;
    std::int32_t which = -1;
    if (trie_.begins_with(text[at]))
      trie_.prefixes(text, at, [&](std::size_t found, std::int32_t value) {
        length = found;
        which = value;
      });
    if (which < 0) {
      ++at;
      continue;
    }
    std::size_t begin = at, end = at += length;
    const AddedToken& token = tokens_[static_cast<std::size_t>(which)];
    std::size_t other = 0;
    const auto is_word = [](char32_t character) { return character != none && is_word_character(character); };
    const auto is_space = [](char32_t character) { return character != none && is_white_space(character); };
    if (!token.found) continue;
    if (token.single_word && (is_word(character_before(text, begin, other)) || is_word(character_at(text, end, other))))
      continue;
    while (token.left && begin > done && is_space(character_before(text, begin, other))) begin = other;
    begin = std::max(begin, std::min(done, at));
    while (token.right && is_space(character_at(text, end, other))) end = other;
    if (done < begin) visit(text.substr(done, begin - done), -1);
    visit(text.substr(begin, end - begin), token.token);
    done = end;
  }
  if (done < text.size()) visit(text.substr(done), -1);
}

AddedToken read_added_token(const JsonNode& node, std::int32_t token) {
  AddedToken added;
  added.token = token;
  added.content = node.at("content").text();
  if (added.content.empty()) node.at("content").fail("the text of an added token must not be empty");
  added.special = flag_of(node, "special", false);
  added.found = !added.special;
  added.normalized = flag_of(node, "normalized", !added.special);
  added.single_word = flag_of(node, "single_word", false);
  added.left = flag_of(node, "lstrip", false);
  added.right = flag_of(node, "rstrip", false);
  return added;
}

Json json_of(const AddedToken& added) {
  return {{"id", added.token},
          {"content", added.content},
          {"special", added.special},
          {"normalized", added.normalized},
          {"single_word", added.single_word},
          {"lstrip", added.left},
          {"rstrip", added.right}};
}

void check_added(const AddedToken& added, std::int32_t known, const std::string& piece) {
  const std::string said =
      "the added token " + Json(added.content).dump() + " has the number " + std::to_string(added.token);
  if (added.content.empty()) throw Error(said + ", but no text");
  if (added.token < 0 || added.token >= most_pieces)
    throw Error(said + "; the numbers are 0 to " + std::to_string(most_pieces - 1));
  if (known >= 0 && known != added.token)
    throw Error(said + ", but the vocabulary has it as number " + std::to_string(known));
  if (!piece.empty() && piece != added.content)
    throw Error(said + ", but the vocabulary has this number for " + Json(piece).dump());
}

}  // namespace xtape
