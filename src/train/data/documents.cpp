// Data of kind "documents": a row is a text.
#include "data/tokenizers/utf8.hpp"
#include "train/data/data_kind.hpp"

namespace xtape::train {

namespace {
struct DocumentData final : DataKind {
  DocumentData()
      : DataKind({.name = "documents",
                  .files = "text",
                  .task = Task::texts,
                  .title = "texts",
                  .row = ", text ",
                  .columns = {{"text", Column::Kind::target}}}) {
    using Data = Recipe::Data;
    keys = {{{file_key("text", "a file or several"),
              fields_key(),
              {"separator", &Data::separator, "what ends a text", Names{"line", "blank_line"}},
              {"prompt_end", &Data::prompt_end, "the prompt ends with this string; its tokens are not targets"},
              pack_key(),
              corruption_key()}}};
  }

  void read(const Recipe::Data& data, DataPart& part, DataSplit& split) const override {
    if (!data.fields.empty()) return DataKind::read(data, part, split);
    const std::string text = read_text(part.files[0], data.reading);
    if (split.not_utf8.empty()) split.not_utf8 = error_not_utf8(part.files[0], text);
    append({split_documents(text, data.separator)}, split.columns);
  }

  /// With a corruption, a row is the whole text, with the token that ends it.
  void finish(const Section& section, Recipe& recipe) const override {
    Recipe::Data& data = recipe.data;
    if (data.corruption.kind == CorruptionOptions::Kind::none) return;
    for (const char* other : {"prompt_end", "pack"}) section.exclude("corruption", other);
    data.columns = {{"tokens", Column::Kind::text}};
  }

  Tokenizers tokenizers(const Recipe& recipe, const DataSplit& training) const override {
    return with_corruption(DataKind::tokenizers(recipe, training), recipe);
  }

  std::unique_ptr<Batches> batches(const Recipe& recipe, const Tokenizers& tokenizers, const DataSplit& training,
                                   const DataSplit& evaluated) const override {
    return corrupted(DataKind::batches(recipe, tokenizers, training, evaluated), recipe, tokenizers);
  }

  /// Returns the prompts and their continuations.
  PairTexts answers(const Recipe::Data& data, const DataSplit& split) const override {
    PairTexts answers;
    for (const std::string& text : split.columns[0]) {
      PromptSplit split = split_prompt(text, data.prompt_end);
      answers.source.push_back(std::move(split.prompt));
      answers.target.push_back(std::move(split.answer));
    }
    return answers;
  }
};
}  // namespace

const DataKind& document_data() {
  static const DocumentData kind;
  return kind;
}

}  // namespace xtape::train
