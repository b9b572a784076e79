/// Byte-level byte-pair encoding, shared by the readers of GPT-2's two files and of tokenizer.json.
#pragma once

#include <array>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "pre_tokenizer.hpp"
#include "merges.hpp"

namespace xtape {

/// A cache of words and their tokens. Words of more than 64 bytes rarely recur and are not cached; 2^17 words clear it.
class WordCache {
 public:
  const Tokens* find(std::string_view word) const;
  void add(std::string_view word, const Tokens& tokens);

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, Tokens, Hash, std::equal_to<>> words_;
};

class BytePairs {
 public:
  /// `pieces` are indexed by token and spelled as in the files; "" for an unused token. Throws Error if a byte has no
  /// piece.
  explicit BytePairs(std::vector<std::string> pieces, WordPattern pattern = WordPattern::gpt2());

  /// Adds the merge of the next rank. Throws Error if a piece is not in the vocabulary, or the merge was added before.
  void add_merge(const std::string& left, const std::string& right);
  /// From now on a word that is a piece becomes that piece, without applying merges.
  void take_whole_words() { whole_words_ = true; }
  /// Every occurrence of `text` becomes `token` before the text is split into words.
  void find_in_text(const std::string& text, std::int32_t token) { in_text_.emplace_back(text, token); }

  Tokens encode(std::string_view text) const;
  /// The token of a piece; -1 if there is no such piece.
  std::int32_t token_of(const std::string& piece) const;
  const std::vector<std::string>& pieces() const { return pieces_; }
  /// The bytes of a token.
  const std::string& bytes_of(std::int32_t token) const { return bytes_[token]; }

 private:
  void append(Tokens& tokens, std::string_view text, WordCache& words) const;
  Tokens tokens_of_word(std::string_view word) const;

  std::vector<std::string> pieces_, bytes_;  // by token
  std::unordered_map<std::string, std::int32_t> tokens_;
  std::array<std::int32_t, 256> of_byte_{};
  WordPattern pattern_;
  Merges merges_;
  bool whole_words_ = false;
  std::vector<std::pair<std::string, std::int32_t>> in_text_;
  mutable std::mutex seen_mutex_;
  mutable WordCache seen_;
};

}  // namespace xtape
