#include <algorithm>
#include <nlohmann/json.hpp>

#include "data/tokenizers/published.hpp"
#include "xtape/error.hpp"

namespace xtape {

std::string bert_json(const std::vector<std::string>& lines, const JsonNode& config) {
  const bool given = config.source() != nullptr;
  const auto flag = [&](const char* key) { return given ? flag_of(config, key, true) : true; };
  Json vocabulary = Json::object();
  for (const std::string& line : lines) {
    if (line.empty() || vocabulary.contains(line))
      throw FileError("vocab.txt, line " + std::to_string(vocabulary.size() + 1) + ": \"" + line +
                      "\" must be a piece that is not in the lines before");
    vocabulary[line] = vocabulary.size();
  }
  // Returns the text of a special token. The config may rename it.
  const auto special = [&](const char* key, const char* usual) {
    std::string text = usual;
    if (given && config.has(key) && !config.at(key).is_null())
      text = (config.at(key).is_object() ? config.at(key).at("content") : config.at(key)).text();
    if (!vocabulary.contains(text)) throw FileError("vocab.txt has no piece \"" + text + "\" for the " + key);
    return text;
  };
  const std::string unknown = special("unk_token", "[UNK]"), first = special("cls_token", "[CLS]"),
                    last = special("sep_token", "[SEP]");
  Json added = Json::array();
  for (const std::string& text : {special("pad_token", "[PAD]"), unknown, first, last})
    added.push_back({{"id", vocabulary[text]}, {"content", text}, {"special", true}, {"normalized", false}});
  Json normalizer = {{"type", "BertNormalizer"},
                     {"clean_text", true},
                     {"handle_chinese_chars", flag("tokenize_chinese_chars")},
                     {"strip_accents", nullptr},
                     {"lowercase", flag("do_lower_case")}};
  if (given && config.has("strip_accents")) normalizer["strip_accents"] = config.at("strip_accents").json();
  const Json json = {{"added_tokens", added},
                     {"normalizer", normalizer},
                     {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
                     {"post_processor",
                      {{"type", "BertProcessing"},
                       {"sep", Json::array({last, vocabulary[last]})},
                       {"cls", Json::array({first, vocabulary[first]})}}},
                     {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
                     {"model",
                      {{"type", "WordPiece"},
                       {"unk_token", unknown},
                       {"continuing_subword_prefix", "##"},
                       {"max_input_chars_per_word", 100},
                       {"vocab", vocabulary}}}};
  return json.dump();
}

}  // namespace xtape
