#include "gguf/tokenizer.hpp"

#include <algorithm>
#include <cmath>

#include "base/messages/wording.hpp"
#include "base/system/durable.hpp"
#include "base/system/files.hpp"
#include "xtape/model.hpp"

namespace xtape::gguf {

namespace {
std::vector<std::string> texts_of(const JsonNode& node) {
  std::vector<std::string> texts;
  for (const JsonNode& each : node.elements()) texts.push_back(each.text());
  return texts;
}

/// A tokenizer in the metadata of a file.
class Reader {
 public:
  Reader(const FileData& file, Json& config) : file_(file), config_(config) {
    for (const Json& each : list("tokens", true)) {
      if (!each.is_string()) file_.fail("the key '" + tokenizer_prefix + "tokens' must have texts, not " + shown(each));
      tokens_.push_back(each.get<std::string>());
    }
    types_.assign(tokens_.size(), TokenType::normal);
    const Json& types = list("token_type", false);
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (!types[i].is_number_integer() || types[i] < 1 || types[i] > 6)
        file_.fail("the key '" + tokenizer_prefix + "token_type' has " + shown(types[i]) + " for token " +
                   std::to_string(i) + "; there are types 1 to 6");
      types_[i] = static_cast<TokenType>(types[i].get<int>());
    }
  }

  std::map<std::string, std::string> files() {
    const std::string& model = file_.text(tokenizer_prefix + "model");
    std::map<std::string, std::string> files;
    Json words = Json::object();
    add_special_tokens(words);
    if (model == "gpt2") {
      const Json* name = file_.find(tokenizer_prefix + "pre");
      const PreTokenizer pre = find_pre_tokenizer(name == nullptr ? "default" : file_.text(tokenizer_prefix + "pre"),
                                                  "'" + file_.path + "', key '" + tokenizer_prefix + "pre'");
      files["tokenizer.json"] = byte_pairs(pre).dump();
      words["add_bos_token"] = flag("add_bos_token", pre.begins);
    } else if (model == "llama") {
      files["tokenizer.model"] = sentencepiece_model(pieces());
      words["add_bos_token"] = flag("add_bos_token", true);
    } else if (model == "bert") {
      files["vocab.txt"] = word_pieces();
      words["do_lower_case"] = true;  // llama.cpp has no others
    } else {
      file_.fail("the key '" + tokenizer_prefix + "model' is \"" + model +
                 "\"; xtape reads the tokenizers gpt2, llama and bert");
    }
    if (file_.find("tokenizer.chat_template") != nullptr)
      words["chat_template"] = file_.text("tokenizer.chat_template");
    files["tokenizer_config.json"] = indented(words);
    return files;
  }

  /// Returns the tokens that end a text, in the form of generation_config.json.
  Json ends() const {
    Json ends = Json::array();
    for (const char* key : {"eos_token_id", "eot_token_id", "eom_token_id"})
      if (const std::int64_t token = this->token(key); token >= 0 && !contains(ends, Json(token)))
        ends.push_back(token);
    return ends;
  }

 private:
  /// Returns a list of the metadata: one value for each token, or an empty list if it is missing.
  const Json& list(const std::string& key, bool tokens) const {
    static const Json none = Json::array();
    const Json* value = file_.find(tokenizer_prefix + key);
    if (value == nullptr && !tokens) return none;
    if (value == nullptr || !value->is_array() || (!tokens && value->size() != tokens_.size()))
      file_.fail("the key '" + tokenizer_prefix + key + "' must be an array" +
                 (tokens ? " of texts" : " of a number for each of the " + std::to_string(tokens_.size()) + " tokens"));
    return *value;
  }
  bool flag(const std::string& key, bool missing) const {
    const Json* value = file_.find(tokenizer_prefix + key);
    if (value != nullptr && !value->is_boolean())
      file_.fail("the key '" + tokenizer_prefix + key + "' must be a flag, not " + shown(*value));
    return value == nullptr ? missing : value->get<bool>();
  }
  std::int64_t token(const std::string& key) const {
    return file_.find(tokenizer_prefix + key) == nullptr
               ? -1
               : file_.integer(tokenizer_prefix + key, 0, std::ssize(tokens_) - 1);
  }

  void add_special_tokens(Json& words) const {
    const std::pair<const char*, const char*> keys[] = {{"bos", "bos_token_id"},     {"eos", "eos_token_id"},
                                                        {"unk", "unknown_token_id"}, {"sep", "seperator_token_id"},
                                                        {"pad", "padding_token_id"}, {"cls", "cls_token_id"},
                                                        {"mask", "mask_token_id"}};
    for (const auto& [name, key] : keys) {
      const std::int64_t number = token(key);
      if (number < 0) continue;
      words[name + std::string("_token")] = tokens_[static_cast<std::size_t>(number)];
      config_[name + std::string("_token_id")] = number;
    }
  }

