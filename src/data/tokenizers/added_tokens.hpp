/// Tokens that a folder adds to the vocabulary of its tokenizer. The tokenizer finds them in texts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json_text.hpp"
#include "data/tokenizers/normalizers.hpp"
#include "data/tokenizers/trie.hpp"
#include "xtape/tokenizers.hpp"

namespace xtape {

// The special tokens. If a vocabulary has them, it begins with them, in this order and with these names.

inline constexpr std::int32_t pad_token = 0;
inline constexpr std::int32_t unknown_token = 1;
inline constexpr std::int32_t start_token = 2;
inline constexpr std::int32_t end_token = 3;
inline constexpr std::int32_t special_token_count = 4;

inline constexpr const char* pad_name = "<pad>";
inline constexpr const char* unknown_name = "<unk>";
inline constexpr const char* start_name = "<s>";
inline constexpr const char* end_name = "</s>";

/// Finds the texts of tokens in a text. The leftmost match wins. If several matches begin there, the longest wins.
class AddedTokens {
 public:
  void add(const std::string& text, const AddedToken& token);
  /// Visits the parts of `text` in order: tokens as (part, token), and the text between them as (part, -1).
  void cut(std::string_view text, const std::function<void(std::string_view, std::int32_t)>& visit) const;

 private:
  Trie trie_;
  std::vector<AddedToken> tokens_;
};

/// Reads the entry of an added token, whose number is `token`.
AddedToken read_added_token(const JsonNode& node, std::int32_t token);
/// Returns the entry, with its number.
Json json_of(const AddedToken& added);

/// Throws Error if the token contradicts a vocabulary, which gives the number `known` (-1: none) to the text of the
/// token, and the text `piece` ("": none) to its number. Throws Error if the token has no text, or its number is out of
/// range.
void check_added(const AddedToken& added, std::int32_t known, const std::string& piece);

}  // namespace xtape
