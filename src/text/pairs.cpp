// From text to tokens: pairs of sentences, and rows of arrays.
#include <algorithm>

#include "xtape/text.hpp"

namespace xtape {

Tokens framed(const Tokenizer& tokenizer, const std::string& text) {
  if (tokenizer.start() < 0 || tokenizer.end() < 0)
    throw Error("the tokenizer has no start and end tokens to put around a text");
  Tokens tokens = {tokenizer.start()};
  const Tokens inside = tokenizer.encode(text);
  tokens.insert(tokens.end(), inside.begin(), inside.end());
  tokens.push_back(tokenizer.end());
  return tokens;
}

Tokens source_of(const Tokenizer& tokenizer, const std::string& text) {
  if (tokenizer.start() >= 0 || tokenizer.end() < 0) return framed(tokenizer, text);
  Tokens tokens = tokenizer.encode(text);
  tokens.push_back(tokenizer.end());
  return tokens;
}

Tokens prompt_of(const Tokenizer& tokenizer, const std::string& text) {
  Tokens tokens = tokenizer.encode(text);
  if (tokenizer.begins()) tokens.insert(tokens.begin(), tokenizer.start());
  return tokens;
}

std::vector<Pair> pairs_of(const PairTexts& texts, const Tokenizer& source, const Tokenizer& target,
                           std::int64_t max_length) {
  if (texts.source.size() != texts.target.size())
    throw Error("pairs need a target for every source, got " + std::to_string(texts.source.size()) + " sources and " +
                std::to_string(texts.target.size()) + " targets");
  const std::size_t source_frame = source.start() < 0 ? 1 : 2;  // the end, or start and end
  const auto fits = [&](const Tokens& tokens, std::size_t frame) {
    return tokens.size() > frame && (max_length == 0 || tokens.size() <= static_cast<std::size_t>(max_length) + frame);
  };
  const auto read = [](const auto& frame, const Tokenizer& tokenizer, const std::vector<std::string>& lines,
                       std::size_t i, const char* side) {
    try {
      return frame(tokenizer, lines[i]);
    } catch (const Error& error) {
      throw Error("line " + std::to_string(i + 1) + " of the " + side + ": " + error.what());
    }
  };
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < texts.source.size(); ++i) {
    Pair pair = {read(source_of, source, texts.source, i, "source"), read(framed, target, texts.target, i, "target")};
    if (fits(pair.source, source_frame) && fits(pair.target, 2)) pairs.push_back(std::move(pair));
  }
  return pairs;
}

Array token_array(const std::vector<Tokens>& rows, std::int32_t pad, std::int64_t multiple) {
  if (multiple < 1 || multiple > most_batch_tokens)
    throw Error("multiple must be 1 to " + std::to_string(most_batch_tokens) + ", got " + std::to_string(multiple));
  std::size_t longest = 0;
  for (const Tokens& row : rows) longest = std::max(longest, row.size());
  const std::int64_t columns = (static_cast<std::int64_t>(longest) + multiple - 1) / multiple * multiple;
  Array array(Dtype::int64, {static_cast<std::int64_t>(rows.size()), columns});
  std::int64_t* to = array.as<std::int64_t>();
  std::fill_n(to, array.count(), std::int64_t{pad});
  for (const Tokens& row : rows) {
    std::copy(row.begin(), row.end(), to);
    to += columns;
  }
  return array;
}

}  // namespace xtape
