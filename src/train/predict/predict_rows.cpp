// Reads the rows for which a run predicts, from lines and from files of arrays.
#include <algorithm>
#include <utility>

#include "base/messages/wording.hpp"
#include "data/tables/fields.hpp"
#include "data/texts/texts.hpp"
#include "train/predict/predict.hpp"

namespace xtape::train {

namespace {
// lengths are padded to multiples of this number, so that few players are planned
constexpr std::int64_t length_unit = 16;

/// Returns the number of fields in a line that belong to a column.
std::size_t fields_in(const Column& column) {
  return static_cast<std::size_t>(std::max<std::int64_t>(1, column.width));
}
}  // namespace

std::vector<ArrayInput> RowPredictor::wanted() const {
  std::vector<ArrayInput> wanted;
  for (const ArrayInput& input : run_.recipe().data.inputs)
    if (reads(input.name)) wanted.push_back(input);
  return wanted;
}

char RowPredictor::separator(const std::string& first) const {
  const Recipe::Data& data = run_.recipe().data;
  if (has_columns()) return data.table.delimiter;
  // Other tables may have a different separator than the training data.
  if (first.find('\t') != std::string::npos) return '\t';
  return data.csv.separator == '\t' && first.find(',') != std::string::npos ? ',' : data.csv.separator;
}

FieldReader RowPredictor::reader(const std::string& file, const std::string& first) const {
  if (!has_columns()) return {file, separator(first)};
  const std::vector<bool> fields = taken();
  const std::vector<Column> read = columns();
  return {file, separator(first), fields.size(), read.size() == 1 && read[0].kind == Column::Kind::text};
}

BatchArrays RowPredictor::rows(const std::string& file, const std::vector<FieldRow>& rows) const {
  return has_columns() ? table_rows(file, rows)
                       : array_rows_of_fields(file, rows, wanted(), run_.recipe().data.csv).arrays;
}

BatchArrays RowPredictor::rows(const std::string& file) const {
  std::vector<ArrayInput> inputs = wanted();
  for (ArrayInput& input : inputs)  // an input that the training combined from columns is a single array in this file
    if (input.list) input = {input.name, {input.name}};
  BatchArrays arrays = read_array_rows(file, inputs).arrays;
  BatchArrays read;
  for (const std::string& name : arrays.names())
    if (reads(name)) read.add(name, arrays.at(name));
  return read;
}

std::vector<Column> RowPredictor::columns() const {
  std::vector<Column> columns;
  for (const Column& column : run_.recipe().data.columns)
    if (!column.name.empty() && reads(column.name)) columns.push_back(column);
  return columns;
}

std::vector<bool> RowPredictor::taken() const {
  std::vector<bool> taken;
  for (const Column& column : run_.recipe().data.columns)
    taken.insert(taken.end(), fields_in(column), !column.name.empty() && reads(column.name));
  return taken;
}

BatchArrays RowPredictor::table_rows(const std::string& file, const std::vector<FieldRow>& rows) const {
  const std::vector<bool> taken = this->taken();
  const auto some = static_cast<std::size_t>(std::ranges::count(taken, true));
  std::vector<FieldRow> read;
  for (const FieldRow& row : rows) {
    const std::size_t count = row.fields.size();
    if (count != taken.size() && count != some)
      throw Error(file + ", line " + std::to_string(row.line) + ": a row must have " + std::to_string(taken.size()) +
                  " fields, or without targets " + std::to_string(some) + ", got " +
                  (count > taken.size() ? "more" : std::to_string(count)) + span_of(row));
    FieldRow& kept = read.emplace_back(FieldRow{row.line, row.last, {}});
    for (std::size_t i = 0; i < count; ++i)
      if (count == some || taken[i]) kept.fields.push_back(row.fields[i]);
  }
  return field_rows(file, read);
}

std::vector<std::vector<std::string>> RowPredictor::tags(const std::vector<std::vector<std::string>>& sentences) const {
  if (sentences.empty()) return {};
  const Tokenizer& tokenizer = run_.tokenizer();
  std::vector<Tokens> texts;
  for (const std::vector<std::string>& words : sentences) {
    texts.push_back(source_of(tokenizer, joined(words, {}, " ")));
    check_one_token_a_word(tokenizer, texts.back().size(), words.size());
  }
  const Array tokens = token_array(texts, std::max(0, tokenizer.pad()), length_unit);
  const Array best = tags_of(tokens);  // [b, t]
  std::vector<std::vector<std::string>> found;
  const std::int64_t* row = best.as<std::int64_t>();
  for (const std::vector<std::string>& words : sentences) {
    std::vector<std::string>& tags = found.emplace_back();
    for (std::size_t i = 0; i < words.size(); ++i)
      tags.push_back(run_.labels()[static_cast<std::size_t>(row[i + tokens_before(tokenizer)])]);
    row += tokens.shape()[1];
  }
  return found;
}

Array RowPredictor::tags_of(const Array& tokens) const {
  const std::vector<std::string> functions = run_.model().functions();
  const bool has_tags = std::ranges::count(functions, "tags") > 0;
  const std::string function = has_tags ? "tags" : "logits";
  Array made = run_.model().play(function, {{columns().at(0).name, tokens}})[0].value;
  const std::int64_t rows = tokens.shape()[0], width = tokens.shape()[1];
  const auto labels = std::ssize(run_.labels());
  const ValueType wanted =
      has_tags ? ValueType{Dtype::int64, {rows, width}} : ValueType{Dtype::float32, {rows, width, labels}};
  if (ValueType{made.dtype(), made.shape()} != wanted)
    throw Error("the function '" + function + "' returns " + to_string(ValueType{made.dtype(), made.shape()}) +
                " for tokens " + to_string(tokens.shape()) + " and " + std::to_string(labels) +
                " labels, and should return " + to_string(wanted));
  const std::int64_t* const chosen = has_tags ? std::as_const(made).as<std::int64_t>() : nullptr;
  const auto is_wrong = [&](std::int64_t tag) { return tag < 0 || tag >= labels; };
  if (has_tags && std::any_of(chosen, chosen + rows * width, is_wrong))
    throw Error("the function 'tags' returns a tag that is not in [0, " + std::to_string(labels) + ")");
  if (has_tags) return made;
  Array best(Dtype::int64, {rows, width});  // [b, t]
  const float* scores = made.as<float>();
  for (std::int64_t i = 0; i < rows * width; ++i, scores += labels)
    best.as<std::int64_t>()[i] = std::max_element(scores, scores + labels) - scores;
  return best;
}

BatchArrays RowPredictor::text_rows(const std::string& file, const std::vector<std::string>& lines,
                                    std::size_t line) const {
  const std::vector<Column> read = columns();
  if (read.size() != 1 || read[0].kind != Column::Kind::text || !logits_)
    throw Error(run_.directory() + " is not a run on a table with one text and one label per row: use xtape predict");
  std::vector<FieldRow> rows;
  for (const std::string& text : lines) {
    ++line;
    rows.push_back({line, line, {text}});
  }
  return field_rows(file, rows);
}

BatchArrays RowPredictor::field_rows(const std::string& file, const std::vector<FieldRow>& rows) const {
  BatchArrays batch;
  std::size_t first = 0;
  for (const Column& column : columns()) {
    const std::size_t width = fields_in(column);
    std::vector<Tokens> texts;
    std::vector<float> numbers;
    for (const FieldRow& row : rows) {
      try {
        if (column.kind == Column::Kind::text)
          texts.push_back(source_of(run_.tokenizer(), row.fields[first]));
        else
          for (std::size_t i = 0; i < width; ++i) numbers.push_back(number_of<float>(row.fields[first + i]));
      } catch (const Error& error) {
        const bool is_text = column.kind == Column::Kind::text;
        throw Error(file + ", line " + std::to_string(row.line) + ": " +
                    (is_text ? "" : "column '" + column.name + "': ") + error.what());
      }
    }
    first += width;
    if (column.kind == Column::Kind::text) {
      batch.add(column.name, token_array(texts, std::max(0, run_.tokenizer().pad()), length_unit));
      continue;
    }
    const auto count = std::ssize(rows);
    Array array(Dtype::float32, column.width == 0 ? Shape{count} : Shape{count, column.width});
    std::copy(numbers.begin(), numbers.end(), array.as<float>());
    batch.add(column.name, array);
  }
  return batch;
}

}  // namespace xtape::train
