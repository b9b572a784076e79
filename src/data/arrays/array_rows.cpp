// Reads rows of arrays from files.
#include <algorithm>
#include <set>

#include "base/arrays/elements.hpp"
#include "base/arrays/visit.hpp"
#include "base/messages/wording.hpp"
#include "data/arrays/npz.hpp"
#include "data/tables/fields.hpp"
#include "xtape/safetensors.hpp"

namespace xtape {

namespace {
bool ends_with(const std::string& path, const std::string& end) {
  return path.size() >= end.size() && path.compare(path.size() - end.size(), end.size(), end) == 0;
}

/// Converts floats to float32, and integers and bools to int64.
Array as_input(Array array) {
  const Dtype dtype = is_floating(array.dtype()) ? Dtype::float32 : Dtype::int64;
  if (array.dtype() == dtype) return array;
  Array made(dtype, array.shape());
  if (is_floating(array.dtype()))
    convert_floats(array, made);
  else
    visit_elements(array, [&](const auto* elements) {
      for (std::int64_t i = 0; i < array.count(); ++i)
        made.as<std::int64_t>()[i] = static_cast<std::int64_t>(elements[i]);
    });
  return made;
}

/// Returns the arrays of a file that are inputs, under the names of the inputs.
template <class Read>
BatchArrays arrays_of(const std::string& path, const std::vector<std::string>& names,
                      const std::vector<ArrayInput>& inputs, const Read& read) {
  BatchArrays arrays;
  for (const ArrayInput& input : inputs) {
    const std::string& column = input.columns.at(0);
    if (input.list || input.labels)
      throw Error("input '" + input.name + "' is one array of " + path + ": give its name, not a list or labels");
    arrays.add(input.name, as_input(read(column)));
  }
  if (inputs.empty())
    for (const std::string& name : names) arrays.add(name, as_input(read(name)));
  return arrays;
}

/// Returns the columns of an input. "*" stands for all numeric columns that no input names.
std::vector<std::string> columns_of(const std::string& path, const ArrayInput& input, const CsvTable& table,
                                    const std::set<std::string>& named) {
  std::vector<std::string> columns;
  for (const std::string& column : input.columns) {
    if (column != "*") {
      if (table.columns.find(column) == nullptr)
        throw MissingColumn(path + " has no column '" + column + "', which input '" + input.name + "' names" +
                                did_you_mean(column, table.columns.names()) +
                                " (columns: " + joined(table.columns.names()) + ")",
                            column);
      columns.push_back(column);
      continue;
    }
    if (table.columns.find(column) != nullptr)
      throw FileError(path + " has a column named '*', but this name stands for all columns: rename the column");
    for (const auto& [name, array] : table.columns)
      if (is_floating(array.dtype()) && named.count(name) == 0) columns.push_back(name);
  }
  return columns;
}

/// `read` returns the table for the given options.
template <class Read>
ArrayRows rows_of_csv(const std::string& path, const std::vector<ArrayInput>& inputs, CsvOptions csv,
                      const Read& read) {
  if (inputs.empty()) throw Error("inputs must say which columns of " + path + " they are");
  std::set<std::string> named;
  bool all = false;
  for (const ArrayInput& input : inputs) {
    named.insert(input.columns.begin(), input.columns.end());
    all = all || std::ranges::count(input.columns, "*") > 0;
    if (input.labels) csv.labels.push_back(input.columns.at(0));
  }
  if (!all) csv.columns.assign(named.begin(), named.end());
  const CsvTable table = read(csv);
  ArrayRows rows;
  for (const ArrayInput& input : inputs) {
    const std::vector<std::string> columns = columns_of(path, input, table, named);
    if (input.labels) {
      if (!rows.labelled.empty()) throw Error("input '" + input.name + "' is a second one of labels: there can be one");
      rows.labelled = input.name;
      rows.labels = table.labels.at(columns[0]);
    }
    rows.arrays.add(input.name, input.list ? table.matrix(columns) : Array(table.at(columns.at(0))));
    rows.inputs.push_back({input.name, columns, input.list, input.labels});
  }
  return rows;
}
}  // namespace

ArrayRows read_array_rows(const std::string& path, const std::vector<ArrayInput>& inputs, const CsvOptions& csv) {
  for (const ArrayInput& input : inputs)
    if (input.columns.empty()) throw Error("input '" + input.name + "' has no columns");
  ArrayRows rows;
  if (ends_with(path, ".npz")) {
    rows.arrays =
        arrays_of(path, npz_names(path), inputs, [&](const std::string& name) { return read_npz(path, name); });
  } else if (ends_with(path, ".safetensors")) {
    const Store store = load_arrays(path);
    rows.arrays =
        arrays_of(path, store.names(), inputs, [&](const std::string& name) { return Array(store.at(name)); });
  } else {
    rows = rows_of_csv(path, inputs, csv, [&](const CsvOptions& options) { return read_csv(path, options); });
  }
  rows.file = path;
  for (const auto& [name, array] : rows.arrays) {
    if (array.shape().empty()) throw FileError(path + ": array '" + name + "' has no axis of rows");
    if (static_cast<std::size_t>(array.shape()[0]) != rows.size())
      throw FileError(path + ": array '" + name + "' has " + std::to_string(array.shape()[0]) + " rows, and '" +
                      rows.arrays[0].name + "' " + std::to_string(rows.size()));
  }
  return rows;
}

ArrayRows array_rows_of_fields(const std::string& path, const std::vector<FieldRow>& rows,
                               const std::vector<ArrayInput>& inputs, const CsvOptions& options) {
  return rows_of_csv(path, inputs, options,
                     [&](const CsvOptions& with_labels) { return table_of_rows(path, rows, with_labels); });
}

}  // namespace xtape
