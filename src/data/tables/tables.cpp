// Reads files of rows of texts.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "base/messages/wording.hpp"
#include "data/tables/fields.hpp"
#include "data/texts/texts.hpp"
#include "data/tokenizers/utf8.hpp"
#include "xtape/error.hpp"
#include "xtape/text.hpp"

namespace xtape {

namespace {
constexpr const char* not_closed = "a quotation mark is not closed";

/// Returns whether a decimal number is too large for double. The number must be outside of double's range, so it is
/// either far above 1 or far below 1.
bool is_huge(std::string_view number) {
  const std::size_t e = std::min(number.find_first_of("eE"), number.size());
  const std::string_view digits = number.substr(0, e);
  std::int64_t exponent = 0;
  if (e < number.size()) {
    const bool plus = number[e + 1] == '+';
    const auto read = std::from_chars(number.data() + e + 1 + plus, number.data() + number.size(), exponent);
    if (read.ec != std::errc()) return number[e + 1] != '-';
  }
  const auto first = static_cast<std::int64_t>(digits.find_first_of("123456789"));
  const auto point = static_cast<std::int64_t>(std::min(digits.find('.'), digits.size()));
  return exponent > first - point;
}
}  // namespace

std::string shown(const std::string& text) {
  constexpr std::size_t most = 100;
  std::size_t end = std::min(text.size(), most);
  while (end > 0 && end < text.size() && (text[end] & 0xC0) == 0x80) --end;  // does not cut a character
  std::string line = escaped(std::string_view(text).substr(0, end));
  for (std::size_t at = 0; (at = line.find('\n', at)) != std::string::npos;) line.replace(at, 1, "\\n");
  return "'" + line + (end < text.size() ? "…'" : "'");
}

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t");
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

std::string span_of(const FieldRow& row) {
  return row.last == row.line ? "" : " (with a quoted field, the row goes on to line " + std::to_string(row.last) + ")";
}

FieldReader::FieldReader(std::string path, char delimiter, std::size_t most, bool blank_rows)
    : path_(std::move(path)), delimiter_(delimiter), most_(most), blank_rows_(blank_rows) {
  if (delimiter == '"' || delimiter == '\n' || delimiter == '\r')
    throw Error("the character between fields cannot be a quotation mark or a line end");
}

std::optional<FieldRow> FieldReader::add(std::string_view line) {
  ++line_;
  if (inside_) {
    field_ += '\n';
  } else {
    const bool blank = line.find_first_not_of(delimiter_ == '\t' ? " " : " \t") == std::string_view::npos;
    if (blank && !blank_rows_) return std::nullopt;
    row_.line = line_;
  }
  for (std::size_t at = 0;;) {
    if (!inside_ && delimiter_ != '\t' && at < line.size() && line[at] == '"') {
      inside_ = true;
      quoted_ = line_;
      ++at;
    }
    while (inside_) {
      const std::size_t mark = std::min(line.find('"', at), line.size());
      field_.append(line, at, mark - at);
      if (mark == line.size()) return std::nullopt;
      inside_ = mark + 1 < line.size() && line[mark + 1] == '"';
      if (inside_) field_ += '"';
      at = mark + (inside_ ? 2 : 1);
    }
    const std::size_t end =
        row_.fields.size() == most_ ? line.size() : std::min(line.find(delimiter_, at), line.size());
    field_.append(line, at, end - at);
    row_.fields.push_back(std::exchange(field_, {}));
    if (end == line.size()) {
      row_.last = line_;
      return std::exchange(row_, {});
    }
    at = end + 1;
  }
}

void FieldReader::finish() const {
  if (inside_) throw FileError(path_ + ", line " + std::to_string(quoted_) + ": " + not_closed);
}

std::vector<std::string> fields_of(const std::string& line, char delimiter, std::size_t most) {
  std::optional<FieldRow> row = FieldReader("", delimiter, most, true).add(line);
  if (!row) throw Error(not_closed);
  return std::move(row->fields);
}

void check_label(const std::string& text) {
  check_utf8(text);
  if (text.find_first_not_of(" \t") == std::string::npos) throw Error("the label is empty");
  if (text.find('\n') != std::string::npos) throw Error("the label " + shown(text) + " has a line break");
}

bool is_missing(const std::string& field) {
  static const std::set<std::string> words = {"",    "NA",   "N/A",  "n/a",  "#N/A", "<NA>", "nan",
                                              "NaN", "-nan", "-NaN", "null", "NULL", "None", "?"};
  return words.count(trimmed(field)) != 0;
}

template <class T>
T number_of(const std::string& text) {
  const std::size_t first = std::min(text.find_first_not_of(" \t"), text.size());
  const std::size_t behind = std::max(first, text.find_last_not_of(" \t") + 1);
  const std::string_view field(text.data() + first, behind - first);
  const char* const end = field.data() + field.size();
  const char* const begin = field.data() + (field.size() > 1 && field[0] == '+' && field[1] != '-' ? 1 : 0);
  T number = 0;
  std::from_chars_result read = std::from_chars(begin, end, number);
  if (sizeof(T) < sizeof(double) && read.ec == std::errc::result_out_of_range) {
    double wide = 0;
    read = std::from_chars(begin, end, wide);
    number = static_cast<T>(wide);
  }
  const bool whole = read.ec != std::errc::invalid_argument && read.ptr == end;
  if (whole && read.ec == std::errc::result_out_of_range && !is_huge({begin, static_cast<std::size_t>(end - begin)}))
    return *begin == '-' ? -T{0} : T{0};
  if (whole && read.ec == std::errc() && std::isfinite(number)) return number;
  if (is_missing(text)) throw Error("the value is missing; remove the row or fill it in");
  const bool decimal = whole && field.find_first_not_of("+-.0123456789eE") == std::string_view::npos;
  throw Error(
      shown(text) + " is not a finite number: " +
      (decimal ? std::string("the largest ") + (sizeof(T) == sizeof(float) ? "float32 is 3.4e38" : "float64 is 1.8e308")
               : "write a decimal number such as 12, -0.5 or 1e-3"));
}

template float number_of(const std::string&);
template double number_of(const std::string&);

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