  /// A tokenizer.json of byte-level BPE.
  Json byte_pairs(const PreTokenizer& pre) const {
    Json vocabulary = Json::object(), added = Json::array();
    auto& entries = vocabulary.get_ref<Json::object_t&>();  // ordered JSON would search all keys for each insertion
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      entries.emplace_back(tokens_[i], i);
      if (types_[i] == TokenType::control || types_[i] == TokenType::user_defined)
        added.push_back({{"id", i},
                         {"content", tokens_[i]},
                         {"special", types_[i] == TokenType::control},
                         {"normalized", false},
                         {"single_word", false},
                         {"lstrip", false},
                         {"rstrip", false}});
    }
    const Json* merges = file_.find(tokenizer_prefix + "merges");
    if (merges == nullptr || !merges->is_array())
      file_.fail("the key '" + tokenizer_prefix + "merges' must be an array of texts");
    Json splits = Json::array();
    for (const std::string& regex : pre.regexes)
      splits.push_back(
          {{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}, {"invert", false}});
    const Json bytes = {{"type", "ByteLevel"},
                        {"add_prefix_space", flag("add_space_prefix", false)},
                        {"trim_offsets", true},
                        {"use_regex", pre.regexes.empty()}};
    splits.push_back(bytes);
    return {{"version", "1.0"},
            {"added_tokens", added},
            {"normalizer", pre.normalizer.empty() ? Json() : Json{{"type", pre.normalizer}}},
            {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", splits}}},
            {"post_processor", nullptr},
            {"decoder", bytes},
            {"model",
             {{"type", "BPE"},
              {"dropout", nullptr},
              {"unk_token", nullptr},
              {"continuing_subword_prefix", nullptr},
              {"end_of_word_suffix", nullptr},
              {"fuse_unk", false},
              {"byte_fallback", false},
              {"ignore_merges", pre.whole_words},
              {"vocab", vocabulary},
              {"merges", *merges}}}};
  }

  Pieces pieces() const {
    Pieces pieces;
    pieces.texts = tokens_;
    pieces.types = types_;
    const Json& scores = list("scores", false);
    for (const Json& score : scores) {
      if (!score.is_number() || !std::isfinite(score.get<double>()))
        file_.fail("the key '" + tokenizer_prefix + "scores' must have finite numbers, not " + shown(score));
      pieces.scores.push_back(score.get<float>());
    }
    if (pieces.scores.empty())
      file_.fail("it has no key '" + tokenizer_prefix + "scores', which the tokenizer llama needs");
    const auto unknown = static_cast<std::size_t>(std::max<std::int64_t>(0, token("unknown_token_id")));
    if (!contains(pieces.types, TokenType::unknown) && unknown < pieces.types.size())
      pieces.types[unknown] = TokenType::unknown;
    pieces.space_first = flag("add_space_prefix", true);
    pieces.fewer_spaces = flag("remove_extra_whitespaces", false);
    return pieces;
  }

  /// The lines of BERT's vocab.txt. In the file, a piece that begins a word has U+2581 before it, and others have no
  /// "##".
  std::string word_pieces() const {
    const std::string space = "\u2581";
    std::string lines;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const std::string& token = tokens_[i];
      if (token.find('\n') != std::string::npos) file_.fail("token " + std::to_string(i) + " has a line feed");
      const bool special = types_[i] != TokenType::normal;
      lines += (special ? token : token.starts_with(space) ? token.substr(space.size()) : "##" + token) + "\n";
    }
    return lines;
  }

  const FileData& file_;
  Json& config_;
  std::vector<std::string> tokens_;
  std::vector<TokenType> types_;
};
}  // namespace

std::vector<PreTokenizer> pre_tokenizers() {
  const std::string path = path_in(models_directory(), "gguf/pre_tokenizers.json");
  std::vector<PreTokenizer> all;
  for (const JsonNode& each : JsonNode(read_file(path), path, JsonErrors::definition).at("pre_tokenizers").elements()) {
    each.only({"about", "names", "regexes", "whole_words", "begins", "normalizer"});
    PreTokenizer pre;
    if (each.has("regexes")) pre.regexes = texts_of(each.at("regexes"));
    pre.whole_words = each.has("whole_words") && each.at("whole_words").flag();
    pre.begins = each.has("begins") && each.at("begins").flag();
    if (each.has("normalizer")) pre.normalizer = each.at("normalizer").text();
    for (const std::string& name : texts_of(each.at("names"))) {
      pre.name = name;
      all.push_back(pre);
    }
  }
  return all;
}

PreTokenizer find_pre_tokenizer(const std::string& name, const std::string& where) {
  const std::vector<PreTokenizer> all = pre_tokenizers();
  const auto found = std::ranges::find(all, name, &PreTokenizer::name);
  if (found == all.end())
    throw FileError(where + ": there is no pre-tokenizer \"" + name + "\"; models/gguf/pre_tokenizers.json has " +
                    joined(all, &PreTokenizer::name));
  return *found;
}

std::map<std::string, std::string> tokenizer_files(const FileData& file, Json& config) {
  if (file.find(tokenizer_prefix + "model") == nullptr || file.text(tokenizer_prefix + "model") == "none") return {};
  Reader reader(file, config);
  try {
    std::map<std::string, std::string> files = reader.files();
    if (const Json ends = reader.ends(); !ends.empty())
      files["generation_config.json"] = indented({{"eos_token_id", ends}});
    return files;
  } catch (const Json::type_error&) {
    file.fail("a token is not UTF-8 text");
  }
}

}  // namespace xtape::gguf
