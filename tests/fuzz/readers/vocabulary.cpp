// GPT-2's two files and a text to encode. vocab.json is completed by the pieces of all bytes; then merges.txt.
#include <nlohmann/json.hpp>
#include <set>

#include "data/tokenizers/utf8.hpp"
#include "data/tokenizers/word_pattern.hpp"
#include "target.hpp"
#include "xtape/text.hpp"

namespace xtape::fuzz {

namespace {
/// A vocabulary of the bytes and of the pieces that the merges name.
std::string vocabulary_for(const std::string& merges) {
  static const std::string bytes = [] {
    std::string text;
    for (int byte = 0; byte < 256; ++byte)
      text += nlohmann::json(symbol_of(static_cast<std::uint8_t>(byte))).dump() + ":" + std::to_string(byte) + ",";
    return text;
  }();
  std::set<std::string> known;
  std::string text = "{" + bytes + R"("<|endoftext|>":256)";
  const auto add = [&](const std::string& piece) {
    const bool is_byte = character_length(piece + " ", 0) == piece.size() && bytes_of_symbols(piece) != piece;
    if (piece.size() < 2 || is_byte || !known.insert(piece).second) return;
    text += "," + nlohmann::json(piece).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + ":" +
            std::to_string(256 + known.size());
  };
  for (std::size_t at = 0; at < merges.size();) {
    const std::size_t end = std::min(merges.find('\n', at), merges.size());
    const std::string line = merges.substr(at, end - at);
    if (const std::size_t space = line.find(' '); space != std::string::npos)
      for (const std::string& piece :
           {line.substr(0, space), line.substr(space + 1), line.substr(0, space) + line.substr(space + 1)})
        add(piece);
    at = end + 1;
  }
  return text + "}";
}

void encode(const Tokenizer& tokenizer, const std::string& text) {
  const Tokens tokens = tokenizer.encode(text);
  for (const std::int32_t token : tokens)
    require(token >= 0 && token < tokenizer.size(), "tokens are in the vocabulary");
  require(tokenizer.decode(tokens) == text, "any bytes are encoded and decoded unchanged");
  require(tokenizer.pieces(tokens).size() == tokens.size(), "every token has a piece");
  std::string joined;
  WordPattern::gpt2().cut(text, [&](const Span& word) { joined += text.substr(word.begin, word.end - word.begin); });
  require(joined == text, "the joined words are the text");
}
}  // namespace

void vocabulary(Input input) {
  const std::vector<std::string> texts = parts(input, 3);
  const MemoryFile merges(texts[1]);
  for (const std::string& vocabulary : {texts[0], vocabulary_for(texts[1])}) {
    const MemoryFile file(vocabulary);
    const auto tokenizer = accepted([&] { return Gpt2Tokenizer(file.path(), merges.path()); });
    if (!tokenizer) continue;
    encode(*tokenizer, texts[2]);
    const auto files = tokenizer->files("");
    require(files.at(0).bytes == vocabulary && files.at(1).bytes == texts[1], "the files are kept unchanged");
  }
}

}  // namespace xtape::fuzz
