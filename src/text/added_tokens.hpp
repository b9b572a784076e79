/// Tokens that a tokenizer.json adds to the vocabulary of its model, and finds in texts.
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
  bool special = false;      ///< Not written when tokens are decoded.
  bool found = true;         ///< Found in texts. Special tokens are ordinary text there.
  bool single_word = false;  ///< Found only where no letter or digit is beside it.
  bool left = false;         ///< Takes the white space before it.
  bool right = false;        ///< Takes the white space after it.
};

/// Finds the texts of tokens in a text: the leftmost, of those the longest.
class AddedTokens {
 public:
  void add(const std::string& text, const AddedToken& token);
  /// Visits the parts of `text` in order: tokens (part, token), and what is between them (part, -1).
  void cut(std::string_view text, const std::function<void(std::string_view, std::int32_t)>& visit) const;

 private:
  Trie trie_;
  std::vector<AddedToken> tokens_;
};

AddedToken read_added_token(const JsonNode& node);

}  // namespace xtape
