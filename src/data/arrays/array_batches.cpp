#include "xtape/array_batches.hpp"

#include <algorithm>
#include <limits>
#include <span>

#include "base/arrays/elements.hpp"
#include "data/texts/shuffled_rows.hpp"
#include "data/texts/texts.hpp"

namespace xtape {

std::size_t ArrayRows::size() const {
  return arrays.empty() ? 0 : static_cast<std::size_t>(arrays[0].value.shape()[0]);
}

std::string ArrayRows::place(std::size_t row) const {
  return (file.empty() ? "" : file + ", ") + "row " + std::to_string(first + row + 1);
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
