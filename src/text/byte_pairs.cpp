#include "byte_pairs.hpp"

#include "byte_symbols.hpp"
#include "xtape/error.hpp"

namespace xtape {

const Tokens* WordCache::find(std::string_view word) const {
  const auto found = words_.find(word);
  return found == words_.end() ? nullptr : &found->second;
}

void WordCache::add(std::string_view word, const Tokens& tokens) {
  if (word.size() > 64) return;
  if (words_.size() >= 1 << 17) words_.clear();
  words_.emplace(word, tokens);
}

BytePairs::BytePairs(std::vector<std::string> pieces, WordPattern pattern)
    : pieces_(std::move(pieces)), pattern_(std::move(pattern)) {
  for (std::size_t i = 0; i < pieces_.size(); ++i)
    if (!pieces_[i].empty()) tokens_.emplace(pieces_[i], static_cast<std::int32_t>(i));
  for (int byte = 0; byte < 256; ++byte) {
    const std::string& symbol = symbol_of(static_cast<std::uint8_t>(byte));
    const std::int32_t token = token_of(symbol);
    if (token < 0)
      throw Error("there is no piece \"" + symbol + "\" for the byte " + std::to_string(byte) +
                  ": without it some texts cannot be encoded");
    of_byte_[byte] = token;
  }
  for (const std::string& piece : pieces_) bytes_.push_back(bytes_of_symbols(piece));
}

void BytePairs::add_merge(const std::string& left, const std::string& right) {
  const auto known = [&](const std::string& piece) {
    const std::int32_t token = token_of(piece);
    if (token < 0) throw Error("the vocabulary has no piece \"" + piece + "\"");
    return token;
  };
  const std::int32_t first = known(left), second = known(right);
  if (!merges_.add(first, second, known(left + right)))
    throw Error("the merge \"" + left + " " + right + "\" is repeated");
}

std::int32_t BytePairs::token_of(const std::string& piece) const {
  const auto found = tokens_.find(piece);
  return found == tokens_.end() ? -1 : found->second;
}

Tokens BytePairs::encode(std::string_view text) const {
  // If another thread is using the shared cache, this call uses its own instead of waiting.
  const std::unique_lock<std::mutex> lock(seen_mutex_, std::try_to_lock);
  WordCache own;
  WordCache& words = lock ? seen_ : own;
  Tokens tokens;
  std::vector<std::size_t> places(in_text_.size(), 0);  // byte index of the next occurrence of each text in in_text_
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = text.find(in_text_[i].first);
  for (std::size_t at = 0;;) {
    // The text whose next occurrence is first; of several at the same byte, the longest.
    std::size_t next = in_text_.size();
    for (std::size_t i = 0; i < in_text_.size(); ++i) {
      if (places[i] < at) places[i] = text.find(in_text_[i].first, at);
      if (places[i] == std::string_view::npos) continue;
      const bool longer = next < places.size() && in_text_[i].first.size() > in_text_[next].first.size();
      if (next == places.size() || places[i] < places[next] || (places[i] == places[next] && longer)) next = i;
    }
    if (next == places.size()) {
      append(tokens, text.substr(at), words);
      return tokens;
    }
    append(tokens, text.substr(at, places[next] - at), words);
    tokens.push_back(in_text_[next].second);
    at = places[next] + in_text_[next].first.size();
  }
}

void BytePairs::append(Tokens& tokens, std::string_view text, WordCache& words) const {
  PreTokenizer cut(text, pattern_);
  for (std::string_view word; !(word = cut.next()).empty();) {
    if (const Tokens* known = words.find(word); known != nullptr) {
      tokens.insert(tokens.end(), known->begin(), known->end());
      continue;
    }
    const Tokens made = tokens_of_word(word);
    tokens.insert(tokens.end(), made.begin(), made.end());
    words.add(word, made);
  }
}

Tokens BytePairs::tokens_of_word(std::string_view word) const {
  if (whole_words_) {
    std::string symbols;
    for (const char byte : word) symbols += symbol_of(static_cast<std::uint8_t>(byte));
    if (const std::int32_t token = token_of(symbols); token >= 0) return {token};
  }
  Tokens made;
  made.reserve(word.size());
  for (const char byte : word) made.push_back(of_byte_[static_cast<unsigned char>(byte)]);
  merges_.apply(made);
  return made;
}

}  // namespace xtape
