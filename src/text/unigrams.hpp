/// A unigram language model of pieces.
#pragma once

#include <vector>

#include "trie.hpp"
#include "word_model.hpp"

namespace xtape {

/// The split of a word into pieces of the greatest probability, by dynamic programming (Kudo, 2018, "Subword
/// Regularization"). O(n · longest piece).
class Unigrams : public WordModel {
 public:
  /// `scores` are the logarithms of the pieces' probabilities. With `byte_fallback`, unknown characters become the
  /// pieces of their bytes. Throws Error if a word cannot be split and `unknown` is -1.
  Unigrams(Vocabulary vocabulary, std::vector<double> scores, std::int32_t unknown, bool byte_fallback);
  Tokens tokens_of_word(std::string_view word) const override;

 private:
  std::vector<double> scores_;
  double unknown_score_ = 0;
  bool byte_fallback_;
  Trie trie_;
};

}  // namespace xtape
