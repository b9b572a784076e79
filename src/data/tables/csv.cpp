#include <algorithm>
#include <cctype>
#include <cstring>
#include <limits>
#include <set>

#include "base/messages/wording.hpp"
#include "base/system/process_memory.hpp"
#include "data/tables/fields.hpp"
#include "data/tokenizers/utf8.hpp"

namespace xtape {

namespace {
/// Makes a table of rows, of which the first one has the names of the columns if the options say so.
class CsvReader {
 public:
  /// `most` is the most rows that can follow.
  CsvReader(const std::string& path, std::size_t most, const CsvOptions& options)
      : path_(path), most_(static_cast<std::int64_t>(most)), options_(options) {
    if (options.dtype != Dtype::float32 && options.dtype != Dtype::float64)
      throw DtypeError(std::string("read_csv: numbers are float32 or float64, not ") + name_of(options.dtype));
  }

  void add(const FieldRow& row) {
    const bool is_header = names_.empty() && options_.header;
    if (names_.empty()) begin(row);
    if (is_header) return;
    check_count(row, names_.size(), " as in the first row");
    for (Wanted& column : wanted_) {
      const std::string& field = row.fields[column.place];
      if (column.is_label)
        column.words.push_back(label(field, column, row));
      else
        read_number(field, column, row);
    }
    ++rows_;
  }

  CsvTable table() {
    if (names_.empty()) throw FileError(path_ + " has no lines");
    CsvTable table;
    table.rows = rows_;
    for (Wanted& column : wanted_) {
      Array whole(column.array.dtype(), {rows_});
      if (column.is_label)
        table.labels.add(column.name, indexed(column.words, whole));
      else if (rows_ == column.array.count())
        whole = std::move(column.array);
      else if (rows_ > 0)
        std::memcpy(whole.data(), column.array.data(), whole.bytes());
      table.columns.add(column.name, std::move(whole));
    }
    return table;
  }

 private:
  /// A column to read: its numbers, or its words.
  struct Wanted {
    std::string name;
    std::size_t place;  // the index of its field
    bool is_label;
    Array array;
    std::vector<std::string> words = {};
  };

  [[noreturn]] void fail(const FieldRow& row, const std::string& message) const {
    throw FileError(path_ + ", line " + std::to_string(row.line) + ": " + escaped(message));
  }
  [[noreturn]] void fail(const FieldRow& row, const Wanted& column, const std::string& message) const {
    fail(row, "column '" + column.name + "': " + message);
  }

  void check_count(const FieldRow& row, std::size_t count, const char* where) const {
    if (row.fields.size() != count)
      fail(row, "there are " + std::to_string(row.fields.size()) + " fields, not " + std::to_string(count) + where +
                    span_of(row));
  }

  /// Reads the names of the columns, and reserves memory for their elements.
  void begin(const FieldRow& first) {
    for (std::size_t i = 0; i < first.fields.size(); ++i) {
      std::string name = options_.header ? trimmed(first.fields[i]) : std::to_string(i);
      std::ranges::replace(name, '\n', ' ');
      try {
        check_utf8(name);
      } catch (const Error& error) {
        fail(first, "the name of column " + std::to_string(i + 1) + ", " + shown(name) + ": " + error.what());
      }
      if (contains(names_, name)) fail(first, "two columns have the name '" + name + "'");
      names_.push_back(name);
    }
    for (const auto* list : {&options_.columns, &options_.labels})
      for (const std::string& name : *list) place_of(name);
    std::vector<std::string> wanted = options_.columns.empty() ? names_ : options_.columns;
    for (const std::string& name : options_.labels)
      if (!contains(wanted, name)) wanted.push_back(name);
    const std::int64_t most = most_ - (options_.header ? 1 : 0);
    require_memory_left(static_cast<std::size_t>(most) * wanted.size() * size_of(options_.dtype),
                        "the numbers of " + path_);
    for (const std::string& name : wanted) {
      const bool label = contains(options_.labels, name);
      wanted_.push_back(
          {name, place_of(name), label, label ? Array(Dtype::int64, {0}) : Array(options_.dtype, {most})});
    }
  }

  /// Returns a hint if the table has one column that seems to be several columns with another separator.
  std::string other_separator() const {
    for (const char other : {';', '\t', ',', '|'})
      if (names_.size() == 1 && other != options_.separator && names_[0].find(other) != std::string::npos)
        return std::string("; is the character between the fields '") +
               (other == '\t' ? "\\t" : std::string(1, other)) + "'?";
    return "";
  }

