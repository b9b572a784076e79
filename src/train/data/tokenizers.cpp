// The tokenizers of a run: made from the training split, saved, loaded.
#include <nlohmann/json.hpp>
#include <set>

#include "base/bytes/encodings.hpp"
#include "base/json/json_text.hpp"
#include "base/system/durable.hpp"
#include "base/system/files.hpp"
#include "base/system/folder_file.hpp"
#include "data/tokenizers/published.hpp"
#include "data/tokenizers/utf8.hpp"
#include "train/data/data_kind.hpp"

namespace xtape::train {

namespace {
using Kind = Column::Kind;
constexpr const char* labels_file = "/labels.json";
constexpr const char* chats_file = "/chat_template.json";

/// Throws Error with the place of the first text of the training split that is not UTF-8.
void check_utf8_texts(const Recipe::Data& data, const DataSplit& training) {
  if (!training.not_utf8.empty()) throw Error(training.not_utf8);
  const TextPlace place = places(data, training);
  for_each_column(data, [&](const Column& column, std::size_t field) {
    if (column.kind != Kind::text && column.kind != Kind::target) return;
    for (std::size_t row = 0; row < training.columns[field].size(); ++row) {
      try {
        check_utf8(training.columns[field][row]);
      } catch (const Error& error) {
        throw Error(place(row, field) + ": " + error.what());
      }
    }
  });
}
}  // namespace

bool is_made(const TokenizerSettings& settings) {
  return settings.kind != "saved" && settings.kind != "gpt2" &&
         (settings.kind != "words" || settings.vocabulary.empty());
}

std::shared_ptr<const Tokenizer> make_tokenizer(const Recipe& recipe, const std::vector<std::string>& lines) {
  const TokenizerSettings& settings = recipe.tokenizer;
  if (settings.kind == "saved") return load_tokenizer(settings.path);
  if (settings.kind == "sentencepiece") return std::make_shared<SentencePieceTokenizer>(lines, settings.pieces);
  if (settings.kind == "gpt2") return std::make_shared<Gpt2Tokenizer>(settings.vocab, settings.merges, settings.gpt2);
  if (settings.kind == "words")
    return std::make_shared<WordTokenizer>(
        settings.vocabulary.empty() ? WordTokenizer(lines, settings.words) : of_file(settings.vocabulary, [&] {
          return WordTokenizer::with_vocabulary(read_lines(settings.vocabulary, recipe.data.reading), settings.words);
        }));
  return std::make_shared<CharacterTokenizer>(lines, settings.unknown, recipe.data.has_rows());
}

Tokenizers DataKind::tokenizers(const Recipe& recipe, const DataSplit& training) const {
  const Recipe::Data& data = recipe.data;
  const TokenizerSettings& settings = recipe.tokenizer;
  if (settings.kind != "saved" && settings.kind != "gpt2") check_utf8_texts(data, training);
  if (data.has_pairs() && settings.kind == "saved" && opens_as_folder(settings.path))
    return {load_tokenizer(settings.path), load_target_tokenizer(settings.path), {}};
  Tokenizers made;
  if (settings.joint || !data.has_pairs()) {
    made.source = made.target = make_tokenizer(recipe, texts(data, training, {Kind::text, Kind::target}));
  } else {
    made.target = make_tokenizer(recipe, texts(data, training, {Kind::target}));
    made.source = make_tokenizer(recipe, texts(data, training, {Kind::text}));
  }
  for_each_column(data, [&](const Column& column, std::size_t field) {
    const std::vector<std::string>& texts = training.columns[field];
    std::set<std::string> labels;
    if (column.kind == Kind::label) labels.insert(texts.begin(), texts.end());
    if (column.kind == Kind::tags)
      for (const std::string& tags : texts)
        for (const std::string& tag : words_in(tags)) labels.insert(tag);
    if (!labels.empty()) made.labels.assign(labels.begin(), labels.end());
  });
  return made;
}

std::shared_ptr<const Tokenizer> with_special_tokens(const std::shared_ptr<const Tokenizer>& tokenizer,
                                                     const std::vector<std::string>& names, const Recipe& recipe) {
  const auto* pieces = dynamic_cast<const SentencePieceTokenizer*>(tokenizer.get());
  if (recipe.tokenizer.kind != "sentencepiece" || pieces == nullptr) return tokenizer;
  PublishedTokens published{pieces->pad(), pieces->start(), pieces->end(), false, pieces->size()};
  for (const std::string& name : names)
    if (pieces->token_of(name) < 0)
      published.added.push_back(
          {.content = name, .token = static_cast<std::int32_t>(published.size++), .special = true, .found = false});
  return std::make_shared<SentencePieceTokenizer>(pieces->with_tokens(published));
}

void save_tokenizers(const Tokenizers& tokenizers, const std::string& directory) {
  if (!tokenizers.labels.empty()) write_file(directory + labels_file, indented(tokenizers.labels));
  if (tokenizers.chats) write_file(directory + chats_file, tokenizers.chats->to_json());
  if (!tokenizers.target) return;
  if (tokenizers.source == tokenizers.target) {
    save_tokenizer(*tokenizers.target, directory + "/tokenizer.json");
    return;
  }
  save_tokenizer(*tokenizers.source, directory + "/source_tokenizer.json");
  save_tokenizer(*tokenizers.target, directory + "/target_tokenizer.json");
}

Tokenizers load_tokenizers(const std::string& directory, const Recipe::Data& data) {
  const auto load = [&](const std::string& name) {
    return std::shared_ptr<const Tokenizer>(load_tokenizer(directory + "/" + name));
  };
  Tokenizers loaded;
  if (path_exists(directory + labels_file)) {
    const std::string file = directory + labels_file;
    const JsonNode json(read_file(file), file, JsonErrors::file);
    for (const JsonNode& label : json.elements()) loaded.labels.push_back(label.text());
  }
  if (path_exists(directory + chats_file))
    loaded.chats = std::make_shared<ChatTemplate>(read_file(directory + chats_file), directory + chats_file);
  if (!data.has_tokens() && !path_exists(directory + "/tokenizer.json")) return loaded;
  const bool one = !path_exists(directory + "/source_tokenizer.json");
  loaded.target = load(one ? "tokenizer.json" : "target_tokenizer.json");
  loaded.source = one ? loaded.target : load("source_tokenizer.json");
  return loaded;
}

}  // namespace xtape::train
