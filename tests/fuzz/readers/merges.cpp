// Byte-pair encoding compared with its definition: applies the merge of the lowest rank, leftmost first, until there is
// none.
#include <map>

#include "data/tokenizers/word_models.hpp"
#include "target.hpp"

namespace xtape::fuzz {

void merges(Input input) {
  if (input.size() > 600) return;  // the reference is quadratic
  Merges merges;
  std::map<std::pair<std::int32_t, std::int32_t>, std::pair<std::size_t, std::int32_t>> known;  // rank and token
  std::size_t at = 0;
  for (std::int32_t token = 4; at + 2 < input.size() && input[at] != '\0'; at += 2, ++token) {
    const auto left = static_cast<std::int32_t>(static_cast<unsigned char>(input[at]) % token);
    const auto right = static_cast<std::int32_t>(static_cast<unsigned char>(input[at + 1]) % token);
    const bool is_new = known.try_emplace({left, right}, known.size(), token).second;
    require(merges.add(left, right, token) == is_new, "a pair has one merge");
  }
  Tokens tokens;
  for (; at < input.size(); ++at) tokens.push_back(static_cast<unsigned char>(input[at]) % 4);
  Tokens expected = tokens;
  for (;;) {
    auto best = known.end();
    std::size_t place = 0;
    for (std::size_t i = 0; i + 1 < expected.size(); ++i) {
      const auto found = known.find({expected[i], expected[i + 1]});
      if (found != known.end() && (best == known.end() || found->second.first < best->second.first)) {
        best = found;
        place = i;
      }
    }
    if (best == known.end()) break;
    expected[place] = best->second.second;
    expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
  merges.apply(tokens);
  require(tokens == expected, "merges are made in their order");
}

}  // namespace xtape::fuzz
