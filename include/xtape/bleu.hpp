/// BLEU (Papineni, Roukos, Ward, Zhu, 2002): the n-gram overlap of translations with reference translations.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace xtape {

struct BleuOptions {
  std::string tokenize = "13a";  ///< "13a": the tokenization of mteval-v13a. "none": white space separates words.
  bool lowercase = false;        ///< Whether to ignore case.
};

struct Bleu {
  double score = 0;                       ///< 0 to 100.
  std::array<double, 4> precisions = {};  ///< For n-grams of 1 to 4 words, in percent.
  double brevity_penalty = 0;             ///< 0 to 1.
  std::int64_t hypothesis_length = 0;     ///< In words.
  std::int64_t reference_length = 0;
  std::string signature;  ///< The options, in the form of sacreBLEU's signature (Post, 2018).
};

/// Returns the score of a corpus with one reference per line, with exponential smoothing (method 3 of Chen and Cherry,
/// 2014). It equals that of sacreBLEU's corpus_bleu with the same options. Lines must not contain line ends. Throws
/// Error if there are no lines, the numbers of lines differ, a line is not UTF-8, or `tokenize` is unknown.
Bleu corpus_bleu(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references,
                 const BleuOptions& options = {});

}  // namespace xtape
