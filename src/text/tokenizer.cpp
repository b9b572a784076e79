#include <filesystem>
#include <nlohmann/json.hpp>

#include "files.hpp"
#include "special_tokens.hpp"
#include "xtape/text.hpp"

namespace xtape {

namespace {

namespace fs = std::filesystem;

/// What Tokenizer::files is given for a tokenizer whose JSON is at `path`.
std::string stem_of(const fs::path& path) {
  return (path.extension() == ".json" ? path.stem() : path.filename()).string();
}

std::string beside(const fs::path& path, const std::string& name) {
  return (path.parent_path() / name).string();
}

void write_whole(const std::string& path, const std::string& bytes) {
  ReplacedFile file(path);
  file.write(bytes.data(), bytes.size());
  file.commit();
}

using Json = nlohmann::json;

std::unique_ptr<Tokenizer> character_tokenizer(const Json& json) {
  const std::string unknown = json.at("unknown");
  if (unknown != "error" && unknown != "token")
    throw Error("\"unknown\" is \"error\" or \"token\", not \"" + unknown + "\"");
  return std::make_unique<CharacterTokenizer>(
      json.at("characters").get<std::string>(),
      unknown == "token" ? CharacterTokenizer::Unknown::token : CharacterTokenizer::Unknown::error,
      json.value("special_tokens", false));
}

std::unique_ptr<Tokenizer> word_tokenizer(const Json& json) {
  WordOptions options;
  options.lower_case = json.at("lower_case");
  const std::vector<std::string> words = json.at("words");
  auto tokenizer = std::make_unique<WordTokenizer>(WordTokenizer::with_vocabulary(words, options));
  if (Json::parse(tokenizer->to_json()).at("words") != json.at("words"))
    throw Error("\"words\" are single words, none of them a special token");
  return tokenizer;
}

std::unique_ptr<Tokenizer> sentencepiece_tokenizer(const Json& json, const std::string& path) {
  const std::string file = beside(path, stem_of(path) + ".model");
  const std::string model = read_text(file);
  try {
    auto tokenizer = std::make_unique<SentencePieceTokenizer>(model);
    if (Json::parse(tokenizer->to_json()) == json) return tokenizer;
  } catch (const Error& error) {
    throw FileError(file + ": " + error.what());
  }
  throw FileError(file + " is not the model that was saved with " + path);
}

std::unique_ptr<Tokenizer> gpt2_tokenizer(const fs::path& directory, const Gpt2Options& options) {
  return std::make_unique<Gpt2Tokenizer>((directory / "vocab.json").string(), (directory / "merges.txt").string(),
                                         options);
}

std::unique_ptr<Tokenizer> gpt2_tokenizer(const Json& json, const fs::path& path) {
  auto tokenizer = gpt2_tokenizer(path.parent_path(), {json.at("end_in_text").get<bool>()});
  const Json found = Json::parse(tokenizer->to_json());
  for (const auto& [key, name] : {std::pair{"vocab_crc32", "vocab.json"}, {"merges_crc32", "merges.txt"}})
    if (found.at(key) != json.at(key))
      throw FileError(beside(path, name) + " is not the file that was saved with " + path.string());
  return tokenizer;
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
    if (!fs::exists(path) && fs::exists(to) && read_text(to) != file.bytes)
      throw FileError(to + " belongs to another tokenizer: " + path + " needs a directory of its own");
  }
  for (const TokenizerFile& file : files) write_whole(beside(path, file.name), file.bytes);
  write_whole(path, tokenizer.to_json());
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path) {
  if (fs::is_directory(path)) return gpt2_tokenizer(fs::path(path), Gpt2Options{});
  const std::string text = read_text(path);
  try {
    const Json json = Json::parse(text);
    const std::string kind = json.at("kind");
    if (kind == "character") return character_tokenizer(json);
    if (kind == "words") return word_tokenizer(json);
    if (kind == "sentencepiece") return sentencepiece_tokenizer(json, path);
    if (kind == "gpt2") return gpt2_tokenizer(json, path);
    throw Error("tokenizer kind '" + kind + "' is not known; known: character, words, sentencepiece, gpt2");
  } catch (const FileError&) {
    throw;
  } catch (const std::exception& error) {
    throw FileError(path + " is not a tokenizer: " + error.what());
  }
}

}  // namespace xtape
