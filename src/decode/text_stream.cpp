#include <algorithm>
#include <utility>

#include "utf8.hpp"
#include "xtape/decode.hpp"

namespace xtape {

struct TextStream::Data {
  const Tokenizer* tokenizer = nullptr;
  std::vector<std::string> stops;
  Tokens last;         // the last token that is text, as decode wants it
  std::string before;  // what that one is by itself
  Utf8Stream characters;
  std::string held;  // what may be the beginning of a stop
  bool stopped = false;

  /// What is certain of the text held, up to the first stop.
  std::string certain() {
    std::size_t first = std::string::npos;
    for (const std::string& stop : stops) first = std::min(first, held.find(stop));
    if (first != std::string::npos) {
      stopped = true;
      held.resize(first);
      return std::exchange(held, "");
    }
    std::size_t beginning = 0;  // of a stop, at the end
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
    if (stop.empty()) throw Error("a text to stop at must not be empty: every text has it");
  data_->tokenizer = &tokenizer;
  data_->stops = std::move(stops);
  data_->last = {before};
  data_->before = data_->tokenizer->decode(data_->last);
}
TextStream::TextStream(TextStream&&) noexcept = default;
TextStream& TextStream::operator=(TextStream&&) noexcept = default;
TextStream::~TextStream() = default;

std::string TextStream::add(std::int32_t token) {
  if (data_->stopped) return "";
  // Together with the token before: between words that is a space, too.
  Tokens pair = data_->last;
  pair.push_back(token);
  const std::string text = data_->tokenizer->decode(pair).substr(data_->before.size());
  if (text.empty()) return "";  // pad, start and end are no text
  data_->last = {token};
  data_->before = data_->tokenizer->decode(data_->last);
  data_->held += data_->characters.feed(text);
  return data_->certain();
}

std::string TextStream::finish() {
  if (data_->stopped) return "";
  data_->held += data_->characters.finish();
  std::string given = data_->certain();
  return given + std::exchange(data_->held, "");
}

bool TextStream::stopped() const {
  return data_->stopped;
}

}  // namespace xtape
