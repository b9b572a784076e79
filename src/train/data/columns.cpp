// Rows of texts by column: what documents, chats, preferences, pairs, tables and tags have in common.
#include <algorithm>
#include <iterator>

#include "base/messages/wording.hpp"
#include "data/tables/json_lines.hpp"
#include "train/data/data_kind.hpp"
#include "train/recipe/recipe_parts.hpp"

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

Key<Recipe::Data> fields_key(std::vector<std::string> names) {
  const auto read = [names = std::move(names)](Section& section, const std::string& name, Recipe::Data& data) {
    std::vector<std::string> all = names;
    for (const Column& column : names.empty() ? data.columns : std::vector<Column>()) {
      if (column.name.empty()) section.fail("columns", "has \"skip\", which files of JSON Lines do not need");
      all.push_back(column.name);
    }
    Section fields = section.section(name);
    for (const std::string& each : all) {
      std::string field = each;
      fields.read(each, field);
      data.fields.emplace_back(each, field);
    }
    fields.done();
    for (const char* other : {"delimiter", "header", "separator", "source", "target"})
      if (section.json().contains(other)) section.exclude(name, other);
  };
  const auto if_given = [read](Section& section, const std::string& name, Recipe::Data& data) {
    if (section.has(name)) read(section, name, data);
  };
  return {"fields", "section", "",
          "the files are JSON Lines; the field of each column, such as `{\"text\": \"content\"}`", if_given};
}

const std::string& field_of(const Recipe::Data& data, const std::string& name) {
  const auto found = std::ranges::find_if(data.fields, [&](const auto& each) { return each.first == name; });
  return found == data.fields.end() ? name : found->second;
}

Key<Recipe::Data> pack_key() {
  return {"pack", &Recipe::Data::pack, "the tokens of a row into which several texts are packed; 0: a row is a text",
          Range{0, longest_row}};
}

void DataKind::read(const Recipe::Data& data, DataPart& part, DataSplit& split) const {
  using Kind = Column::Kind;
  const bool words = std::ranges::any_of(data.columns, [](const Column& each) { return each.kind == Kind::tags; });
  std::vector<JsonField> fields;
  for (const Column& column : data.columns)
    fields.push_back({field_of(data, column.name), static_cast<std::size_t>(column.width), words});
  RowTexts rows = read_json_lines(part.files[0], fields, data.reading);
  append(std::move(rows.columns), split.columns);
  part.lines = std::move(rows.lines);
}

std::vector<std::string> DataKind::texts(const Recipe::Data& data, const DataSplit& split,
                                         const std::vector<Column::Kind>& kinds) const {
  std::vector<std::string> lines;
  for_each_column(data, [&](const Column& column, std::size_t field) {
    const std::vector<std::string>& texts = split.columns[field];
    if (contains(kinds, column.kind)) lines.insert(lines.end(), texts.begin(), texts.end());
  });
  return lines;
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
  const HeldOut rows = hold_out(data, training, validation);
  for (std::vector<std::string>& column : training.columns) move_rows(rows, column, validation.columns.emplace_back());
}

TextPlace places(const Recipe::Data& data, const DataSplit& split) {
  return [parts = split.parts, numbers = split.numbers, before = data.fields.empty() ? kind_of(data).row : ", line "](
             std::size_t row, std::size_t column) {
    auto part = parts.begin();
    for (row = numbers(row); row >= part->rows && part + 1 != parts.end(); ++part) row -= part->rows;
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

DataRows DataKind::rows(const Recipe& recipe, const DataSplit& split, const Tokenizers& tokenizers,
                        std::int64_t max_length) const {
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

std::unique_ptr<Batches> DataKind::batches(const Recipe& recipe, const Tokenizers& tokenizers,
                                           const DataSplit& training, const DataSplit& evaluated) const {
  DataRows trained = rows(recipe, training, tokenizers, recipe.data.max_length);
  DataRows measured = rows(recipe, evaluated, tokenizers, 0);
  RowBatchesOptions options = row_options(recipe);
  if (recipe.data.pack > 0) {
    trained = packed(std::move(trained), recipe.data.pack);
    measured = packed(std::move(measured), recipe.data.pack);
    options.bucket = recipe.data.pack;  // all rows have the same length
  }
  if (recipe.trainer.privacy.clip_norm > 0) options.draws = recipe.trainer.accumulate;
  return std::make_unique<RowBatches>(std::move(trained), std::move(measured), options);
}

}  // namespace xtape::train
