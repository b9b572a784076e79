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
  bool header = true;    ///< The first line contains the names of the columns. If false, the names are "0", "1" …
  char separator = ',';  ///< The separator of fields. Fields may be quoted unless the separator is a tab.
  std::vector<std::string> columns = {};  ///< The columns to read, besides `labels`. If empty, read_csv reads all.
  /// The names of the categorical columns. read_csv encodes their strings as integer indices.
  std::vector<std::string> labels = {};
  /// If true, read_csv reads an empty field, "NA", "N/A", "nan", "NaN", "null" and "?" as NaN, and an empty label as
  /// index -1. If false, each of these is an error.
  bool missing = false;
  Dtype dtype = Dtype::float32;  ///< The dtype of numbers: float32 or float64.
  ReadOptions reading = {};
};

/// A table: arrays by the names of their columns.
struct CsvTable {
  Named<Array> columns;                    ///< [rows]: numbers, or int64 indices of labels.
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
/// Skips blank lines. Throws FileError if a field is not a finite number, if a value or label is missing, if a line has
/// the wrong number of fields, or if the header lacks a name in `columns` or `labels`. The error names the file, line
/// and column.
CsvTable read_csv(const std::string& path, const CsvOptions& options = {});

}  // namespace xtape
