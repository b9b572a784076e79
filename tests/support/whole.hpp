/// Decoding without caches, with which decoding with caches must agree. The model reads all tokens again for each new
/// token.
#pragma once

#include <algorithm>
#include <vector>

#include "decode/sampler.hpp"
#include "decode/sentence_search.hpp"
#include "kernels/table/choices.hpp"
#include "xtape/decode.hpp"

namespace whole {

/// Returns the logits [1, 1, classes] of the token after the last of `tokens`. The padding after `tokens` has no
/// effect, because a position depends only on earlier positions.
inline xtape::Array next_logits(xtape::Model& model, const xtape::Tokens& tokens, const xtape::Tokens& source = {}) {
  xtape::Store arrays{{"tokens", xtape::token_array({tokens}, 0, 8)}};
  if (!source.empty()) arrays.add("source", xtape::token_array({source}));
  const xtape::Array all = model.play("logits", arrays, xtape::Mode::predict)[0].value;
  const std::int64_t classes = all.shape()[2], first = (static_cast<std::int64_t>(tokens.size()) - 1) * classes;
  return xtape::Array(xtape::ArrayView(all.data(), all.dtype(), {{1, 1, classes}, {classes, classes, 1}, first}));
}

/// Does what generate_batch does for one prompt and the sample `stream`.
inline xtape::Tokens generate(xtape::Model& model, const xtape::Tokens& prompt, const xtape::GenerateOptions& options,
                              std::uint64_t stream = 0) {
  xtape::decode::Sampler sampler(options.sampling);
  xtape::Tokens made, seen = prompt;
  while (static_cast<std::int64_t>(made.size()) < options.tokens &&
         (made.empty() || !xtape::contains(options.end_tokens, made.back()))) {
    const std::int64_t most = made.empty() ? options.context : std::max<std::int64_t>(1, options.context / 2);
    if (static_cast<std::int64_t>(seen.size()) > options.context) seen.erase(seen.begin(), seen.end() - most);
    const xtape::Array logits = next_logits(model, seen);
    const xtape::ArrayView row(logits.data(), logits.dtype(), xtape::Layout::dense({logits.shape()[2]}));
    made.push_back(sampler.draw(row, made.size(), stream));
    seen.push_back(made.back());
  }
  return made;
}

/// Does what search does, with each source and each hypothesis separately.
inline std::vector<std::vector<xtape::Hypothesis>> search(xtape::Model& model,
                                                          const std::vector<xtape::Tokens>& sources,
                                                          const xtape::SearchOptions& options) {
  std::vector<std::int32_t> never;
  for (const std::int32_t token : {options.pad, options.start})
    if (!xtape::contains(options.ends, token)) never.push_back(token);
  std::vector<std::vector<xtape::Hypothesis>> found;
  for (const xtape::Tokens& source : sources) {
    xtape::decode::SentenceSearch sentence(options, static_cast<std::int64_t>(source.size()));
    while (!sentence.done()) {
      std::vector<std::vector<xtape::decode::ScoredToken>> choices, of_one;
      for (const xtape::decode::Running& each : sentence.running()) {
        xtape::Tokens tokens{options.start};
        tokens.insert(tokens.end(), each.tokens.begin(), each.tokens.end());
        xtape::decode::likeliest(next_logits(model, tokens, source), {0}, options.beam_size + std::ssize(options.ends),
                                 never, 1, of_one);
        choices.push_back(of_one[0]);
      }
      sentence.advance(choices.data());
    }
    found.push_back(sentence.best());
  }
  return found;
}

}  // namespace whole
