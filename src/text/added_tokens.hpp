/// Tokens that a tokenizer.json adds to the vocabulary of its model. The tokenizer finds them in texts.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "json_text.hpp"
#include "normalizers.hpp"
#include "trie.hpp"
#include "xtape/tokenizers.hpp"

namespace xtape {

struct AddedToken {
  std::string content;
  std::int32_t token;
  bool special = false;      ///< Whether decoding leaves the token out.
  bool found = true;         ///< Whether the token is found in texts. If not, its text is ordinary text.
  bool single_word = false;  ///< Whether it is found only where no letter or digit is next to it.
  bool left = false;         ///< Whether a match includes the white space before it.
  bool right = false;        ///< Whether a match includes the white space after it.
};

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

AddedToken read_added_token(const JsonNode& node);

}  // namespace xtape
