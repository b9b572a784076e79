// Writes tokenizers as the files of a folder in the format of the Hugging Face Hub.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json/json_text.hpp"
#include "base/system/durable.hpp"
#include "data/tokenizers/added_tokens.hpp"
#include "data/tokenizers/published.hpp"
#include "data/tokenizers/utf8.hpp"

namespace xtape {

namespace {
constexpr const char* shown_unknown = "\uFFFD";
/// The white space between the words of a WordTokenizer: see is_space.
constexpr const char* spaces =
    R"([\x{9}-\x{D}\x{1C}-\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}]+)";

/// Returns the piece of the unknown token as decoded texts show it.
std::string unknown_piece(const Json& saved) {
  const bool shown = saved.at("kind") == "character" &&
                     saved.at("characters").get<std::string>().find(shown_unknown) == std::string::npos;
  return shown ? shown_unknown : unknown_name;
}

/// Returns the pieces of a tokenizer of whole words or characters, by token. `json` is its saved form.
std::vector<std::string> pieces_of(const Tokenizer& tokenizer, const Json& json) {
  std::vector<std::string> pieces;
  const bool special = tokenizer.start() >= 0, words = json.at("kind") == "words";
  if (special) pieces = {pad_name, unknown_piece(json), start_name, end_name};
  if (words)
    for (const Json& word : json.at("words")) pieces.push_back(word);
  const std::string characters = words ? "" : json.at("characters").get<std::string>();
  for (std::size_t at = 0; at < characters.size();) {
    const std::size_t begin = at;
    next_character(characters, at);
    pieces.push_back(characters.substr(begin, at - begin));
  }
  if (!special && tokenizer.unknown() >= 0) pieces.push_back(unknown_piece(json));
  return pieces;
}

Json special_token(std::int32_t token, const std::string& content) {
  return json_of(AddedToken{.content = content, .token = token, .special = true});
}

/// Returns a post-processor that puts the start token before a text.
Json beginning_with(const std::string& start, std::int32_t token) {
  const Json first = {{"SpecialToken", {{"id", start}, {"type_id", 0}}}};
  const auto text = [](const char* which) { return Json{{"Sequence", {{"id", which}, {"type_id", 0}}}}; };
  return {{"type", "TemplateProcessing"},
          {"single", {first, text("A")}},
          {"pair", {first, text("A"), text("B")}},
          {"special_tokens", {{start, {{"id", start}, {"ids", {token}}, {"tokens", {start}}}}}}};
}

/// Returns the tokenizer.json of a tokenizer of whole words or characters.
Json word_level(const Tokenizer& tokenizer, const Json& saved, bool begins) {
  const bool words = saved.at("kind") == "words";
  Json added = Json::array();
  Json::object_t vocabulary;
  for (const std::string& piece : pieces_of(tokenizer, saved)) vocabulary.emplace_back(piece, vocabulary.size());
  if (tokenizer.start() >= 0)
    for (const auto& [token, name] : {std::pair(pad_token, pad_name), {start_token, start_name}, {end_token, end_name}})
      added.push_back(special_token(token, name));
  const Json pattern = {{"Regex", words ? spaces : R"([\s\S])"}};
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", added},
          {"normalizer", words && saved.at("lower_case") == true ? Json{{"type", "Lowercase"}} : Json()},
          {"pre_tokenizer",
           {{"type", "Split"}, {"pattern", pattern}, {"behavior", words ? "Removed" : "Isolated"}, {"invert", false}}},
          {"post_processor", begins ? beginning_with(start_name, start_token) : Json()},
          {"decoder", words ? Json() : Json{{"type", "Fuse"}}},
          {"model",
           {{"type", "WordLevel"},
            {"vocab", vocabulary},
            {"unk_token", tokenizer.unknown() >= 0 ? unknown_piece(saved) : ""}}}};
}
}  // namespace

void save_published(const Tokenizer& tokenizer, const std::string& folder, bool begins) {
  const Json saved = JsonText(tokenizer.to_json(), "the tokenizer", JsonErrors::file).root();
  const std::string kind = saved.at("kind");
  const bool made = kind == "words" || kind == "character";
  Json config = {{"add_bos_token", begins}, {"clean_up_tokenization_spaces", false}};
  config["tokenizer_class"] = kind == "sentencepiece" ? "LlamaTokenizer"
                              : kind == "gpt2"        ? "GPT2Tokenizer"
                                                      : "PreTrainedTokenizerFast";
  const PublishedTokens published =
      saved.contains("published") && saved.at("published").is_object()
          ? read_published(JsonNode(saved.at("published").dump(), "the tokenizer", JsonErrors::file))
          : PublishedTokens();
  for (const AddedToken& token : published.added) {
    Json entry = json_of(token);
    entry.erase("id");
    config["added_tokens_decoder"][std::to_string(token.token)] = entry;
  }
  for (const auto& [role, token] : {std::pair("bos_token", tokenizer.start()),
                                    {"eos_token", tokenizer.end()},
                                    {"pad_token", tokenizer.pad()},
                                    {"unk_token", tokenizer.unknown()}}) {
    if (token < 0 || token >= tokenizer.size()) continue;
    const std::string piece =
        made && token == tokenizer.unknown() ? unknown_piece(saved) : tokenizer.pieces({token})[0];
    if (made || tokenizer.token_of(piece) == token) config[role] = piece;
  }
  if (kind == "gpt2") config["add_prefix_space"] = saved.at("prefix_space");
  if (kind == "sentencepiece") config["legacy"] = published.spaced;
  make_folders(folder);
  if (made) write_file(path_in(folder, "tokenizer.json"), word_level(tokenizer, saved, begins).dump(1) + "\n");
  for (const TokenizerFile& file : tokenizer.files("tokenizer"))
    write_file(path_in(folder, kind == "published" ? "tokenizer.json" : file.name), file.bytes);
  write_file(path_in(folder, "tokenizer_config.json"), config.dump(2) + "\n");
}

}  // namespace xtape
