/// WordPiece, the pieces of BERT.
#pragma once

#include "trie.hpp"
#include "word_model.hpp"

namespace xtape {

/// A word becomes the longest piece that it begins with, and so on for its rest, whose pieces have a prefix (Devlin et
/// al., 2019, "BERT"). A word that is too long or has a rest without a piece is one unknown token.
class WordPieces : public WordModel {
 public:
  WordPieces(Vocabulary vocabulary, std::int32_t unknown, const std::string& prefix, std::int64_t longest);
  Tokens tokens_of_word(std::string_view word) const override;

 private:
  Trie trie_;
  std::int64_t rest_;  // the node of the prefix; -1: no piece has it
  std::int64_t longest_;
};

}  // namespace xtape
