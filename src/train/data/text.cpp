// Data of kind "text": one long text, which is cut into blocks.
#include "base/memory/process_memory.hpp"
#include "base/messages/wording.hpp"
#include "data/tables/json_lines.hpp"
#include "data/tokenizers/utf8.hpp"
#include "train/data/data_kind.hpp"
#include "train/recipe/recipe_parts.hpp"

namespace xtape::train {

namespace {
Tokens encoded(const Tokenizer& tokenizer, const DataSplit& split) {
  try {
    return tokenizer.encode(split.text);
  } catch (const Error& error) {
    if (!split.not_utf8.empty()) throw Error(split.not_utf8);
    throw Error(joined(split.parts, [](const DataPart& part) { return part.files[0]; }) + ": " + error.what());
  }
}

/// Returns the texts of the rows of a file of JSON Lines, one after the other.
std::string text_of_field(const Recipe::Data& data, const std::string& file) {
  const RowTexts rows = read_json_lines(file, {{field_of(data, "text")}}, data.reading);
  std::string all;
  for (const std::string& text : rows.columns[0]) {
    all += text;
    if (!all.empty() && all.back() != '\n') all += '\n';
  }
  return all;
}

struct TextData final : DataKind {
  TextData() : DataKind({.name = "text", .task = Task::texts, .title = "texts", .has_rows = false}) {
    using Data = Recipe::Data;
    keys = {{{file_key("text", "a file or several"),
              {"block_size", &Data::block_size, "the number of tokens of a training row", Range{1, longest_row}},
              {"windows", &Data::consecutive, "blocks begin at random positions, or where the previous block ended",
               Names{"random", "consecutive"}},
              fields_key({"text"}),
              corruption_key()}}};
  }

  void read(const Recipe::Data& data, DataPart& part, DataSplit& split) const override {
    std::string text =
        data.fields.empty() ? read_text(part.files[0], data.reading) : text_of_field(data, part.files[0]);
    if (split.not_utf8.empty()) split.not_utf8 = error_not_utf8(part.files[0], text);
    if (!split.text.empty() && split.text.back() != '\n') split.text += '\n';  // keeps the words of two files apart
    split.text = split.text.empty() ? std::move(text) : split.text + text;
  }

  void complete(const Recipe&, const Batches&, Json&) const override {}

  void divide(const Recipe::Data& data, DataSplit& training, DataSplit& validation) const override {
    TextSplit texts = split_text(training.text, data.split);
    training.text = std::move(texts.training);
    validation.text = std::move(texts.validation);
  }

  Tokenizers tokenizers(const Recipe& recipe, const DataSplit& training) const override {
    return with_corruption(DataKind::tokenizers(recipe, training), recipe);
  }

  std::unique_ptr<Batches> batches(const Recipe& recipe, const Tokenizers& tokenizers, const DataSplit& training,
                                   const DataSplit& evaluated) const override {
    require_memory_left(sizeof(Tokens::value_type) * (training.text.size() + evaluated.text.size()),
                        "a token for each byte of " +
                            joined(recipe.data.training, [](const std::vector<std::string>& part) { return part[0]; }));
    return corrupted(
        std::make_unique<TextBatches>(encoded(*tokenizers.target, training), encoded(*tokenizers.target, evaluated),
                                      TextBatchesOptions{recipe.batch_size, recipe.data.block_size, recipe.trainer.seed,
                                                         recipe.data.consecutive}),
        recipe, tokenizers);
  }
};
}  // namespace

const DataKind& text_data() {
  static const TextData kind;
  return kind;
}

}  // namespace xtape::train
