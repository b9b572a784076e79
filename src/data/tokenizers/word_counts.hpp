/// Counts of the words of a text, from which tokenizers are made.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "xtape/tokenizers.hpp"

namespace xtape {

using RankedWords = std::vector<std::pair<std::string, std::int64_t>>;

class WordCounts {
 public:
  void add(const std::string& word) { ++counts_[word]; }
  /// Returns the words by descending frequency. Words of equal frequency are ordered by their bytes.
  RankedWords ranked() const {
    RankedWords ranking(counts_.begin(), counts_.end());
    std::ranges::sort(ranking, [](const auto& a, const auto& b) {
      return a.second != b.second ? a.second > b.second : a.first < b.first;
    });
    return ranking;
  }

 private:
  std::unordered_map<std::string, std::int64_t> counts_;
};

/// Returns the bytes of the sentencepiece model of a text with these words, which are those between white space of
/// ASCII. It has the pieces that SentencePieceTokenizer makes of the text. Throws as that does.
std::string sentencepiece_model(const RankedWords& words, const SentencePieceOptions& options);

}  // namespace xtape
