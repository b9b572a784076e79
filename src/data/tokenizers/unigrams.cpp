#include <algorithm>

#include "base/messages/wording.hpp"
#include "data/tokenizers/word_models.hpp"
#include "xtape/error.hpp"

namespace xtape {

Unigrams::Unigrams(Vocabulary vocabulary, std::vector<double> scores, std::int32_t unknown, bool byte_fallback)
    : WordModel(std::move(vocabulary), unknown), scores_(std::move(scores)), byte_fallback_(byte_fallback) {
  constexpr double penalty = 10;  // the value in sentencepiece
  if (!scores_.empty()) unknown_score_ = *std::ranges::min_element(scores_) - penalty;
  for (const std::string& piece : this->vocabulary().pieces())
    if (!piece.empty()) trie_.add(piece, this->vocabulary().token_of(piece));
}

Tokens Unigrams::tokens_of_word(std::string_view word) const {
  struct Best {  // the best split of the bytes before a position
    double score = 0;
    std::int32_t token = -1;
    std::uint32_t length = 0;  // the length of the last piece; 0 means that there is no split yet
  };
  if (word.size() >= std::size_t{1} << 32) throw Error("a word of 4 GiB is too long");
  std::vector<Best> best(word.size() + 1);
  for (std::size_t at = 0; at < word.size();) {
    const double before = best[at].score;
    const auto reach = [&](std::size_t length, std::int32_t token, double score) {
      Best& there = best[at + length];
      if (there.length == 0 || before + score > there.score)
        there = {before + score, token, static_cast<std::uint32_t>(length)};
    };
    const std::size_t one = character_length(word, at);
    bool known = false;  // whether this character alone is a piece
    trie_.prefixes(word, at, [&](std::size_t length, std::int32_t token) {
      reach(length, token, scores_[static_cast<std::size_t>(token)]);
      known = known || length == one;
    });
    if (!known) {
      if (unknown() < 0) throw Error("a character is not in the vocabulary, which has no unknown token");
      reach(one, unknown(), unknown_score_);
    }
    at += one;
  }
  // Goes back from the end, so the tokens are in reverse order. Neighbouring unknown characters become one token.
  Tokens tokens;
  for (std::size_t end = word.size(); end > 0;) {
    std::size_t begin = end - best[end].length;
    const std::int32_t token = best[end].token;
    if (token == unknown()) {
      while (begin > 0 && best[begin].token == token) begin -= best[begin].length;
      const std::string_view text = word.substr(begin, end - begin);
      Tokens bytes;
      if (const std::int32_t whole = vocabulary().token_of(text); whole >= 0) {
        tokens.push_back(whole);
      } else if (byte_fallback_ && append_bytes(text, bytes)) {
        tokens.insert(tokens.end(), bytes.rbegin(), bytes.rend());
      } else {
        tokens.push_back(token);
      }
    } else {
      tokens.push_back(token);
    }
    end = begin;
  }
  std::ranges::reverse(tokens);
  return tokens;
}

}  // namespace xtape
