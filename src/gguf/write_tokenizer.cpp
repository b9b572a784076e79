// Tokenizers of folders as metadata.
#include <algorithm>

#include "base/messages/wording.hpp"
#include "base/system/durable.hpp"
#include "base/system/files.hpp"
#include "data/tokenizers/utf8.hpp"
#include "gguf/tokenizer.hpp"
#include "gguf/write.hpp"
#include "xtape/text.hpp"
#include "xtape/tokenizers.hpp"

namespace xtape::gguf {

namespace {
/// The tokens of a vocabulary. Numbers without a token are filled up, because files have a text for each row of the
/// table.
struct Vocabulary {
  std::vector<std::string> texts;
  std::vector<TokenType> types;

  void set(std::int64_t token, const std::string& text, TokenType type) {
    if (token >= std::ssize(texts)) {
      texts.resize(static_cast<std::size_t>(token) + 1);
      types.resize(texts.size(), TokenType::unused);
    }
    texts[static_cast<std::size_t>(token)] = text;
    types[static_cast<std::size_t>(token)] = type;
  }
  void fill(std::int64_t size, const std::string& where) {
    if (std::ssize(texts) > size && size > 0)
      throw FileError(where + " has " + std::to_string(texts.size()) + " tokens, and the model only " +
                      std::to_string(size));
    texts.resize(static_cast<std::size_t>(std::max<std::int64_t>(size, std::ssize(texts))));
    types.resize(texts.size(), TokenType::unused);
    for (std::size_t i = 0; i < texts.size(); ++i)
      if (texts[i].empty() && types[i] == TokenType::unused) texts[i] = "[PAD" + std::to_string(i) + "]";
  }
  void add_to(Metadata& metadata) const {
    Json texts_json = Json::array(), types_json = Json::array();
    for (const std::string& text : texts) texts_json.push_back(text);
    for (const TokenType type : types) types_json.push_back(static_cast<int>(type));
    metadata.emplace_back(tokenizer_prefix + "tokens", texts_json);
    metadata.emplace_back(tokenizer_prefix + "token_type", types_json);
  }
};

/// Returns the elements of a node with these types: parts of a sequence, or the node itself.
std::vector<JsonNode> parts(const JsonNode& node, const char* list) {
  return node.at("type").text() == "Sequence" ? node.at(list).elements() : std::vector<JsonNode>{node};
}

class TokenizerFolder {
 public:
  TokenizerFolder(std::string folder, std::int64_t size) : folder_(std::move(folder)), size_(size) {}

  Metadata metadata() {
    if (has("tokenizer.model") || has("spiece.model")) {
      sentencepiece(path_in(folder_, has("tokenizer.model") ? "tokenizer.model" : "spiece.model"));
    } else if (has("tokenizer.json")) {
      json();
    } else if (has("vocab.json")) {
      two_files();
    } else if (has("vocab.txt")) {
      words(read_utf8_lines(path_in(folder_, "vocab.txt")));
    } else {
      return {{tokenizer_prefix + "model", "none"}};
    }
    special_tokens();
    return std::move(metadata_);
  }

 private:
  bool has(const char* name) const { return path_exists(path_in(folder_, name)); }
  void put(const std::string& key, const Json& value) { metadata_.emplace_back(tokenizer_prefix + key, value); }
  JsonNode read(const char* name) const {
    return {read_file(path_in(folder_, name)), path_in(folder_, name), JsonErrors::file, JsonNumbers::any};
  }

  void sentencepiece(const std::string& path) {
    Pieces pieces = read_pieces_of(read_file(path), "'" + path + "'");
    if (pieces.unigram)
      throw FileError("'" + path +
                      "' is a unigram model: GGUF files of such models have sentencepiece models with merges");
    Vocabulary vocabulary{pieces.texts, pieces.types};
    vocabulary.fill(size_, "'" + path + "'");
    pieces.scores.resize(vocabulary.texts.size(), -1000);
    add_llama(vocabulary, pieces.scores, pieces.space_first, pieces.fewer_spaces);
  }

