#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/json/json_text.hpp"
#include "base/system/durable.hpp"
#include "base/system/files.hpp"
#include "base/system/folder_file.hpp"
#include "data/arrays/npz.hpp"
#include "data/tokenizers/added_tokens.hpp"
#include "data/tokenizers/published.hpp"
#include "xtape/tokenizers.hpp"

namespace xtape {

namespace {

namespace fs = std::filesystem;

/// Returns the argument of Tokenizer::files for a tokenizer whose JSON is at `path`.
std::string stem_of(const fs::path& path) {
  return (path.extension() == ".json" ? path.stem() : path.filename()).string();
}

std::string beside(const fs::path& path, const std::string& name) {
  return (path.parent_path() / name).string();
}

std::unique_ptr<Tokenizer> character_tokenizer(const JsonNode& json) {
  const std::string& unknown = json.at("unknown").text();
  if (unknown != "error" && unknown != "token")
    json.at("unknown").fail("\"unknown\" must be \"error\" or \"token\", not \"" + unknown + "\"");
  return std::make_unique<CharacterTokenizer>(
      json.at("characters").text(),
      unknown == "token" ? CharacterTokenizer::Unknown::token : CharacterTokenizer::Unknown::error,
      json.has("special_tokens") && json.at("special_tokens").flag());
}

/// Returns the JSON in which `tokenizer` would be saved.
Json saved(const Tokenizer& tokenizer) {
  return JsonText(tokenizer.to_json(), "the tokenizer", JsonErrors::file).root();
}

std::unique_ptr<Tokenizer> word_tokenizer(const JsonNode& json) {
  WordOptions options;
  options.lower_case = json.at("lower_case").flag();
  std::vector<std::string> words;
  for (const JsonNode& word : json.at("words").elements()) words.push_back(word.text());
  auto tokenizer = std::make_unique<WordTokenizer>(WordTokenizer::with_vocabulary(words, options));
  if (saved(*tokenizer).at("words") != json.at("words").json())
    json.at("words").fail("each must be a single word and not a special token");
  return tokenizer;
}

/// Returns the contents of `file`, which belongs to the tokenizer saved at `path`. Throws FileError if the file does
/// not have the checksum `crc32`.
std::string saved_file(const std::string& file, const JsonNode& crc32, const std::string& path) {
  std::string bytes = read_file(file);
  if (crc32.json() != crc32_of(bytes)) throw FileError(file + " is not the file that was saved with " + path);
  return bytes;
}

std::unique_ptr<Tokenizer> sentencepiece_tokenizer(const JsonNode& json, const std::string& path) {
  const std::string file = beside(path, stem_of(path) + ".model");
  // The library does not validate a model, so a damaged model must be rejected here.
  const std::string model = saved_file(file, json.at("model").at("crc32"), path);
  try {
    auto tokenizer = std::make_unique<SentencePieceTokenizer>(model);
    if (json.has("published")) *tokenizer = tokenizer->with_tokens(read_published(json.at("published")));
    return tokenizer;
  } catch (const Error& error) {
    throw FileError(file + ": " + error.what());
  }
}

std::unique_ptr<Tokenizer> gpt2_tokenizer(const JsonNode& json, const std::string& path) {
  for (const auto& [key, name] : {std::pair{"vocab_crc32", "vocab.json"}, {"merges_crc32", "merges.txt"}})
    saved_file(beside(path, name), json.at(key), path);
  const Gpt2Tokenizer plain(beside(path, "vocab.json"), beside(path, "merges.txt"),
                            {json.at("end_in_text").flag(), flag_of(json, "prefix_space", false)});
  if (!json.has("published")) return std::make_unique<Gpt2Tokenizer>(plain);
  return std::make_unique<PublishedTokenizer>(plain.with_tokens(read_published(json.at("published"))));
}

std::unique_ptr<Tokenizer> published_tokenizer_of(const JsonNode& json, const std::string& path) {
  const std::string file = beside(path, stem_of(path) + ".published.json");
  const std::string text = saved_file(file, json.at("file").at("crc32"), path);
  const PublishedTokens published = read_published(json.at("published"));
  return std::make_unique<PublishedTokenizer>(PublishedTokenizer(text, file).with_tokens(published));
}

}  // namespace

std::vector<std::string> Tokenizer::pieces(const Tokens& tokens) const {
  std::vector<std::string> pieces;
  pieces.reserve(tokens.size());
  for (const std::int32_t token : tokens) {
    check_token(token);
    pieces.push_back(token == pad()     ? pad_name
                     : token == start() ? start_name
                     : token == end()   ? end_name
                                        : decode({token}));
  }
  return pieces;
}

std::vector<TokenizerFile> Tokenizer::files(const std::string&) const {
  return {};
}

void Tokenizer::check_token(std::int32_t token) const {
  if (token < 0 || token >= size())
    throw Error("token " + std::to_string(token) + " is outside the vocabulary of " + std::to_string(size()));
}

void save_tokenizer(const Tokenizer& tokenizer, const std::string& path) {
  const std::vector<TokenizerFile> files = tokenizer.files(stem_of(path));
  for (const TokenizerFile& file : files) {
    const std::string to = beside(path, file.name);
    if (!path_exists(path) && path_exists(to) && read_file(to) != file.bytes)
      throw FileError(to + " belongs to another tokenizer: " + path + " needs a directory of its own");
  }
  for (const TokenizerFile& file : files) write_file(beside(path, file.name), file.bytes);
  write_file(path, tokenizer.to_json());
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path) {
  if (opens_as_folder(path)) return published_tokenizer(path, false);
  const JsonNode json(read_file(path), path + " is not a tokenizer", JsonErrors::file);
  const std::string& kind = json.at("kind").text();
  try {
    if (kind == "character") return character_tokenizer(json);
    if (kind == "words") return word_tokenizer(json);
    if (kind == "sentencepiece") return sentencepiece_tokenizer(json, path);
    if (kind == "gpt2") return gpt2_tokenizer(json, path);
    // Older versions of xtape write "byte_pairs".
    if (kind == "published" || kind == "byte_pairs") return published_tokenizer_of(json, path);
  } catch (const FileError&) {
    throw;
  } catch (const Error& error) {
    throw FileError(path + " is not a tokenizer: " + error.what());
  }
  json.at("kind").fail("tokenizer kind '" + kind +
                       "' is not known; known: character, words, sentencepiece, gpt2, published");
}

std::unique_ptr<Tokenizer> load_target_tokenizer(const std::string& folder) {
  return published_tokenizer(folder, true);
}

}  // namespace xtape
