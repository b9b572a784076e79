#include "data/tokenizers/published.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/messages/wording.hpp"
#include "base/system/durable.hpp"
#include "base/system/files.hpp"
#include "data/tokenizers/added_tokens.hpp"
#include "data/tokenizers/utf8.hpp"
#include "xtape/text.hpp"
#include "xtape/tokenizers.hpp"

namespace xtape {

bool is_unset(const JsonNode& object, const char* key) {
  if (!object.has(key)) return true;
  const Json& value = object.at(key).json();
  return value.is_null() || value == false || value == "";
}

bool flag_of(const JsonNode& object, const char* key, bool missing) {
  return object.has(key) && !object.at(key).is_null() ? object.at(key).flag() : missing;
}

std::string text_of(const JsonNode& object, const char* key, const std::string& missing) {
  return object.has(key) && !object.at(key).is_null() ? object.at(key).text() : missing;
}

std::vector<JsonNode> parts_of(const JsonNode& node, const char* list) {
  if (node.at("type").text() != "Sequence") return {node};
  std::vector<JsonNode> parts;
  for (const JsonNode& each : node.at(list).elements())
    for (JsonNode& part : parts_of(each, list)) parts.push_back(std::move(part));
  return parts;
}

std::string space_of(const JsonNode& node) {
  const std::string space = text_of(node, "replacement", "\u2581");
  if (space.empty()) node.at("replacement").fail("\"replacement\" must not be empty");
  return space;
}

std::string prepend_scheme(const JsonNode& node) {
  // Older files have add_prefix_space instead.
  return text_of(node, "prepend_scheme", flag_of(node, "add_prefix_space", true) ? "always" : "never");
}

std::int32_t read_token(const JsonNode& node) {
  return static_cast<std::int32_t>(node.integer(0, most_pieces - 1));
}

WordPattern read_pattern(const JsonNode& node) {
  const bool regex = node.has("Regex");
  const JsonNode text = node.at(regex ? "Regex" : "String");
  if (!regex && text.text().empty()) text.fail("the text to be found must not be empty");
  return at_node(text, [&] { return regex ? WordPattern(text.text()) : WordPattern::literal(text.text()); });
}

void refuse_type(const JsonNode& node, const std::string& what, const std::string& supported) {
  node.at("type").fail(what + " \"" + node.at("type").text() + "\" is not supported; supported: " + supported);
}

namespace {
constexpr std::int64_t greatest_token = std::numeric_limits<std::int32_t>::max();

/// The files of a folder that describe the special and added tokens of its tokenizer. Any of them may be missing.
struct Words {
  JsonNode tokenizer, special, added, model, generation;
  std::map<std::string, AddedToken> settled;  // the added tokens of tokenizer.json; added_tokens.json has no settings

  explicit Words(const std::string& folder)
      : tokenizer(read(folder + "/tokenizer_config.json")),
        special(read(folder + "/special_tokens_map.json")),
        added(read(folder + "/added_tokens.json")),
        model(read(folder + "/config.json")),
        generation(read(folder + "/generation_config.json")) {}
  static JsonNode read(const std::string& path) {
    if (!path_exists(path)) return {};
    JsonNode node(read_text(path), path, JsonErrors::file, JsonNumbers::any);
    if (!node.is_object()) node.fail("an object belongs here");
    return node;
  }
  static std::optional<JsonNode> entry(const JsonNode& file, const std::string& key) {
    if (file.source() == nullptr || !file.has(key) || file.at(key).is_null()) return std::nullopt;
    return file.at(key);
  }
  static std::string text(const JsonNode& node) { return (node.is_object() ? node.at("content") : node).text(); }

  /// Returns the number of a special token such as "eos_token". The first two files give the text of the token.
  /// config.json gives the number itself, as "eos_token_id". Returns -1 if no file has the token.
  std::int32_t token(const std::string& name, const std::function<std::int32_t(const std::string&)>& token_of) const {
    for (const JsonNode* file : {&tokenizer, &special})
      if (const auto node = entry(*file, name))
        if (const std::int32_t token = token_of(text(*node)); token >= 0) return token;
    return number(name + "_id");
  }
  /// Returns the integers at a key: an integer alone, or those of a list.
  static Tokens numbers(const JsonNode& file, const std::string& key) {
    const auto node = entry(file, key);
    Tokens all;
    if (!node) return all;
    for (const JsonNode& each : node->is_array() ? node->elements() : std::vector<JsonNode>{*node})
      all.push_back(static_cast<std::int32_t>(each.integer(-1, greatest_token - 1)));
    return all;
  }
  /// Returns the first integer at a key of config.json or else of generation_config.json, or -1.
  std::int32_t number(const std::string& key) const {
    for (const JsonNode* file : {&model, &generation})
      if (const Tokens all = numbers(*file, key); !all.empty()) return all[0];
    return -1;
  }
  /// Returns the tokens that end a generated text.
  Tokens ends() const {
    const char* key = "eos_token_id";
    Tokens all = numbers(entry(generation, key) ? generation : model, key);
    all.erase(std::remove(all.begin(), all.end(), -1), all.end());
    return all;
  }
  bool flag(const std::string& key, bool missing) const {
    const auto node = entry(tokenizer, key);
    return node ? node->flag() : missing;
  }