  std::size_t place_of(const std::string& name) const {
    const auto found = std::ranges::find(names_, name);
    if (found == names_.end()) {
      const std::string meant = did_you_mean(name, names_);
      throw MissingColumn(path_ + escaped(" has no column '" + name + "'" + meant +
                                          " (columns: " + joined_first(names_, 20) + ")" + other_separator()),
                          name);
    }
    return static_cast<std::size_t>(found - names_.begin());
  }

  /// Returns a label. An empty field is an error unless the option `missing` is set. If `missing` is set, the label of
  /// an empty field is "", and its index becomes -1.
  std::string label(const std::string& field, const Wanted& column, const FieldRow& row) const {
    const std::string text = trimmed(field);
    try {
      if (!text.empty()) check_label(text);
    } catch (const Error& error) {
      fail(row, column, error.what());
    }
    if (text.empty() && !options_.missing)
      fail(row, column, "the label is empty; remove the row, or set `missing`, which makes its index -1");
    return text;
  }

  void read_number(const std::string& field, Wanted& column, const FieldRow& row) const {
    double number = std::numeric_limits<double>::quiet_NaN();
    try {
      if (!options_.missing || !is_missing(field))
        number = options_.dtype == Dtype::float64 ? number_of<double>(field) : number_of<float>(field);
    } catch (const Error& error) {
      std::string hint;
      if (is_missing(field))
        hint = " (`missing` reads it as NaN)";
      else if (options_.columns.empty() && std::isalpha(static_cast<unsigned char>(trimmed(field)[0])) != 0)
        hint = "; if it is a column of text, name the columns to read";
      fail(row, column, error.what() + hint);
    }
    Array& to = column.array;
    if (options_.dtype == Dtype::float64)
      to.as<double>()[rows_] = number;
    else
      to.as<float>()[rows_] = static_cast<float>(number);
  }

  /// Writes the indices of the words among the sorted, different words, which it returns.
  static std::vector<std::string> indexed(const std::vector<std::string>& words, Array& indices) {
    std::set<std::string> different(words.begin(), words.end());
    different.erase("");
    std::vector<std::string> sorted(different.begin(), different.end());
    for (std::size_t row = 0; row < words.size(); ++row)
      indices.as<std::int64_t>()[row] =
          words[row].empty() ? ignored_target
                             : std::lower_bound(sorted.begin(), sorted.end(), words[row]) - sorted.begin();
    return sorted;
  }

  std::string path_;
  std::int64_t most_;
  const CsvOptions& options_;
  std::int64_t rows_ = 0;
  std::vector<std::string> names_;
  std::vector<Wanted> wanted_;
};

/// Returns a matrix of these columns.
Array side_by_side(const CsvTable& table, const std::vector<std::string>& names) {
  if (names.empty()) throw Error("a matrix of a table needs at least one column of numbers");
  std::vector<const Array*> columns;
  for (const std::string& name : names) {
    columns.push_back(&table.columns.at(name));
    if (!is_floating(columns.back()->dtype()))
      throw DtypeError("column '" + name + "' has labels, not numbers: read it with at()");
  }
  const auto width = std::ssize(names);
  Array matrix(columns[0]->dtype(), {table.rows, width});
  for (std::int64_t j = 0; j < width; ++j)
    for (std::int64_t i = 0; i < table.rows; ++i)
      if (matrix.dtype() == Dtype::float64)
        matrix.as<double>()[i * width + j] = columns[j]->as<double>()[i];
      else
        matrix.as<float>()[i * width + j] = columns[j]->as<float>()[i];
  return matrix;
}
}  // namespace

Array CsvTable::matrix(const std::vector<std::string>& names) const {
  return side_by_side(*this, names);
}

Array CsvTable::matrix_without(const std::vector<std::string>& names) const {
  for (const std::string& name : names) static_cast<void>(columns.at(name));
  std::vector<std::string> others;
  for (const auto& [name, array] : columns)
    if (is_floating(array.dtype()) && !contains(names, name)) others.push_back(name);
  return side_by_side(*this, others);
}

CsvTable read_csv(const std::string& path, const CsvOptions& options) {
  const std::vector<std::string> lines = read_lines(path, options.reading);
  FieldReader rows(path, options.separator);
  CsvReader reader(path, lines.size(), options);
  for (const std::string& line : lines)
    if (const auto row = rows.add(line)) reader.add(*row);
  rows.finish();
  return reader.table();
}

CsvTable table_of_rows(const std::string& path, const std::vector<FieldRow>& rows, const CsvOptions& options) {
  CsvReader reader(path, rows.size(), options);
  for (const FieldRow& row : rows) reader.add(row);
  return reader.table();
}

}  // namespace xtape
