// Reads files of rows of texts.
#include <algorithm>
#include <optional>
#include <sstream>

#include "data/tables/fields.hpp"
#include "data/texts/texts.hpp"
#include "data/tokenizers/unicode.hpp"
#include "xtape/text.hpp"

namespace xtape {

namespace {
[[noreturn]] void fail(const std::string& path, std::size_t line, const std::string& message) {
  throw FileError(path + ", line " + std::to_string(line) + ": " + message);
}

/// Returns the lines of a file whose fields form a table.
std::vector<std::string> lines_of_table(const std::string& path, const TableOptions& options) {
  if (options.columns < 1) throw Error("a table must have at least one column");
  if (options.skip_lines < 0) throw Error("skip_lines must not be negative, got " + std::to_string(options.skip_lines));
  return read_lines(path, options.reading);
}

std::string parted_by(char delimiter) {
  return delimiter == '\t' ? "tabs" : std::string("'") + delimiter + "'";
}

/// Throws FileError if the number of fields is not the number of columns.
void check_count(const std::string& path, const FieldRow& row, const TableOptions& options, const std::string& parted) {
  const std::size_t count = row.fields.size();
  if (count < options.columns || (count > options.columns && !options.more))
    fail(path, row.line,
         "a row must have " + std::to_string(options.columns) + " fields separated by " + parted + ", got " +
             (count > options.columns ? "more" : std::to_string(count)) + span_of(row));
}
}  // namespace

RowTexts read_rows(const std::string& path, const TableOptions& options) {
  const std::vector<std::string> lines = lines_of_table(path, options);
  const auto skipped = std::min(lines.size(), static_cast<std::size_t>(options.skip_lines));
  FieldReader reader(path, options.delimiter, options.columns);
  reader.skip(skipped);
  const std::string parted = parted_by(options.delimiter);
  RowTexts made;
  made.columns.resize(options.columns);
  for (std::size_t i = skipped; i < lines.size(); ++i) {
    std::optional<FieldRow> row = reader.add(lines[i]);
    if (!row) continue;
    check_count(path, *row, options, parted);
    made.lines.push_back(row->line);
    for (std::size_t column = 0; column < options.columns; ++column)
      made.columns[column].push_back(std::move(row->fields[column]));
  }
  reader.finish();
  return made;
}

TableTexts read_table(const std::string& path, const TableOptions& options) {
  return read_rows(path, options).columns;
}

std::vector<std::string> fields_of_word(const std::string& line, char delimiter, std::size_t most) {
  if (delimiter != ' ') return fields_of(line, delimiter, most);
  std::vector<std::string> fields;
  std::istringstream stream(line);
  for (std::string field; stream >> field;) fields.push_back(std::move(field));
  return fields;
}

bool ends_sentence(const std::string& line, char delimiter) {
  if (is_blank(line)) return true;
  const std::vector<std::string> fields = fields_of_word(line, delimiter, 1);
  return !fields.empty() && fields[0] == "-DOCSTART-";
}

void check_word(const std::string& text) {
  if (words_in(text) != std::vector<std::string>{text}) throw Error(shown(text) + " must be one word");
}

SentenceTexts read_sentences(const std::string& path, const TableOptions& options) {
  const std::vector<std::string> lines = lines_of_table(path, options);
  SentenceTexts made;
  made.columns.resize(options.columns);
  const std::string parted = options.delimiter == ' ' ? "spaces or tabs" : parted_by(options.delimiter);
  bool inside = false;  // whether the current line is inside a sentence
  for (auto i = static_cast<std::size_t>(options.skip_lines); i < lines.size(); ++i) {
    if (ends_sentence(lines[i], options.delimiter)) {
      inside = false;
      continue;
    }
    FieldRow row{i + 1, i + 1, {}};
    try {
      row.fields = fields_of_word(lines[i], options.delimiter, options.columns);
    } catch (const Error& error) {
      fail(path, i + 1, error.what());
    }
    check_count(path, row, options, parted);
    if (!inside) made.lines.push_back(i + 1);
    for (std::size_t column = 0; column < options.columns; ++column) {
      const std::string& field = row.fields[column];
      try {
        check_word(field);
      } catch (const Error& error) {
        fail(path, i + 1, "field " + std::to_string(column + 1) + ": " + error.what());
      }
      if (inside)
        made.columns[column].back() += ' ' + field;
      else
        made.columns[column].push_back(field);
    }
    inside = true;
  }
  return made;
}

PairTexts read_pairs(const std::string& path, const ReadOptions& options) {
  RowTexts rows = read_rows(path, {.columns = 2, .more = true, .reading = options});
  return {std::move(rows.columns[0]), std::move(rows.columns[1]), std::move(rows.lines)};
}

PairTexts read_pairs(const std::string& source, const std::string& target, const ReadOptions& options) {
  PairTexts pairs = {read_lines(source, options), read_lines(target, options)};
  if (pairs.source.size() != pairs.target.size())
    throw Error(source + " has " + std::to_string(pairs.source.size()) + " lines and " + target + " " +
                std::to_string(pairs.target.size()) + ": line i of one must translate line i of the other");
  return pairs;
}

}  // namespace xtape
