// BLEU of arbitrary lines.
#include "xtape/bleu.hpp"

#include <cmath>
#include <sstream>

#include "target.hpp"

namespace xtape::fuzz {

void bleu(Input input) {
  const auto lines_of = [](const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  };
  const std::vector<std::string> texts = parts(input, 2);
  const auto hypotheses = lines_of(texts[0]), references = lines_of(texts[1]);
  for (const char* tokenize : {"13a", "none"})
    for (const bool lower : {false, true}) {
      BleuOptions options;
      options.tokenize = tokenize;
      options.lowercase = lower;
      const auto found = accepted([&] { return corpus_bleu(hypotheses, references, options); });
      if (found)
        require(found->score >= 0 && found->score <= 100 + 1e-9 && found->brevity_penalty >= 0 &&
                    found->brevity_penalty <= 1,
                "a score is between 0 and 100");
      const auto same = accepted([&] { return corpus_bleu(references, references, options); });
      if (same && same->score != 0)
        require(std::abs(same->score - 100) < 1e-9, "the score of a text with itself is 0 or 100");
    }
}

}  // namespace xtape::fuzz
