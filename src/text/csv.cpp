#include <algorithm>
#include <cctype>
#include <limits>
#include <set>

#include "contains.hpp"
#include "csv_lines.hpp"
#include "fields.hpp"
#include "joined.hpp"
#include "nearest.hpp"
#include "process_memory.hpp"

namespace xtape {

namespace {
constexpr const char* text_column = "; if it is a column of text, name the columns to read";

std::string trimmed(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t");
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

bool is_missing(const std::string& field) {
  static const std::set<std::string> words = {"", "NA", "N/A", "nan", "NaN", "null", "?"};
  return words.count(trimmed(field)) != 0;
}

/// Reads the fields of one file.
class CsvReader {
 public:
  CsvReader(const std::string& path, std::vector<std::string> lines, std::size_t skipped, const CsvOptions& options)
      : path_(path), options_(options), lines_(std::move(lines)), skipped_(skipped) {
    if (options.dtype != Dtype::float32 && options.dtype != Dtype::float64)
      throw DtypeError(std::string("read_csv: numbers are float32 or float64, not ") + name_of(options.dtype));
    if (!lines_.empty() && lines_[0].compare(0, 3, "\xEF\xBB\xBF") == 0) lines_[0].erase(0, 3);
    for (std::size_t i = 0; i < lines_.size(); ++i)
      if (!trimmed(lines_[i]).empty()) numbers_.push_back(i);
    if (numbers_.empty()) throw FileError(path + " has no lines");
    read_names();
  }

  CsvTable table() {
    CsvTable table;
    table.rows = std::ssize(numbers_);
    std::vector<std::string> wanted = options_.columns.empty() ? names_ : options_.columns;
    for (const std::string& name : options_.labels)
      if (!contains(wanted, name)) wanted.push_back(name);
    require_memory_left(numbers_.size() * wanted.size() * size_of(options_.dtype), "the numbers of " + path_);
    for (const std::string& name : wanted) {
      const bool label = contains(options_.labels, name);
      table.columns.add(name, Array(label ? Dtype::int64 : options_.dtype, {table.rows}));
    }
    std::vector<std::vector<std::string>> words(wanted.size());  // the words of label columns
    std::vector<std::size_t> places;
    for (const std::string& name : wanted) places.push_back(place_of(name));
    for (std::size_t row = 0; row < numbers_.size(); ++row) {
      const std::vector<std::string> fields = fields_at(numbers_[row]);
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        const std::string& field = fields[places[i]];
        if (contains(options_.labels, wanted[i]))
          words[i].push_back(label(field, wanted[i], row));
        else
          read_number(field, wanted[i], row, table.columns.at(wanted[i]));
      }
    }
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (contains(options_.labels, wanted[i])) index(words[i], wanted[i], table);
    return table;
  }

 private:
  [[noreturn]] void fail(std::size_t line, const std::string& message) const {
    const std::size_t skipped = line == 0 && options_.header ? 0 : skipped_;
    throw FileError(path_ + ", line " + std::to_string(skipped + line + 1) + ": " + message);
  }

  std::vector<std::string> fields_at(std::size_t line) const {
    std::vector<std::string> fields;
    try {
      fields = fields_of(lines_[line], options_.separator, std::numeric_limits<std::size_t>::max());
    } catch (const Error& error) {
      fail(line, error.what());
    }
    if (!names_.empty() && fields.size() != names_.size())
      fail(line, "there are " + std::to_string(fields.size()) + " fields, not " + std::to_string(names_.size()) +
                     " as in the first line");
    return fields;
  }

  void read_names() {
    const std::vector<std::string> first = fields_at(numbers_[0]);
    for (std::size_t i = 0; i < first.size(); ++i) {
      const std::string name = options_.header ? trimmed(first[i]) : std::to_string(i);
      if (contains(names_, name)) fail(numbers_[0], "two columns have the name '" + name + "'");
      names_.push_back(name);
    }
    if (options_.header) numbers_.erase(numbers_.begin());
    for (const auto* list : {&options_.columns, &options_.labels})
      for (const std::string& name : *list) place_of(name);
  }

  /// Returns a hint if the table has one column that seems to be several columns with another separator.
  std::string other_separator() const {
    for (const char other : {';', '\t', ',', '|'})
      if (names_.size() == 1 && other != options_.separator && lines_[0].find(other) != std::string::npos)
        return std::string("; is the character between the fields '") + (other == '\t' ? "\\t" : std::string(1, other)) +
               "'?";
    return "";
  }

  std::size_t place_of(const std::string& name) const {
    const auto found = std::ranges::find(names_, name);
    if (found == names_.end()) {
      const std::string meant = did_you_mean(name, names_);
      throw FileError(path_ + " has no column '" + name + "'" + meant + " (columns: " + joined_first(names_, 20) + ")" +
                      other_separator());
    }
    return static_cast<std::size_t>(found - names_.begin());
  }

  /// Returns a label. An empty field is an error unless the option `missing` is set. If `missing` is set, the label of
  /// an empty field is "", and its index becomes -1.
  std::string label(const std::string& field, const std::string& column, std::size_t row) const {
    if (const std::string text = trimmed(field); !text.empty()) return text;
    if (!options_.missing)
      fail(numbers_[row],
           "column '" + column + "': the label is empty; remove the row, or set `missing`, which makes its index -1");
    return "";
  }

  void read_number(const std::string& field, const std::string& column, std::size_t row, Array& to) const {
    double number = std::numeric_limits<double>::quiet_NaN();
    const auto fail_here = [&](const std::string& message) {
      fail(numbers_[row], "column '" + column + "': " + message);
    };
    if (is_missing(field)) {
      if (!options_.missing) fail_here("the value is missing; remove the row or fill it in (`missing` reads it as NaN)");
    } else {
      try {
        number = to.dtype() == Dtype::float64 ? number_of<double>(field) : number_of<float>(field);
      } catch (const Error& error) {
        const bool is_text = std::isalpha(static_cast<unsigned char>(trimmed(field)[0])) != 0;
        fail_here(error.what() + std::string(is_text && options_.columns.empty() ? text_column : ""));
      }
    }
    if (to.dtype() == Dtype::float64)
      to.as<double>()[row] = number;
    else
      to.as<float>()[row] = static_cast<float>(number);
  }

  static void index(const std::vector<std::string>& words, const std::string& column, CsvTable& table) {
    std::set<std::string> different(words.begin(), words.end());
    different.erase("");
    const std::vector<std::string> sorted(different.begin(), different.end());
    for (std::size_t row = 0; row < words.size(); ++row)
      table.columns.at(column).as<std::int64_t>()[row] =
          words[row].empty() ? ignored_target
                             : std::lower_bound(sorted.begin(), sorted.end(), words[row]) - sorted.begin();
    table.labels.add(column, sorted);
  }

  std::string path_;
  const CsvOptions& options_;
  std::vector<std::string> lines_;
  std::size_t skipped_;               // number of lines of the file between the header and the other lines
  std::vector<std::size_t> numbers_;  // the indices of the lines that have rows
  std::vector<std::string> names_;
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
  return CsvReader(path, read_lines(path, options.reading), 0, options).table();
}

CsvTable table_of_lines(const std::string& path, std::vector<std::string> lines, std::size_t skipped,
                        const CsvOptions& options) {
  return CsvReader(path, std::move(lines), skipped, options).table();
}

}  // namespace xtape