  void add_llama(const Vocabulary& vocabulary, const std::vector<float>& scores, bool space_first, bool fewer_spaces) {
    put("model", "llama");
    put("pre", "default");
    vocabulary.add_to(metadata_);
    Json list = Json::array();
    for (const float score : scores) list.push_back(static_cast<double>(score));
    put("scores", list);
    put("add_space_prefix", space_first);
    put("remove_extra_whitespaces", fewer_spaces);
  }

  static std::vector<std::string> merges_of(const JsonNode& model) {
    std::vector<std::string> merges;
    for (const JsonNode& each : model.at("merges").elements())
      merges.push_back(each.is_array() ? each.elements().at(0).text() + " " + each.elements().at(1).text()
                                       : each.text());
    return merges;
  }

  void json() {
    const JsonNode root = read("tokenizer.json"), model = root.at("model");
    const std::string type = model.has("type") ? model.at("type").text() : "BPE";
    Vocabulary vocabulary;
    if (type != "BPE" && type != "WordPiece")
      model.at("type").fail("GGUF files have tokenizers of the types BPE and WordPiece, and sentencepiece models");
    for (const auto& [text, token] : model.at("vocab").entries())
      vocabulary.set(token.integer(0, 1 << 24), text, TokenType::normal);
    if (root.has("added_tokens"))
      for (const JsonNode& each : root.at("added_tokens").elements())
        vocabulary.set(each.at("id").integer(0, 1 << 24), each.at("content").text(),
                       each.at("special").flag() ? TokenType::control : TokenType::user_defined);
    if (type == "WordPiece") {
      for (const char* name : {"[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"})
        if (const auto found = std::ranges::find(vocabulary.texts, name); found != vocabulary.texts.end())
          vocabulary.types[static_cast<std::size_t>(found - vocabulary.texts.begin())] = TokenType::control;
      return words(vocabulary.texts);
    }
    if (model.has("byte_fallback") && model.at("byte_fallback").flag()) return by_characters(root, vocabulary);
    byte_level(vocabulary, merges_of(model), pre_of(root));
  }

  /// BPE of characters with a fallback to bytes, as sentencepiece has it: pieces of earlier merges have higher scores.
  void by_characters(const JsonNode& root, Vocabulary& vocabulary) {
    for (std::size_t i = 0; i < vocabulary.texts.size(); ++i) {
      const std::string& text = vocabulary.texts[i];
      if (text.size() == 6 && text.starts_with("<0x") && text[5] == '>') vocabulary.types[i] = TokenType::byte;
    }
    const JsonNode model = root.at("model");
    if (model.has("unk_token") && model.at("unk_token").is_string())
      for (std::size_t i = 0; i < vocabulary.texts.size(); ++i)
        if (vocabulary.texts[i] == model.at("unk_token").text()) vocabulary.types[i] = TokenType::unknown;
    vocabulary.fill(size_, "'" + root.file() + "'");
    std::map<std::string, float> ranks;
    for (const std::string& merge : merges_of(model)) {
      std::string piece = merge;
      if (const std::size_t space = piece.find(' '); space != std::string::npos) piece.erase(space, 1);
      ranks.emplace(piece, -static_cast<float>(ranks.size()));
    }
    std::vector<float> scores;
    for (const std::string& text : vocabulary.texts) {
      const auto found = ranks.find(text);
      scores.push_back(found == ranks.end() ? -static_cast<float>(ranks.size()) : found->second);
    }
    bool space_first = false;
    if (root.has("normalizer") && !root.at("normalizer").is_null())
      for (const JsonNode& each : parts(root.at("normalizer"), "normalizers"))
        space_first = space_first || each.at("type").text() == "Prepend";
    add_llama(vocabulary, scores, space_first, false);
  }