  /// Returns the texts of the special tokens, with `more` also those without a role.
  std::set<std::string> special_texts(bool more) const {
    std::set<std::string> texts;
    for (const JsonNode* file : {&tokenizer, &special}) {
      for (const char* role : {"bos", "eos", "unk", "sep", "pad", "cls", "mask"})
        if (const auto node = entry(*file, role + std::string("_token"))) texts.insert(text(*node));
      for (const char* list : {"additional_special_tokens", "extra_special_tokens"})
        if (const auto node = entry(*file, list); more && node && node->is_array())
          for (const JsonNode& each : node->elements()) texts.insert(text(each));
    }
    return texts;
  }
  /// Returns the file that adds tokens. added_tokens.json is an older form of the entry "added_tokens_decoder" of
  /// tokenizer_config.json, and is not read if there is this entry.
  const JsonNode& adding() const { return entry(tokenizer, "added_tokens_decoder") ? tokenizer : added; }
  std::vector<AddedToken> added_tokens() const {
    std::vector<AddedToken> all;
    if (const auto tokens = entry(tokenizer, "added_tokens_decoder")) {
      const std::set<std::string> named = special_texts(false);
      for (const auto& [number, node] : tokens->entries()) {
        AddedToken& token = all.emplace_back(read_added_token(node, number_of(number, node)));
        token.special = token.special || named.count(token.content) > 0;
        token.found = !token.special;
      }
    } else if (added.source() != nullptr) {
      const std::set<std::string> named = special_texts(true);
      for (const auto& [content, node] : added.entries()) {
        if (content.empty()) node.fail_at_key("the text of an added token must not be empty");
        const bool ordinary = named.count(content) == 0;
        const auto found = settled.find(content);
        all.push_back(found != settled.end() ? found->second : AddedToken{content, -1, !ordinary, ordinary, ordinary});
        all.back().token = read_token(node);
      }
    }
    return all;
  }
  static std::int32_t number_of(const std::string& text, const JsonNode& node) {
    if (text.empty() || text.size() > 7 || text.find_first_not_of("0123456789") != std::string::npos ||
        std::stoi(text) >= most_pieces)
      node.fail_at_key("the number of a token belongs here: 0 to " + std::to_string(most_pieces - 1));
    return std::stoi(text);
  }
};

/// Returns the tokens of a folder, whose pieces are those of `plain`.
template <class AnyTokenizer>
PublishedTokens tokens_of(const Words& words, const AnyTokenizer& plain, bool target) {
  PublishedTokens published;
  published.added = words.added_tokens();
  const auto token_of = [&](const std::string& piece) {
    const auto found =
        std::ranges::find_if(published.added, [&](const AddedToken& each) { return each.content == piece; });
    return found != published.added.end() ? found->token : plain.token_of(piece);
  };
  published.pad = words.token("pad_token", token_of);
  published.start = target ? words.number("decoder_start_token_id") : words.token("bos_token", token_of);
  published.end = words.token("eos_token", token_of);
  published.ends = words.ends();
  published.size = std::max<std::int64_t>(words.number("vocab_size"), 0);
  return published;
}

/// Returns `plain` with the tokens of a folder. Errors name the file that adds tokens.
template <class AnyTokenizer>
std::unique_ptr<Tokenizer> with_tokens(const Words& words, const AnyTokenizer& plain, PublishedTokens published) {
  for (const std::int32_t token : {published.pad, published.start, published.end})
    published.size = std::max(published.size, std::int64_t{token} + 1);
  const auto make = [&] { return std::make_unique<AnyTokenizer>(plain.with_tokens(published)); };
  return published.added.empty() ? make() : of_file(words.adding().file(), make);
}

/// Returns the tokenizer of a sentencepiece model.
std::unique_ptr<Tokenizer> of_model(const Words& words, const std::string& path, bool target, bool llama) {
  const SentencePieceTokenizer plain = of_file(path, [&] { return SentencePieceTokenizer(read_file(path)); });
  PublishedTokens published = tokens_of(words, plain, target);
  if (published.pad < 0) published.pad = plain.pad();
  if (published.end < 0) published.end = plain.end();
  if (published.start < 0 && !target) published.start = plain.start();
  published.begins = published.start >= 0 && words.flag("add_bos_token", llama);
  published.spaced = words.flag("legacy", !llama) || !llama;
  return with_tokens(words, plain, published);
}

std::unique_ptr<Tokenizer> of_pipeline(const Words& words, const PublishedTokenizer& plain, bool target) {
  PublishedTokens published = tokens_of(words, plain, target);
  if (published.end < 0) published.end = plain.end() >= 0 ? plain.end() : plain.template_end();
  if (plain.template_start() >= 0) {
    if (!target) published.start = plain.template_start();
    published.begins = true;
  } else {
    published.begins = published.start >= 0 && words.flag("add_bos_token", false);
  }
  return with_tokens(words, plain, published);
}

/// Returns GPT-2's tokenizer. Other tokenizers have the same files, but split texts into words by other patterns.
std::unique_ptr<Tokenizer> of_two_files(const Words& words, const std::string& folder, bool target) {
  if (const auto name = Words::entry(words.tokenizer, "tokenizer_class"); name)
    if (!contains(
            std::vector<std::string>{"GPT2Tokenizer", "GPT2TokenizerFast", "CodeGenTokenizer", "CodeGenTokenizerFast"},
            name->text()))
      name->fail("with vocab.json and merges.txt the class must be GPT2Tokenizer or CodeGenTokenizer, not " +
                 name->text() + ": a tokenizer of this class can be read from its tokenizer.json");
  Gpt2Options options;
  options.prefix_space = words.flag("add_prefix_space", false);
  return of_pipeline(words, Gpt2Tokenizer(folder + "/vocab.json", folder + "/merges.txt", options), target);
}
}  // namespace

Json json_of(const PublishedTokens& published) {
  Json json = {{"pad", published.pad},
               {"start", published.start},
               {"end", published.end},
               {"begins", published.begins},
               {"size", published.size}};
  if (!published.ends.empty()) json["ends"] = published.ends;
  for (const AddedToken& token : published.added) json["added"].push_back(json_of(token));
  if (published.spaced) json["spaced"] = true;
  return json;
}

PublishedTokens read_published(const JsonNode& node) {
  const auto token = [&](const JsonNode& at) { return static_cast<std::int32_t>(at.integer(-1, greatest_token - 1)); };
  PublishedTokens published{token(node.at("pad")), token(node.at("start")), token(node.at("end")),
                            node.at("begins").flag(), 0};
  published.size = node.at("size").integer(std::max({published.pad, published.start, published.end}) + std::int64_t{1},
                                           greatest_token);
  // Older versions of xtape write none of these.
  if (node.has("ends"))
    for (const JsonNode& each : node.at("ends").elements()) published.ends.push_back(token(each));
  if (node.has("added"))
    for (const JsonNode& each : node.at("added").elements())
      published.added.push_back(read_added_token(each, read_token(each.at("id"))));
  published.spaced = flag_of(node, "spaced", false);
  return published;
}

std::string unnamed_piece(std::int32_t token) {
  return "<" + std::to_string(token) + ">";
}

std::unique_ptr<Tokenizer> published_tokenizer(const std::string& folder, bool target) {
  if (const std::string own = path_in(folder, target ? target_tokenizer_folder : source_tokenizer_folder);
      is_folder(own))
    return published_tokenizer(own, target);
  const auto path = [&](const char* name) { return folder + "/" + name; };
  const auto has = [&](const char* name) { return path_exists(path(name)); };
  const bool model = has("tokenizer.model"), spiece = has("spiece.model"),
             two_files = has("vocab.json") || has("merges.txt"),
             others = model || spiece || two_files || has("vocab.txt");
  const auto has_pieces = [&] {
    return JsonNode(read_text(path("tokenizer.json")), path("tokenizer.json"), JsonErrors::file).has("model");
  };
  Words words(folder);
  // A tokenizer.json that xtape saved beside the files that it needs has no "model".
  if (has("tokenizer.json") && (!others || has_pieces())) {
    const std::string file = path("tokenizer.json"), text = read_text(file);
    const PublishedTokenizer plain(text, file);
    const JsonNode json(words.added.source() != nullptr ? text : "{}", file, JsonErrors::file);
    if (const auto list = Words::entry(json, "added_tokens"))
      for (const JsonNode& each : list->elements()) {
        const AddedToken token = read_added_token(each, read_token(each.at("id")));
        words.settled.insert_or_assign(token.content, token);
      }
    return of_pipeline(words, plain, target);
  }
  // Llama's tokenizers (tokenizer.model) put the start token at the beginning of a text. T5's tokenizers
  // (spiece.model) do not.
  if (model || spiece) return of_model(words, path(model ? "tokenizer.model" : "spiece.model"), target, model);
  if (two_files) return of_two_files(words, folder, target);
  if (has("vocab.txt"))
    return of_pipeline(
        words, PublishedTokenizer(bert_json(read_utf8_lines(path("vocab.txt")), words.tokenizer), path("vocab.txt")),
        target);
  throw FileError(
      folder +
      " has no tokenizer: it needs tokenizer.json, tokenizer.model, spiece.model, vocab.json and merges.txt, or "
      "vocab.txt");
}

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
