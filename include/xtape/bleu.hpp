/// BLEU (Papineni, Roukos, Ward, Zhu, 2002): how much of a translation's wording stands in a reference translation.
#pragma once

#if defined(XTAPE_LAYER) && XTAPE_LAYER < 8 && !defined(XTAPE_LAYER_IS_TEXT)
#error "this layer of xtape may not see the text layer"
#endif

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace xtape {

struct BleuOptions {
  std::string tokenize = "13a";  ///< "13a": words as mteval-v13a cuts them; "none": what white space separates.
  bool lowercase = false;        ///< Case does not count.
};

struct Bleu {
  double score = 0;                       ///< 0 to 100.
  std::array<double, 4> precisions = {};  ///< Of n-grams of 1 to 4 words, in percent.
  double brevity_penalty = 0;
  std::int64_t hypothesis_length = 0;  ///< In words.
  std::int64_t reference_length = 0;
  std::string signature;  ///< How the score was made, in the form of sacreBLEU (Post, 2018).
};

/// The score of a whole corpus, one reference a line, with exponential smoothing (method 3 of Chen and Cherry, 2014):
/// what sacreBLEU's corpus_bleu gives for the same options. Lines hold no line ends. Throws Error where there are no
/// lines, their counts differ, a line is not UTF-8, or `tokenize` is not known.
Bleu corpus_bleu(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references,
                 const BleuOptions& options = {});

}  // namespace xtape
