/// WordPiece, the pieces of BERT.
#pragma once

#include "data/tokenizers/trie.hpp"
#include "data/tokenizers/word_model.hpp"

namespace xtape {

/// Splits a word into pieces. The first piece is the longest piece with which the word begins. The rest is split in the
/// same way, into pieces with a prefix (Devlin et al., 2019, "BERT"). A word becomes one unknown token if the word is
/// too long, or if the word or a rest does not begin with any piece.
class WordPieces : public WordModel {
 public:
  WordPieces(Vocabulary vocabulary, std::int32_t unknown, const std::string& prefix, std::int64_t longest);
  Tokens tokens_of_word(std::string_view word) const override;

 private:
  Trie trie_;
  std::int64_t rest_;  // the trie node of the prefix, or -1 if no piece has the prefix
  std::int64_t longest_;
};

}  // namespace xtape
