#include <algorithm>
#include <utility>

#include "data/tokenizers/utf8.hpp"
#include "xtape/decode.hpp"

namespace xtape {

struct TextStream::Data {
  const Tokenizer* tokenizer = nullptr;
  std::vector<std::string> stops;
  Tokens run;          // the last token whose text was returned, then the tokens of an incomplete character
  std::string before;  // the text of run[0] alone
  Utf8Stream characters;
  std::string held;  // text that is not yet returned because it may begin a stop text
  bool stopped = false;

  /// Returns the text that the tokens after run[0] add. Decodes them together with run[0], because decoding adds spaces
  /// between words.
  std::string new_text() const {
    const std::string text = tokenizer->decode(run);
    if (text.compare(0, before.size(), before) == 0) return text.substr(before.size());
    return tokenizer->decode(Tokens(run.begin() + 1, run.end()));  // run[0] was part of an invalid character
  }

  /// Removes text from `held` and returns it. This is the text before the first stop text. If there is none, it is the
  /// text before an end of `held` that may begin a stop text.
  std::string certain() {
    std::size_t first = std::string::npos;
    for (const std::string& stop : stops) first = std::min(first, held.find(stop));
    if (first != std::string::npos) {
      stopped = true;
      held.resize(first);
      return std::exchange(held, "");
    }
    std::size_t beginning = 0;  // number of bytes at the end of `held` that may begin a stop text
    for (const std::string& stop : stops)
      for (std::size_t length = std::min(stop.size() - 1, held.size()); length > beginning; --length)
        if (held.compare(held.size() - length, length, stop, 0, length) == 0) beginning = length;
    std::string given = held.substr(0, held.size() - beginning);
    held.erase(0, given.size());
    return given;
  }
};

TextStream::TextStream(const Tokenizer& tokenizer, std::int32_t before, std::vector<std::string> stops)
    : data_(std::make_unique<Data>()) {
  for (const std::string& stop : stops)
    if (stop.empty()) throw Error("a text to stop at must not be empty: every text contains it");
  data_->tokenizer = &tokenizer;
  data_->stops = std::move(stops);
  data_->run = {before};
  data_->before = data_->tokenizer->decode(data_->run);
}

std::string TextStream::add(std::int32_t token) {
  if (data_->stopped) return "";
  constexpr std::size_t most_waiting = 3;  // a character has at most four bytes, each of which may be a token
  data_->run.push_back(token);
  const std::string text = data_->new_text();
  if (text.empty()) {  // pad, start and end have no text
    data_->run.pop_back();
    return "";
  }
  // A tokenizer with single-byte tokens decodes an incomplete character to the replacement character.
  if (text.ends_with(replacement_text) && data_->run.size() - 1 <= most_waiting) return "";
  data_->run = {token};
  data_->before = data_->tokenizer->decode(data_->run);
  data_->held += data_->characters.feed(text);
  return data_->certain();
}

std::string TextStream::finish() {
  if (data_->stopped) return "";
  if (data_->run.size() > 1) data_->held += data_->characters.feed(data_->new_text());
  data_->held += data_->characters.finish();
  std::string given = data_->certain();
  return given + std::exchange(data_->held, "");
}

bool TextStream::stopped() const {
  return data_->stopped;
}

}  // namespace xtape
