/// Rows of fields in the lines of a file, and the numbers in fields. All readers of tables use these functions.
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "xtape/array_batches.hpp"
#include "xtape/owner.hpp"
#include "xtape/text.hpp"

namespace xtape {

// Access to data that several objects share.

/// Returns the data. Throws HandleError if the object was moved from.
template <class T>
const T& held(const std::shared_ptr<const T>& data) {
  if (!data) return *Owner<const T>();  // throws
  return *data;
}

/// Quotes a field for messages. Shows at most 100 bytes.
std::string shown(const std::string& text);

/// Returns the text without the spaces and tabs at its ends.
std::string trimmed(const std::string& text);

/// The fields of a row, and the first and the last line of the row in its file.
struct FieldRow {
  std::size_t line = 0, last = 0;
  std::vector<std::string> fields;
};

/// Returns text that names the lines of a row that goes over several lines, and "" for other rows.
std::string span_of(const FieldRow& row);

/// Splits the lines of a file into rows of fields. A field may be quoted as in RFC 4180, except if the delimiter is a
/// tab: a quotation mark at the beginning of a field opens it, "" is a quotation mark inside it, and a row goes on over
/// the line breaks inside it. Blank lines are no rows. A line is blank if it has spaces alone, or spaces and tabs if
/// the delimiter is not a tab.
class FieldReader {
 public:
  static constexpr std::size_t all = std::numeric_limits<std::size_t>::max();
  /// `path` is the file's name in errors. A row with more than `most` fields gets one additional field with the rest of
  /// the line. With `blank_rows`, a blank line is a row of one field. Throws Error if the delimiter is a quotation mark
  /// or a line end.
  FieldReader(std::string path, char delimiter, std::size_t most = all, bool blank_rows = false);
  void skip(std::size_t lines) { line_ += lines; }  ///< Passes over the next lines.
  /// Takes the next line. Returns the row that it ends, or nothing if the line is blank or ends inside a quoted field.
  std::optional<FieldRow> add(std::string_view line);
  /// Throws FileError if the last line ended inside a quoted field.
  void finish() const;

 private:
  std::string path_;
  char delimiter_;
  std::size_t most_;
  bool blank_rows_;
  std::size_t line_ = 0, quoted_ = 0;  // the numbers of the current line, and of the line of the last opening mark
  bool inside_ = false;                // whether the next line begins inside a quoted field
  std::string field_;
  FieldRow row_;
};

/// Returns the fields of a single line, as FieldReader does. Throws Error if a quotation mark is not closed.
std::vector<std::string> fields_of(const std::string& line, char delimiter, std::size_t most);

/// Rows of a file by column: columns[column][row]. `lines` has the number of the first line of each row.
struct RowTexts {
  TableTexts columns;
  std::vector<std::size_t> lines;
};
/// Like read_table.
RowTexts read_rows(const std::string& path, const TableOptions& options);

/// Throws Error if the text of a label is not UTF-8, is blank or has a line break.
void check_label(const std::string& text);

/// Returns whether a field stands for a missing value: an empty field, or one of the words of CsvOptions::missing.
bool is_missing(const std::string& field);

/// Returns the decimal number in a field as T (float or double). Ignores spaces and tabs around the number. A number
/// that is too small for T is 0. Throws Error if the field is not a finite number.
template <class T>
T number_of(const std::string& text);

/// Thrown if a table has no column of this name.
class MissingColumn : public FileError {
 public:
  MissingColumn(const std::string& message, const std::string& column) : FileError(message), column_(column) {}
  const std::string& column() const { return column_; }

 private:
  std::string column_;
};

// Makes tables of rows that were read before.

/// Like read_csv, but from rows of the file `path`, of which the first one is the header if the options have one.
CsvTable table_of_rows(const std::string& path, const std::vector<FieldRow>& rows, const CsvOptions& options);

/// Like read_array_rows, but from rows as in table_of_rows. Reads only the columns of `inputs`, unless an input is "*".
ArrayRows array_rows_of_fields(const std::string& path, const std::vector<FieldRow>& rows,
                               const std::vector<ArrayInput>& inputs, const CsvOptions& options);

}  // namespace xtape
