#include "published.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "bert.hpp"
#include "durable.hpp"
#include "files.hpp"
#include "utf8.hpp"
#include "xtape/text.hpp"

namespace xtape {

namespace {
constexpr std::int64_t greatest_token = std::numeric_limits<std::int32_t>::max();

/// The three files of a folder that describe its special tokens. Any of them may be missing.
struct Words {
  JsonNode tokenizer, special, model;

  explicit Words(const std::string& folder)
      : tokenizer(read(folder + "/tokenizer_config.json")),
        special(read(folder + "/special_tokens_map.json")),
        model(read(folder + "/config.json")) {}
  static JsonNode read(const std::string& path) {
    return path_exists(path) ? JsonNode(read_text(path), path, JsonErrors::file, JsonNumbers::any) : JsonNode();
  }

  /// Returns the number of a special token such as "eos_token". The first two files give the text of the token.
  /// config.json gives the number itself, as "eos_token_id". Returns -1 if no file has the token.
  std::int32_t token(const std::string& name, const std::function<std::int32_t(const std::string&)>& token_of) const {
    for (const JsonNode* file : {&tokenizer, &special}) {
      if (!file->has(name) || file->at(name).is_null()) continue;
      const JsonNode text = file->at(name).is_object() ? file->at(name).at("content") : file->at(name);
      if (const std::int32_t token = token_of(text.text()); token >= 0) return token;
    }
    return number(name + "_id");
  }
  /// Returns the integer at a key of config.json, or the first integer of a list, or -1 if the key is missing or null.
  std::int32_t number(const std::string& key) const {
    if (!model.has(key) || model.at(key).is_null()) return -1;
    JsonNode node = model.at(key);
    if (node.is_array() && !node.elements().empty()) node = node.elements()[0];
    return static_cast<std::int32_t>(node.integer(-1, greatest_token - 1));
  }
  bool flag(const std::string& key, bool missing) const {
    return tokenizer.has(key) && !tokenizer.at(key).is_null() ? tokenizer.at(key).flag() : missing;
  }
};

template <class AnyTokenizer>
PublishedTokens tokens_of(const Words& words, const AnyTokenizer& tokenizer, bool target) {
  const auto token_of = [&](const std::string& piece) { return tokenizer.token_of(piece); };
  PublishedTokens published;
  published.pad = words.token("pad_token", token_of);
  published.start = target ? words.number("decoder_start_token_id") : words.token("bos_token", token_of);
  published.end = words.token("eos_token", token_of);
  published.size = std::max<std::int64_t>(words.number("vocab_size"), 0);
  for (const std::int32_t token : {published.pad, published.start, published.end})
    published.size = std::max(published.size, std::int64_t{token} + 1);
  return published;
}
}  // namespace

Json json_of(const PublishedTokens& published) {
  return {{"pad", published.pad},
          {"start", published.start},
          {"end", published.end},
          {"begins", published.begins},
          {"size", published.size}};
}

PublishedTokens read_published(const JsonNode& node) {
  const auto token = [&](const char* key) {
    return static_cast<std::int32_t>(node.at(key).integer(-1, greatest_token - 1));
  };
  PublishedTokens published{token("pad"), token("start"), token("end"), node.at("begins").flag(), 0};
  published.size = node.at("size").integer(std::max({published.pad, published.start, published.end}) + std::int64_t{1},
                                           greatest_token);
  return published;
}

std::string unnamed_piece(std::int32_t token) {
  return "<" + std::to_string(token) + ">";
}

std::unique_ptr<Tokenizer> published_tokenizer(const std::string& folder, bool target) {
  const Words words(folder);
  for (const char* name : {"tokenizer.model", "spiece.model"}) {
    const std::string path = folder + "/" + name;
    if (!path_exists(path)) continue;
    return of_file(path, [&] {
      const SentencePieceTokenizer plain(read_file(path));
      PublishedTokens published = tokens_of(words, plain, target);
      if (published.pad < 0) published.pad = plain.pad();
      if (published.end < 0) published.end = plain.end();
      if (published.start < 0 && !target) published.start = plain.start();
      // Llama's tokenizers (tokenizer.model) put the start token at the beginning of a text. T5's tokenizers
      // (spiece.model) do not.
      published.begins = published.start >= 0 && words.flag("add_bos_token", std::string(name) == "tokenizer.model");
      return std::make_unique<SentencePieceTokenizer>(plain.with_tokens(published));
    });
  }
  std::string path = folder + "/tokenizer.json";
  std::string text;
  if (path_exists(path)) {
    text = read_text(path);
  } else if (path = folder + "/vocab.txt"; path_exists(path)) {
    text = bert_json(read_utf8_lines(path), words.tokenizer);
  } else {
    return nullptr;
  }
  const PublishedTokenizer plain(text, path);
  PublishedTokens published = tokens_of(words, plain, target);
  if (published.end < 0) published.end = plain.template_end();
  if (plain.template_start() >= 0) {
    if (!target) published.start = plain.template_start();
    published.begins = true;
  } else {
    published.begins = published.start >= 0 && words.flag("add_bos_token", false);
  }
  published.size = std::max({published.size, std::int64_t{published.start} + 1, std::int64_t{published.end} + 1});
  return std::make_unique<PublishedTokenizer>(plain.with_tokens(published));
}

}  // namespace xtape
