#include <algorithm>
#include <queue>
#include <vector>

#include "base/messages/wording.hpp"
#include "data/tokenizers/utf8.hpp"
#include "data/tokenizers/word_models.hpp"
#include "xtape/error.hpp"

namespace xtape {

namespace {

std::uint64_t pair_of(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
}

/// A candidate merge of the token at index `at` with its right neighbour. When the candidate was pushed, these tokens
/// were `left` and `right`. The candidate is stale if one of them has changed since.
struct Possible {
  std::int32_t rank;
  std::int32_t token;
  std::size_t at;
  std::int32_t left, right;
  bool operator<(const Possible& other) const {  // reversed, because priority_queue pops the largest element first
    return rank != other.rank ? rank > other.rank : at > other.at;
  }
};

constexpr std::int32_t gone = -1;

}  // namespace

bool Merges::add(std::int32_t left, std::int32_t right, std::int32_t token) {
  const auto rank = static_cast<std::int32_t>(merges_.size());
  return merges_.emplace(pair_of(left, right), Merge{rank, token}).second;
}

const Merges::Merge* Merges::find(std::int32_t left, std::int32_t right) const {
  const auto found = merges_.find(pair_of(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

void Merges::apply(Tokens& tokens) const {
  // A doubly linked list of the remaining indices. A merge keeps its left index and removes its right index.
  const std::size_t count = tokens.size();
  std::vector<std::size_t> before(count), next(count);
  std::priority_queue<Possible> possible;
  const auto look = [&](std::size_t at) {
    if (next[at] == count) return;
    const std::int32_t left = tokens[at], right = tokens[next[at]];
    if (const Merge* merge = find(left, right)) possible.push({merge->rank, merge->token, at, left, right});
  };
  for (std::size_t at = 0; at < count; ++at) {
    before[at] = at - 1;
    next[at] = at + 1;
    look(at);
  }
  while (!possible.empty()) {
    const Possible best = possible.top();
    possible.pop();
    const std::size_t right = next[best.at];
    if (tokens[best.at] != best.left || right == count || tokens[right] != best.right) continue;
    tokens[best.at] = best.token;
    tokens[right] = gone;
    next[best.at] = next[right];
    if (next[right] != count) before[next[right]] = best.at;
    look(best.at);
    if (best.at > 0) look(before[best.at]);
  }
  tokens.erase(std::remove(tokens.begin(), tokens.end(), gone), tokens.end());
}

BytePairs::BytePairs(Vocabulary vocabulary, BytePairOptions options)
    : WordModel(std::move(vocabulary), options.unknown), options_(std::move(options)) {
  for (int byte = 0; options_.by_bytes && byte < 256; ++byte) {
    const std::string& symbol = symbol_of(static_cast<std::uint8_t>(byte));
    if (this->vocabulary().token_of(symbol) < 0)
      throw Error("there is no piece \"" + symbol + "\" for the byte " + std::to_string(byte) +
                  ": without it some texts cannot be encoded");
  }
}

void BytePairs::add_merge(const std::string& left, const std::string& right) {
  const auto known = [&](const std::string& piece) {
    const std::int32_t token = vocabulary().token_of(piece);
    if (token < 0) throw Error("the vocabulary has no piece \"" + piece + "\"");
    return token;
  };
  const std::int32_t first = known(left), second = known(right);
  if (!right.starts_with(options_.prefix))
    throw Error("the piece \"" + right + "\" does not begin with \"" + options_.prefix + "\"");
  if (!merges_.add(first, second, known(left + right.substr(options_.prefix.size()))))
    throw Error("the merge \"" + left + " " + right + "\" is repeated");
}

Tokens BytePairs::tokens_of_word(std::string_view word) const {
  std::string symbols;
  if (options_.by_bytes) {
    for (const char byte : word) symbols += symbol_of(static_cast<std::uint8_t>(byte));
    word = symbols;
  }
  if (options_.whole_words)
    if (const std::int32_t token = vocabulary().token_of(word); token >= 0) return {token};
  Tokens tokens = characters_of(word);
  merges_.apply(tokens);
  return tokens;
}

Tokens BytePairs::characters_of(std::string_view word) const {
  Tokens tokens;
  tokens.reserve(word.size());
  std::size_t unknown = 0;  // number of unknown tokens still to be appended
  std::string spelt;
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t length = character_length(word, at);
    std::string_view piece = word.substr(at, length);
    const bool first = at == 0, last = at + length == word.size();
    at += length;
    if ((!first && !options_.prefix.empty()) || (last && !options_.suffix.empty())) {
      spelt = (first ? "" : options_.prefix) + std::string(piece) + (last ? options_.suffix : "");
      piece = spelt;
    }
    if (const std::int32_t token = vocabulary().token_of(piece); token >= 0) {
      tokens.insert(tokens.end(), unknown, options_.unknown);
      unknown = 0;
      tokens.push_back(token);
    } else if (!(options_.byte_fallback && append_bytes(piece, tokens)) && options_.unknown >= 0) {
      unknown = options_.fuse_unknown ? 1 : unknown + 1;
    }
  }
  tokens.insert(tokens.end(), unknown, options_.unknown);
  return tokens;
}

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
