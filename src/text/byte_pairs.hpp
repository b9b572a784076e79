/// Byte-level byte-pair encoding: what GPT-2's two files and a tokenizer.json have in common.
#pragma once

#include <array>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gpt2_words.hpp"
#include "merges.hpp"

namespace xtape {

/// Tokens of words that have been seen. Long words come seldom again, and are left out.
class SeenWords {
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
  /// `pieces` by token, as the files write them; a number that is none has "". Throws Error where the piece of a byte
  /// is missing.
  explicit BytePairs(std::vector<std::string> pieces, WordPattern pattern = WordPattern::gpt2());

  /// The next merge. Throws Error where the vocabulary has no such pieces, or the merge is there already.
  void add_merge(const std::string& left, const std::string& right);
  /// Words that are pieces become them, whatever the merges say.
  void take_whole_words() { whole_words_ = true; }
  /// `text`, wherever it stands, becomes `token` before anything is cut.
  void find_in_text(const std::string& text, std::int32_t token) { in_text_.emplace_back(text, token); }

  Tokens encode(std::string_view text) const;
  /// The token of a piece; -1 where it is none.
  std::int32_t token_of(const std::string& piece) const;
  const std::vector<std::string>& pieces() const { return pieces_; }
  /// The bytes that a token stands for.
  const std::string& bytes_of(std::int32_t token) const { return bytes_[static_cast<std::size_t>(token)]; }

 private:
  void append(Tokens& tokens, std::string_view text, SeenWords& words) const;
  Tokens tokens_of_word(std::string_view word) const;

  std::vector<std::string> pieces_, bytes_;  // by token
  std::unordered_map<std::string, std::int32_t> tokens_;
  std::array<std::int32_t, 256> of_byte_{};
  WordPattern pattern_;
  Merges merges_;
  bool whole_words_ = false;
  std::vector<std::pair<std::string, std::int32_t>> in_text_;
  mutable std::mutex seen_mutex_;
  mutable SeenWords seen_;
};

}  // namespace xtape
