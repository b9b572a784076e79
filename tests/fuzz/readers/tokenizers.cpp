// Saved tokenizers, and the tokens that they give for a text.
#include "data/tokenizers/utf8.hpp"
#include "target.hpp"
#include "xtape/text.hpp"

namespace xtape::fuzz {

namespace {
void try_text(const Tokenizer& tokenizer, const std::string& text) {
  const auto tokens = accepted([&] { return tokenizer.encode(text); });
  if (!tokens) return;
  for (const std::int32_t token : *tokens)
    require(token >= 0 && token < tokenizer.size(), "tokens are in the vocabulary");
  const std::string decoded = tokenizer.decode(*tokens);
  check_utf8(decoded);
  const auto again = accepted([&] { return tokenizer.encode(decoded); });
  if (again) require(tokenizer.decode(*again) == decoded, "a decoded text is unchanged by encoding and decoding");
  require(tokenizer.pieces(*tokens).size() == tokens->size(), "every token has a piece");
}
}  // namespace

void tokenizers(Input input) {
  const std::vector<std::string> texts = parts(input, 2);
  const MemoryFile file(texts[0]);
  if (const auto saved = accepted([&] { return std::shared_ptr<Tokenizer>(load_tokenizer(file.path())); })) {
    const std::string json = (*saved)->to_json();
    const MemoryFile written(json);
    const auto again = load_tokenizer(written.path());
    require(again->to_json() == json, "a tokenizer that is saved and loaded is the same");
    require(again->size() == (*saved)->size(), "a tokenizer that is saved and loaded has as many tokens");
    try_text(**saved, texts[1]);
  }
  // Tokenizers made from the text have all of its characters.
  for (const bool special : {false, true})
    if (const auto own =
            accepted([&] { return CharacterTokenizer(texts[1], CharacterTokenizer::Unknown::error, special); }))
      require(own->decode(own->encode(texts[1])) == texts[1],
              "a text of known characters is encoded and decoded unchanged");
  const auto words = accepted([&] { return WordTokenizer(std::vector<std::string>{texts[1]}); });
  if (words) try_text(*words, texts[1]);
}

}  // namespace xtape::fuzz
