/// Tables of numbers in files, as arrays.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "xtape/array.hpp"
#include "xtape/text.hpp"

namespace xtape {

/// How a file of comma-separated values is read.
struct CsvOptions {
  bool header = true;                     ///< The first line has the names of the columns; else they are "0", "1" …
  char separator = ',';                   ///< Between fields. Unless it is a tab, fields may be quoted.
  std::vector<std::string> columns = {};  ///< The columns to read; empty: all.
  std::vector<std::string> labels = {};   ///< Columns of words, which become indices.
  /// Empty fields and "NA", "N/A", "nan", "NaN", "null" and "?" are NaN, and empty labels have the index -1; else
  /// they are errors.
  bool missing = false;
  Dtype dtype = Dtype::float32;  ///< The dtype of numbers: float32 or float64.
  ReadOptions reading = {};
};

/// A table: arrays by the names of columns.
struct CsvTable {
  Named<Array> columns;                    ///< [rows]: numbers, or int64 indices of labels.
  Named<std::vector<std::string>> labels;  ///< The words of such a column by index, sorted by bytes.
  std::int64_t rows = 0;

  const Array& at(const std::string& column) const { return columns.at(column); }  ///< Throws Error without it.
  /// These columns side by side, [rows, names]. Throws Error for an unknown name, and for one that is twice or of
  /// labels.
  Array matrix(const std::vector<std::string>& names) const;
  /// All columns of numbers but these, in the order of the file. Throws Error for an unknown name.
  Array matrix_without(const std::vector<std::string>& names) const;
};

/// Reads a file of comma-separated values, plain or compressed by gzip:
///
///   const CsvTable wine = read_csv("wine.csv");
///   const Array x = wine.matrix_without({"quality"}), y = wine.at("quality");
///
/// Blank lines are skipped. Throws FileError, which names the file, the line and the column, for a field that is not a
/// finite number, a missing value or label, and a line with another number of fields; and for a name of `columns` or
/// `labels` that the header lacks.
CsvTable read_csv(const std::string& path, const CsvOptions& options = {});

}  // namespace xtape
