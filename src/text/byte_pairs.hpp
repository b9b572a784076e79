/// Byte-pair encoding, of bytes or of characters.
#pragma once

#include <string>
#include <string_view>

#include "merges.hpp"
#include "word_model.hpp"

namespace xtape {

struct BytePairOptions {
  bool by_bytes = false;       ///< Words are made of bytes, and pieces are written with their symbols.
  bool whole_words = false;    ///< A word that is a piece becomes that piece, without applying merges.
  bool byte_fallback = false;  ///< Characters that are not pieces become the pieces of their bytes.
  bool fuse_unknown = false;   ///< Neighbouring unknown characters are one token.
  std::int32_t unknown = -1;   ///< The token of other characters; -1: they are left out.
  std::string prefix = {};     ///< Begins pieces of characters that do not begin a word.
  std::string suffix = {};     ///< Ends pieces of characters that end a word.
};

class BytePairs : public WordModel {
 public:
  /// Throws Error if words are made of bytes and a byte has no piece.
  BytePairs(Vocabulary vocabulary, BytePairOptions options);
  /// Adds the merge of the next rank. Throws Error if a piece is not in the vocabulary, or the merge was added before.
  void add_merge(const std::string& left, const std::string& right);
  Tokens tokens_of_word(std::string_view word) const override;

 private:
  Tokens characters_of(std::string_view word) const;

  BytePairOptions options_;
  Merges merges_;
};

}  // namespace xtape
