#include <algorithm>
#include <queue>
#include <vector>

#include "data/tokenizers/word_models.hpp"

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

}  // namespace xtape
