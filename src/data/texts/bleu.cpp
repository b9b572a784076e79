#include "xtape/bleu.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "data/texts/texts.hpp"
#include "data/tokenizers/utf8.hpp"
#include "xtape/error.hpp"

namespace xtape {

namespace {

/// Replaces every occurrence in a single pass, in linear time.
std::string replaced(const std::string& text, const std::string& what, const std::string& by) {
  std::string result;
  std::size_t from = 0;
  for (std::size_t at; (at = text.find(what, from)) != std::string::npos; from = at + what.size())
    result.append(text, from, at - from).append(by);
  return result.append(text, from, std::string::npos);
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_stop(char c) {
  return c == '.' || c == ',';
}
/// Returns whether the character is ASCII punctuation that is always a separate word: all ASCII punctuation except ' ,
/// - and the full stop.
bool stands_alone(char c) {
  return (c >= ' ' && c <= '&') || (c >= '(' && c <= '+') || c == '/' || (c >= ':' && c <= '@') ||
         (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

/// Finds every pair of adjacent bytes that `is_pair` accepts, from left to right and without overlap. Replaces each
/// pair by `before`, first byte, space, second byte, `after`. Bytes are sufficient, because the predicates test only
/// for ASCII characters.
template <class IsPair>
std::string space_pairs(const std::string& text, const IsPair& is_pair, const char* before, const char* after) {
  std::string spaced;
  std::size_t at = 0;
  while (at < text.size()) {
    if (at + 1 < text.size() && is_pair(text[at], text[at + 1])) {
      spaced.append(before).append(1, text[at]).append(" ").append(1, text[at + 1]).append(after);
      at += 2;
    } else {
      spaced += text[at++];
    }
  }
  return spaced;
}

}  // namespace

std::vector<std::string> words_13a(const std::string& line) {
  check_utf8(line);
  std::string text = replaced(line, "<skipped>", "");
  text = replaced(text, "&quot;", "\"");
  text = replaced(text, "&amp;", "&");
  text = replaced(text, "&lt;", "<");
  text = replaced(text, "&gt;", ">");
  std::string spaced = " ";
  for (const char c : text) spaced += stands_alone(c) ? std::string{' ', c, ' '} : std::string{c};
  spaced += ' ';
  // Does not separate full stops and commas within numbers. Each rule applies to the result of the rule before it.
  spaced = space_pairs(
      spaced, [](char a, char b) { return !is_digit(a) && is_stop(b); }, "", " ");
  spaced = space_pairs(
      spaced, [](char a, char b) { return is_stop(a) && !is_digit(b); }, " ", "");
  spaced = space_pairs(
      spaced, [](char a, char b) { return is_digit(a) && b == '-'; }, "", " ");
  return words_in(spaced);
}

namespace {

constexpr std::size_t orders = 4;
using Counts = std::array<std::int64_t, orders>;

/// Counts each n-gram of length `order`. Words contain no spaces, so a space separates them.
std::unordered_map<std::string, std::int64_t> ngrams(const std::vector<std::string>& words, std::size_t order) {
  std::unordered_map<std::string, std::int64_t> counts;
  for (std::size_t first = 0; first + order <= words.size(); ++first) {
    std::string ngram = words[first];
    for (std::size_t i = 1; i < order; ++i) ngram += ' ' + words[first + i];
    ++counts[ngram];
  }
  return counts;
}

/// Adds the n-grams of one line to `total`, and the clipped matches with the reference to `matched`.
void count(const std::vector<std::string>& hypothesis, const std::vector<std::string>& reference, Counts& matched,
           Counts& total) {
  for (std::size_t order = 1; order <= orders; ++order) {
    const auto wanted = ngrams(reference, order);
    for (const auto& [ngram, times] : ngrams(hypothesis, order)) {
      total[order - 1] += times;
      const auto found = wanted.find(ngram);
      if (found != wanted.end()) matched[order - 1] += std::min(times, found->second);
    }
  }
}

/// Sets the precisions and the score from the counts (Papineni et al., 2002). The score is 0 if no unigram matches or
/// if an order has no n-grams. Smoothing is "exp" of sacreBLEU: the first order without a match counts as half a match,
/// the next such order as a quarter, and so on.
void set_score(const Counts& matched, const Counts& total, Bleu& bleu) {
  if (matched[0] == 0) return;
  double sum = 0;
  double share = 1;
  for (std::size_t i = 0; i < orders; ++i) {
    if (total[i] == 0) return;
    const auto count = static_cast<double>(total[i]);
    bleu.precisions[i] = matched[i] > 0 ? 100 * static_cast<double>(matched[i]) / count : 100 * (share /= 2) / count;
    sum += std::log(bleu.precisions[i]);
  }
  bleu.score = bleu.brevity_penalty * std::exp(sum / orders);
}

/// Returns exp(1 - reference / hypothesis) if the hypothesis is shorter than its reference, otherwise 1.
double brevity_penalty(std::int64_t hypothesis, std::int64_t reference) {
  if (hypothesis >= reference) return 1;
  if (hypothesis == 0) return 0;
  return std::exp(1 - static_cast<double>(reference) / static_cast<double>(hypothesis));
}

}  // namespace

Bleu corpus_bleu(const std::vector<std::string>& hypotheses, const std::vector<std::string>& references,
                 const BleuOptions& options) {
  if (options.tokenize != "13a" && options.tokenize != "none")
    throw Error("BLEU: tokenize must be \"13a\" or \"none\", got \"" + options.tokenize + "\"");
  if (hypotheses.size() != references.size())
    throw Error("BLEU: needs one reference for each hypothesis, got " + std::to_string(hypotheses.size()) +
                " lines of hypotheses and " + std::to_string(references.size()) + " of references");
  if (hypotheses.empty()) throw Error("BLEU: there are no lines to score");
  const auto words_of = [&](const std::vector<std::string>& lines, std::size_t i, const char* what) {
    try {
      const std::string line = options.lowercase ? lower_cased(lines[i]) : lines[i];
      return options.tokenize == "13a" ? words_13a(line) : words_in(line);
    } catch (const Error& error) {
      throw Error("line " + std::to_string(i + 1) + " of the " + what + ": " + error.what());
    }
  };
  Bleu bleu;
  Counts matched = {};
  Counts total = {};
  for (std::size_t i = 0; i < hypotheses.size(); ++i) {
    const std::vector<std::string> hypothesis = words_of(hypotheses, i, "hypotheses");
    const std::vector<std::string> reference = words_of(references, i, "references");
    bleu.hypothesis_length += std::ssize(hypothesis);
    bleu.reference_length += std::ssize(reference);
    count(hypothesis, reference, matched, total);
  }
  bleu.brevity_penalty = brevity_penalty(bleu.hypothesis_length, bleu.reference_length);
  set_score(matched, total, bleu);
  bleu.signature = "nrefs:1|case:" + std::string(options.lowercase ? "lc" : "mixed") +
                   "|eff:no|tok:" + options.tokenize + "|smooth:exp|version:xtape-" XTAPE_VERSION;
  return bleu;
}

}  // namespace xtape
