/// A unigram language model of pieces.
#pragma once

#include <vector>

#include "data/tokenizers/trie.hpp"
#include "data/tokenizers/word_model.hpp"

namespace xtape {

/// Splits a word into the pieces of greatest probability, by dynamic programming (Kudo, 2018, "Subword
/// Regularization"). Takes time proportional to the length of the word times the length of the longest piece.
class Unigrams : public WordModel {
 public:
  /// `scores` are the logarithms of the pieces' probabilities. With `byte_fallback`, an unknown character becomes the
  /// pieces of its bytes. Throws Error if a word cannot be split and `unknown` is -1.
  Unigrams(Vocabulary vocabulary, std::vector<double> scores, std::int32_t unknown, bool byte_fallback);
  Tokens tokens_of_word(std::string_view word) const override;

 private:
  std::vector<double> scores_;
  double unknown_score_ = 0;
  bool byte_fallback_;
  Trie trie_;
};

}  // namespace xtape
