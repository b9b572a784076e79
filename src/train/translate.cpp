#include "translate.hpp"

#include <algorithm>

namespace xtape::train {

namespace {
constexpr std::int64_t longest_source = 1000;  // the limit for a model without one, since attention needs much memory
}  // namespace

std::vector<Translation> translate(Model& model, Predictor& predictor, const Tokenizers& tokenizers,
                                   const std::vector<std::string>& lines, SearchOptions options,
                                   std::int64_t positions) {
  options.start = tokenizers.target->start();
  options.end = tokenizers.target->end();
  options.pad = tokenizers.source->pad();
  if (positions > 0) options.max_length = std::min(options.max_length, positions);
  const std::size_t frame = source_of(*tokenizers.source, "").size();  // the number of tokens of an empty line
  const auto limit = static_cast<std::size_t>(positions > 0 ? positions : longest_source);
  std::vector<Translation> translations(lines.size());
  std::vector<Tokens> sources;
  std::vector<std::size_t> places;  // the line index of each source
  for (std::size_t i = 0; i < lines.size(); ++i) {
    try {
      Tokens source = source_of(*tokenizers.source, lines[i]);
      if (source.size() > limit)
        throw Error("has " + std::to_string(source.size()) +
                    " tokens, start and end included; the model reads at most " + std::to_string(limit));
      if (source.size() == frame) continue;
      sources.push_back(std::move(source));
      places.push_back(i);
    } catch (const Error& error) {
      translations[i].problem = error.what();
    }
  }
  const auto found = options.cached ? search(predictor, sources, options) : search(model, sources, options);
  for (std::size_t i = 0; i < found.size(); ++i)
    for (const Hypothesis& each : found[i]) {
      Tokens produced = each.tokens;
      if (each.finished) produced.push_back(options.end);
      translations[places[i]].candidates.push_back(
          {tokenizers.target->decode(each.tokens), std::move(produced), each.score, each.log_probability});
    }
  return translations;
}

}  // namespace xtape::train
