#include "base/messages/wording.hpp"
#include "data/tokenizers/unicode.hpp"
#include "data/tokenizers/word_models.hpp"
#include "xtape/error.hpp"

namespace xtape {

BytePairs::BytePairs(Vocabulary vocabulary, BytePairOptions options)
    : WordModel(std::move(vocabulary), options.unknown), options_(std::move(options)) {
  for (int byte = 0; options_.by_bytes && byte < 256; ++byte) {
    const std::string& symbol = symbol_of(static_cast<std::uint8_t>(byte));
    if (this->vocabulary().token_of(symbol) < 0)
      throw Error("there is no piece \"" + symbol + "\" for the byte " + std::to_string(byte) +
                  ": without it some texts cannot be encoded");
  }
}

void BytePairs::add_merge(const std::string& left, const std::string& right) {
  const auto known = [&](const std::string& piece) {
    const std::int32_t token = vocabulary().token_of(piece);
    if (token < 0) throw Error("the vocabulary has no piece \"" + piece + "\"");
    return token;
  };
  const std::int32_t first = known(left), second = known(right);
  if (!right.starts_with(options_.prefix))
    throw Error("the piece \"" + right + "\" does not begin with \"" + options_.prefix + "\"");
  if (!merges_.add(first, second, known(left + right.substr(options_.prefix.size()))))
    throw Error("the merge \"" + left + " " + right + "\" is repeated");
}

Tokens BytePairs::tokens_of_word(std::string_view word) const {
  std::string symbols;
  if (options_.by_bytes) {
    for (const char byte : word) symbols += symbol_of(static_cast<std::uint8_t>(byte));
    word = symbols;
  }
  if (options_.whole_words)
    if (const std::int32_t token = vocabulary().token_of(word); token >= 0) return {token};
  Tokens tokens = characters_of(word);
  merges_.apply(tokens);
  return tokens;
}

Tokens BytePairs::characters_of(std::string_view word) const {
  Tokens tokens;
  tokens.reserve(word.size());
  std::size_t unknown = 0;  // number of unknown tokens still to be appended
  std::string spelt;
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t length = character_length(word, at);
    std::string_view piece = word.substr(at, length);
    const bool first = at == 0, last = at + length == word.size();
    at += length;
    if ((!first && !options_.prefix.empty()) || (last && !options_.suffix.empty())) {
      spelt = (first ? "" : options_.prefix) + std::string(piece) + (last ? options_.suffix : "");
      piece = spelt;
    }
    if (const std::int32_t token = vocabulary().token_of(piece); token >= 0) {
      tokens.insert(tokens.end(), unknown, options_.unknown);
      unknown = 0;
      tokens.push_back(token);
    } else if (!(options_.byte_fallback && append_bytes(piece, tokens)) && options_.unknown >= 0) {
      unknown = options_.fuse_unknown ? 1 : unknown + 1;
    }
  }
  tokens.insert(tokens.end(), unknown, options_.unknown);
  return tokens;
}

}  // namespace xtape
