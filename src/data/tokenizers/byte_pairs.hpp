/// Byte-pair encoding of bytes or characters.
#pragma once

#include <string>
#include <string_view>

#include "data/tokenizers/merges.hpp"
#include "data/tokenizers/word_model.hpp"

namespace xtape {

struct BytePairOptions {
  bool by_bytes = false;       ///< Whether words consist of bytes. Pieces are then written with byte symbols.
  bool whole_words = false;    ///< Whether a word that is a piece becomes this piece without merges.
  bool byte_fallback = false;  ///< Whether characters that are not pieces become the pieces of their bytes.
  bool fuse_unknown = false;   ///< Whether neighbouring unknown characters are one token.
  std::int32_t unknown = -1;   ///< The token of unknown characters. If it is -1, these characters are left out.
  std::string prefix = {};     ///< The beginning of pieces for characters that do not begin a word.
  std::string suffix = {};     ///< The end of pieces for characters that end a word.
};

class BytePairs : public WordModel {
 public:
  /// Throws Error if words consist of bytes and a byte has no piece.
  BytePairs(Vocabulary vocabulary, BytePairOptions options);
  /// Adds the merge of the next rank. Throws Error if a piece is not in the vocabulary, or if the merge was already
  /// added.
  void add_merge(const std::string& left, const std::string& right);
  Tokens tokens_of_word(std::string_view word) const override;

 private:
  Tokens characters_of(std::string_view word) const;

  BytePairOptions options_;
  Merges merges_;
};

}  // namespace xtape
