/// Reads tables in CSV files as arrays.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "xtape/array.hpp"
#include "xtape/text.hpp"

namespace xtape {

/// Options of read_csv.
struct CsvOptions {
  /// The first row contains the names of the columns, in which line breaks become spaces. If false, the names are "0",
  /// "1" …
  bool header = true;
  char separator = ',';  ///< The separator of fields. Fields may be quoted unless the separator is a tab.
  std::vector<std::string> columns = {};  ///< The columns to read, besides `labels`. If empty, read_csv reads all.
  /// The names of the categorical columns. read_csv encodes their strings as integer indices.
  std::vector<std::string> labels = {};
  /// If true, read_csv reads a missing value as NaN, and an empty label as index -1. If false, each of these is an
  /// error. An empty field is a missing value, and so are the words NA, N/A, n/a, \#N/A, <NA>, nan, NaN, -nan, -NaN,
  /// null, NULL, None and ?.
  bool missing = false;
  Dtype dtype = Dtype::float32;  ///< The dtype of numbers: float32 or float64.
  ReadOptions reading = {};
};

/// A table: arrays by the names of their columns.
struct CsvTable {
  Named<Array> columns;  ///< [rows]: numbers, or int64 indices of labels.
  /// For each label column, its distinct strings in byte order. A label's index is its position in this list.
  Named<std::vector<std::string>> labels;
  std::int64_t rows = 0;

  /// Throws Error if the table has no such column.
  const Array& at(const std::string& column) const { return columns.at(column); }
  /// Returns the columns `names` side by side, [rows, names]. Throws Error if a name is unknown, occurs twice, or names
  /// a label column.
  Array matrix(const std::vector<std::string>& names) const;
  /// Returns all columns of numbers except `names`, in the order of the file. Throws Error if a name is unknown.
  Array matrix_without(const std::vector<std::string>& names) const;
};

/// Reads a file of comma-separated values, plain or compressed by gzip:
///
///   const CsvTable wine = read_csv("wine.csv");
///   const Array x = wine.matrix_without({"quality"}), y = wine.at("quality");
///
/// Fields may be quoted as in RFC 4180 unless the separator is a tab. A quoted field can contain separators, line
/// breaks, which become LF, and quotation marks, written "". A quotation mark inside an unquoted field is an ordinary
/// character. With a tab as the separator, all quotation marks are ordinary characters. Blank lines are skipped.
///
/// A number is decimal, such as 12, +1, -0.5, .5, 1. or 1e-3, with spaces or tabs around it. A number that is too small
/// for the dtype is 0. Infinities, hexadecimal numbers, separators of thousands, decimal commas and digits of other
/// scripts are errors.
///
/// Throws FileError if a field is not a finite number, if a value or label is missing, if a row has the wrong number of
/// fields, if the header lacks a name in `columns` or `labels`, or if a name or label is not UTF-8. The error names the
/// file, line and column.
CsvTable read_csv(const std::string& path, const CsvOptions& options = {});

}  // namespace xtape
