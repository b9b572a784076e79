#include "data/tokenizers/word_pieces.hpp"

#include "base/messages/characters.hpp"

namespace xtape {

WordPieces::WordPieces(Vocabulary vocabulary, std::int32_t unknown, const std::string& prefix, std::int64_t longest)
    : WordModel(std::move(vocabulary), unknown), longest_(longest) {
  for (const std::string& piece : this->vocabulary().pieces())
    if (!piece.empty()) trie_.add(piece, this->vocabulary().token_of(piece));
  rest_ = trie_.node_of(prefix);
}

Tokens WordPieces::tokens_of_word(std::string_view word) const {
  std::int64_t characters = 0;
  for (std::size_t at = 0; at < word.size() && characters <= longest_; at += character_length(word, at)) ++characters;
  if (characters > longest_) return {unknown()};
  Tokens tokens;
  for (std::size_t at = 0; at < word.size();) {
    std::size_t longest = 0;
    std::int32_t token = -1;
    const auto keep = [&](std::size_t length, std::int32_t piece) {
      longest = length;
      token = piece;
    };
    if (at == 0)
      trie_.prefixes(word, at, keep);
    else if (rest_ >= 0)
      trie_.prefixes(word, at, keep, static_cast<std::uint32_t>(rest_));
    if (token < 0) return {unknown()};
    tokens.push_back(token);
    at += longest;
  }
  return tokens;
}

}  // namespace xtape
