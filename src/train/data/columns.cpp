// Rows of texts by column: what documents, pairs, tables and tags have in common.
#include <algorithm>
#include <iterator>

#include "train/data/data_kind.hpp"

namespace xtape::train {

void read_columns(Section section, Column (*column_of)(Section&, const std::string&, const Json&), Recipe::Data& data) {
  using Kind = Column::Kind;
  data.columns.clear();
  data.table.columns = 0;
  for (const auto& [name, value] : section.json().items()) {
    Column column = column_of(section, name, value);
    const auto labels = [](const Column& each) { return each.kind == Kind::label; };
    if (column.kind == Kind::label && std::ranges::any_of(data.columns, labels))
      section.fail(name, "is a second column of labels: a table can have only one");
    data.table.columns += static_cast<std::size_t>(std::max<std::int64_t>(1, column.width));
    data.columns.push_back(std::move(column));
  }
  const auto named = [](const Column& each) { return !each.name.empty(); };
  if (std::ranges::none_of(data.columns, named)) section.fail("", "must have a column to read");
}

Key<Recipe::Data> header_key() {
  const auto read = [](Section& section, const std::string& name, Recipe::Data& data) {
    bool header = false;
    section.read(name, header);
    data.table.skip_lines = header ? 1 : 0;
  };
  return {"header", "`true`, `false`", "`false`", "the first line has names, which are not data", read, may_change};
}

std::vector<std::string> DataKind::size_names(const Recipe::Data& data) const {
  std::vector<std::string> names = {"vocabulary", "columns"};
  for (const Column& column : data.columns)
    if (column.kind == Column::Kind::label || column.kind == Column::Kind::tags) names.emplace_back("labels");
  return names;
}

void DataKind::add_sizes(const Tokenizers& tokenizers, const Batches& batches, Named<std::int64_t>& sizes) const {
  sizes.add("columns", batches.columns());
  sizes.add("source_vocabulary", tokenizers.source->size());
  for (const char* name : {"vocabulary", "target_vocabulary"}) sizes.add(name, tokenizers.target->size());
}

void DataKind::complete(const Recipe&, const Batches& batches, Json& json) const {
  json["longest_row"] = batches.columns();
}

void append(TableTexts more, TableTexts& columns) {
  columns.resize(more.size());
  for (std::size_t i = 0; i < more.size(); ++i)
    std::move(more[i].begin(), more[i].end(), std::back_inserter(columns[i]));
}

void DataKind::divide(const Recipe::Data& data, DataSplit& training, DataSplit& validation) const {
  const auto kept = static_cast<std::ptrdiff_t>(rows_kept(data, training, validation));
  for (std::vector<std::string>& column : training.columns) {
    const auto end = column.begin() + kept;
    validation.columns.emplace_back(std::make_move_iterator(end), std::make_move_iterator(column.end()));
    column.erase(end, column.end());
  }
}

TextPlace places(const Recipe::Data& data, const DataSplit& split) {
  return
      [parts = split.parts, skipped = split.skipped, before = kind_of(data).row](std::size_t row, std::size_t column) {
        auto part = parts.begin();
        for (row += skipped; row >= part->rows && part + 1 != parts.end(); ++part) row -= part->rows;
        return part->files[std::min(column, part->files.size() - 1)] + before +
               std::to_string(part->lines.empty() ? row + 1 : part->lines[row]);
      };
}

RowBatchesOptions row_options(const Recipe& recipe) {
  RowBatchesOptions options;
  if (recipe.batch_size > 0) options.rows = recipe.batch_size;
  options.tokens = recipe.batch_tokens;
  options.bucket = recipe.bucket;
  options.seed = recipe.trainer.seed;
  return options;
}

namespace {
DataRows rows(const Recipe& recipe, const DataSplit& split, const Tokenizers& tokenizers, std::int64_t max_length) {
  using Kind = Column::Kind;
  std::vector<ColumnTexts> columns;
  for_each_column(recipe.data, [&](const Column& column, std::size_t field) {
    const Tokenizer* tokenizer = column.kind == Kind::text                                  ? tokenizers.source.get()
                                 : column.kind == Kind::target || column.kind == Kind::tags ? tokenizers.target.get()
                                                                                            : nullptr;
    columns.push_back({column, &split.columns[field], tokenizer, recipe.data.prompt_end, &tokenizers.labels});
  });
  return rows_of(columns, max_length, places(recipe.data, split));
}
}  // namespace

std::unique_ptr<Batches> DataKind::batches(const Recipe& recipe, const Tokenizers& tokenizers,
                                           const DataSplit& training, const DataSplit& evaluated) const {
  DataRows trained = rows(recipe, training, tokenizers, recipe.data.max_length);
  RowBatchesOptions options = row_options(recipe);
  if (recipe.trainer.privacy.clip_norm > 0) options.draws = recipe.trainer.accumulate;
  return std::make_unique<RowBatches>(std::move(trained), rows(recipe, evaluated, tokenizers, 0), options);
}

}  // namespace xtape::train
