#include <algorithm>
#include <utility>

#include "utf8.hpp"
#include "xtape/decode.hpp"

namespace xtape {

struct TextStream::Data {
  const Tokenizer* tokenizer = nullptr;
  std::vector<std::string> stops;
  Tokens run;  // the last token whose text has been given, and those since that wait for the rest of a character
  std::string before;  // what the first of them is by itself
  Utf8Stream characters;
  std::string held;  // what may be the beginning of a stop
  bool stopped = false;

  /// What the tokens since the first of the run add to it: together with it, since between words that is a space, too.
  std::string new_text() const {
    const std::string text = tokenizer->decode(run);
    if (text.compare(0, before.size(), before) == 0) return text.substr(before.size());
    return tokenizer->decode(Tokens(run.begin() + 1, run.end()));  // the first was part of a character that is none
  }

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
  data_->run = {before};
  data_->before = data_->tokenizer->decode(data_->run);
}
TextStream::TextStream(TextStream&&) noexcept = default;
TextStream& TextStream::operator=(TextStream&&) noexcept = default;
TextStream::~TextStream() = default;

std::string TextStream::add(std::int32_t token) {
  if (data_->stopped) return "";
  constexpr std::size_t most_waiting = 3;  // no character has more than four bytes, each of them a token at worst
  data_->run.push_back(token);
  const std::string text = data_->new_text();
  if (text.empty()) {  // pad, start and end are no text
    data_->run.pop_back();
    return "";
  }
  // Tokenizers whose tokens may be bytes write this for what is no whole character yet.
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
