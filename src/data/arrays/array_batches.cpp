#include "xtape/array_batches.hpp"

#include <algorithm>
#include <limits>
#include <set>
#include <span>

#include "base/arrays/elements.hpp"
#include "base/arrays/visit.hpp"
#include "base/messages/wording.hpp"
#include "data/arrays/npz.hpp"
#include "data/tables/fields.hpp"
#include "data/texts/shuffled_rows.hpp"
#include "data/texts/texts.hpp"
#include "xtape/safetensors.hpp"

namespace xtape {

// Reads rows of arrays from files.

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

std::size_t ArrayRows::size() const {
  return arrays.empty() ? 0 : static_cast<std::size_t>(arrays[0].value.shape()[0]);
}

std::string ArrayRows::place(std::size_t row) const {
  return (file.empty() ? "" : file + ", ") + "row " + std::to_string(numbers(row) + 1);
}

namespace {
/// Throws Error if the arrays of a split do not form rows.
void check(const ArrayRows& rows, const std::string& split) {
  if (rows.arrays.empty()) throw Error("the " + split + " split has no arrays");
  for (const auto& [name, array] : rows.arrays) {
    const std::string whose = "array '" + name + "' of the " + split + " split ";
    if (!array || array.shape().empty()) throw Error(whose + "has no axis of rows");
    if (array.dtype() != Dtype::float32 && array.dtype() != Dtype::int64)
      throw Error(whose + "is " + name_of(array.dtype()) + ", not float32 or int64");
    if (static_cast<std::size_t>(array.shape()[0]) != rows.size())
      throw Error(whose + "has " + std::to_string(array.shape()[0]) + " rows, and '" + rows.arrays[0].name + "' " +
                  std::to_string(rows.size()));
  }
  if (rows.size() == 0) throw Error("the " + split + " split has no rows");
  if (rows.size() > std::numeric_limits<std::uint32_t>::max())
    throw Error("the " + split + " split has " + std::to_string(rows.size()) + " rows, more than 2^32 - 1");
}

void check_same(const ArrayRows& training, const ArrayRows& validation) {
  for (const auto& [name, array] : training.arrays) {
    const Array* other = validation.arrays.find(name);
    if (other == nullptr || other->dtype() != array.dtype() ||
        with_rows(other->shape(), 0) != with_rows(array.shape(), 0))
      throw Error("array '" + name + "' of the training split is " + name_of(array.dtype()) + " " +
                  to_string(array.shape()) + "; the validation split has " +
                  (other == nullptr ? "none" : std::string(name_of(other->dtype())) + " " + to_string(other->shape())));
  }
  if (training.arrays.size() != validation.arrays.size())
    throw Error("the validation split has arrays that the training split does not have");
  if (training.labels != validation.labels) throw Error("the arrays of both splits must have the same labels");
}
}  // namespace

struct ArrayBatches::Data {
  ArrayRows training, validation;
  ShuffledRows batches;

  BatchArrays shaped(std::int64_t rows) const {
    BatchArrays batch;
    for (const auto& [name, array] : training.arrays)
      batch.add(name, Array(array.dtype(), with_rows(array.shape(), rows)));
    return batch;
  }
  /// Fills the batch with these rows of a split.
  void write(const ArrayRows& split, std::span<const std::uint32_t> rows, BatchArrays& batch) const {
    const auto count = std::ssize(rows);
    bool fits = batch.size() == training.arrays.size();
    for (const auto& [name, array] : training.arrays) {
      const Array* into = batch.find(name);
      fits =
          fits && into != nullptr && into->dtype() == array.dtype() && into->shape() == with_rows(array.shape(), count);
    }
    if (!fits) batch = shaped(count);
    for (const auto& [name, array] : split.arrays) copy_rows(array, rows.data(), count, batch.at(name).data());
  }
};

ArrayBatches::ArrayBatches(ArrayRows training, ArrayRows validation, const ArrayBatchesOptions& options) {
  check(training, "training");
  check(validation, "validation");
  check_same(training, validation);
  if (options.rows < 1) throw Error("a batch must have at least one row, got " + std::to_string(options.rows));
  const ShuffledRows batches(training.size(), validation.size(), options.rows, options.seed);
  for (const auto& [name, array] : training.arrays)
    check_batch_size(batches.rows(), std::max<std::int64_t>(1, count_of(with_rows(array.shape(), 1))));
  data_ = std::make_unique<Data>(Data{std::move(training), std::move(validation), batches});
}
ArrayBatches::~ArrayBatches() = default;

std::int64_t ArrayBatches::rows() const {
  return data_->batches.rows();
}
BatchArrays ArrayBatches::blank() const {
  return data_->shaped(data_->batches.largest());
}
std::int64_t ArrayBatches::epoch_batches() const {
  return data_->batches.epoch_batches();
}
std::uint64_t ArrayBatches::order() const {
  return data_->batches.order();
}
std::int64_t ArrayBatches::validation_batches() const {
  return data_->batches.validation_batches();
}

void ArrayBatches::training(std::uint64_t index, BatchArrays& batch) const {
  data_->write(data_->training, data_->batches.training(index), batch);
}

std::string ArrayBatches::training_place(std::uint64_t index, const std::string& array, std::int64_t row) const {
  const std::span<const std::uint32_t> rows = data_->batches.training(index);
  if (!data_->training.arrays.has(array) || row < 0 || static_cast<std::size_t>(row) >= rows.size()) return "";
  return data_->training.place(rows[static_cast<std::size_t>(row)]);
}

void ArrayBatches::validation(std::int64_t index, BatchArrays& batch) const {
  check_validation_index(index, validation_batches());
  data_->write(data_->validation, data_->batches.validation(index), batch);
}

void ArrayBatches::validation_sample(std::uint64_t index, BatchArrays& batch) const {
  validation(data_->batches.validation_sample(index), batch);
}

}  // namespace xtape