  /// Returns the name of the pre-tokenizer of a tokenizer.json.
  static std::string pre_of(const JsonNode& root) {
    PreTokenizer wanted;
    for (const JsonNode& each : parts(root.at("pre_tokenizer"), "pretokenizers"))
      if (const std::string& type = each.at("type").text(); type == "Split" && each.at("pattern").has("Regex"))
        wanted.regexes.push_back(each.at("pattern").at("Regex").text());
      else if (type != "ByteLevel")
        each.fail("GGUF files have no pre-tokenizer of the type \"" + type + "\" for byte-level tokens");
    for (const PreTokenizer& each : pre_tokenizers())
      if (each.regexes == wanted.regexes) return each.name;
    root.at("pre_tokenizer")
        .fail("no name of models/gguf/pre_tokenizers.json stands for this way to split texts into words");
  }

  void byte_level(Vocabulary& vocabulary, const std::vector<std::string>& merges, const std::string& pre) {
    vocabulary.fill(size_, "the tokenizer of '" + folder_ + "'");
    put("model", "gpt2");
    put("pre", pre);
    vocabulary.add_to(metadata_);
    put("merges", Json(merges));
  }

  void two_files() {
    Vocabulary vocabulary;
    for (const auto& [text, token] : read("vocab.json").entries())
      vocabulary.set(token.integer(0, 1 << 24), text, text == "<|endoftext|>" ? TokenType::control : TokenType::normal);
    std::vector<std::string> merges = read_utf8_lines(path_in(folder_, "merges.txt"));
    if (!merges.empty() && merges[0].starts_with("#version")) merges.erase(merges.begin());
    byte_level(vocabulary, merges, "gpt-2");
  }

  /// WordPiece. In files, a piece that begins a word has U+2581 before it, and others have no "##".
  void words(const std::vector<std::string>& lines) {
    Vocabulary vocabulary;
    for (const std::string& line : lines) {
      const bool special = line.size() > 2 && line.front() == '[' && line.back() == ']';
      for (const auto& [text, key] :
           {std::pair("[CLS]", "cls_token_id"), {"[SEP]", "seperator_token_id"}, {"[MASK]", "mask_token_id"}})
        if (line == text) put(key, std::ssize(vocabulary.texts));
      vocabulary.set(std::ssize(vocabulary.texts),
                     special                  ? line
                     : line.starts_with("##") ? line.substr(2)
                                              : "\u2581" + line,
                     special ? TokenType::control : TokenType::normal);
    }
    vocabulary.fill(size_, "the tokenizer of '" + folder_ + "'");
    put("model", "bert");
    put("pre", "default");
    vocabulary.add_to(metadata_);
    put("token_type_count", 2);
  }

  void special_tokens() {
    const auto tokenizer = load_tokenizer(folder_);
    const auto number = [&](const char* key, std::int64_t token) {
      if (token >= 0) put(key, token);
    };
    const Tokens ends = tokenizer->ends();
    number("bos_token_id", tokenizer->start());
    number("eos_token_id", ends.empty() ? tokenizer->end() : ends[0]);
    number("eot_token_id", ends.size() > 1 ? ends[1] : -1);
    number("eom_token_id", ends.size() > 2 ? ends[2] : -1);
    number("unknown_token_id", tokenizer->unknown());
    number("padding_token_id", tokenizer->pad());
    put("add_bos_token", tokenizer->begins());
    if (has("tokenizer_config.json"))
      if (const JsonNode config = read("tokenizer_config.json");
          config.has("chat_template") && config.at("chat_template").is_string())
        metadata_.emplace_back("tokenizer.chat_template", config.at("chat_template").text());
    if (has("chat_template.jinja") && metadata_.back().first != "tokenizer.chat_template")
      metadata_.emplace_back("tokenizer.chat_template", read_file(path_in(folder_, "chat_template.jinja")));
  }

  std::string folder_;
  std::int64_t size_;
  Metadata metadata_;
};
}  // namespace

Metadata tokenizer_metadata(const std::string& folder, std::int64_t tokens) {
  return TokenizerFolder(folder, tokens).metadata();
}

}  // namespace xtape::gguf
