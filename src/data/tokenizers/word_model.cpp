#include "data/tokenizers/word_model.hpp"

#include <cstdio>

namespace xtape {

Vocabulary::Vocabulary(std::vector<std::string> pieces) : pieces_(std::move(pieces)) {
  for (std::size_t i = 0; i < pieces_.size(); ++i)
    if (!pieces_[i].empty()) tokens_.insert_or_assign(pieces_[i], static_cast<std::int32_t>(i));
}

std::int32_t Vocabulary::token_of(std::string_view piece) const {
  const auto found = tokens_.find(piece);
  return found == tokens_.end() ? -1 : found->second;
}

bool WordModel::append_bytes(std::string_view text, Tokens& tokens) const {
  const std::size_t count = tokens.size();
  for (const char byte : text) {
    char name[8];
    std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(static_cast<unsigned char>(byte)));
    const std::int32_t token = vocabulary_.token_of(name);
    if (token < 0) {
      tokens.resize(count);
      return false;
    }
    tokens.push_back(token);
  }
  return true;
}

const Tokens* WordCache::find(std::string_view word) const {
  const auto found = words_.find(word);
  return found == words_.end() ? nullptr : &found->second;
}

void WordCache::add(std::string_view word, const Tokens& tokens) {
  if (word.size() > 64) return;
  if (words_.size() >= 1 << 17) words_.clear();
  words_.emplace(word, tokens);
}

}  // namespace xtape
