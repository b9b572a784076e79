#include "xtape/array_batches.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "batch_size.hpp"
#include "copy_rows.hpp"
#include "order.hpp"

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
  ArrayBatchesOptions options;
  // the epoch to which `order` belongs; `order` is kept, because each batch of the epoch needs it
  std::optional<std::uint64_t> ordered = {};
  std::vector<std::uint32_t> order = {};
  std::vector<std::uint32_t> in_order = {};  // the rows of the validation split

  std::int64_t batches(const ArrayRows& rows) const {
    return (static_cast<std::int64_t>(rows.size()) - 1) / options.rows + 1;
  }
  /// Returns the range of rows of batch `index` of a split.
  std::pair<std::size_t, std::size_t> range(const ArrayRows& rows, std::uint64_t index) const {
    const auto count = static_cast<std::uint64_t>(batches(rows));
    return {rows.size() * index / count, rows.size() * (index + 1) / count};
  }
  void shuffle(std::uint64_t epoch) {
    if (ordered == epoch) return;
    order = shuffled(static_cast<std::uint32_t>(training.size()), options.seed, streams::epochs + 2 * epoch);
    ordered = epoch;
  }
  BatchArrays shaped(std::int64_t rows) const {
    BatchArrays batch;
    for (const auto& [name, array] : training.arrays)
      batch.add(name, Array(array.dtype(), with_rows(array.shape(), rows)));
    return batch;
  }
  /// Fills the batch with the rows of `chosen` from `first` to `last`.
  void write(const ArrayRows& rows, const std::vector<std::uint32_t>& chosen, std::size_t first, std::size_t last,
             BatchArrays& batch) const {
    const auto count = static_cast<std::int64_t>(last - first);
    bool fits = batch.size() == training.arrays.size();
    for (const auto& [name, array] : training.arrays) {
      const Array* into = batch.find(name);
      fits =
          fits && into != nullptr && into->dtype() == array.dtype() && into->shape() == with_rows(array.shape(), count);
    }
    if (!fits) batch = shaped(count);
    for (const auto& [name, array] : rows.arrays) copy_rows(array, chosen.data() + first, count, batch.at(name).data());
  }
};

ArrayBatches::ArrayBatches(ArrayRows training, ArrayRows validation, const ArrayBatchesOptions& options) {
  check(training, "training");
  check(validation, "validation");
  check_same(training, validation);
  if (options.rows < 1) throw Error("a batch must have at least one row, got " + std::to_string(options.rows));
  const std::int64_t rows = std::min(options.rows, static_cast<std::int64_t>(training.size()));
  for (const auto& [name, array] : training.arrays)
    check_batch_size(rows, std::max<std::int64_t>(1, count_of(with_rows(array.shape(), 1))));
  std::vector<std::uint32_t> in_order(validation.size());
  std::iota(in_order.begin(), in_order.end(), 0U);
  data_ = std::make_unique<Data>(Data{std::move(training), std::move(validation), options, {}, {}, in_order});
}
ArrayBatches::~ArrayBatches() = default;

std::int64_t ArrayBatches::rows() const {
  return std::min(data_->options.rows, static_cast<std::int64_t>(data_->training.size()));
}
BatchArrays ArrayBatches::blank() const {
  return data_->shaped((static_cast<std::int64_t>(data_->training.size()) - 1) / epoch_batches() + 1);
}
std::int64_t ArrayBatches::epoch_batches() const {
  return data_->batches(data_->training);
}
std::int64_t ArrayBatches::validation_batches() const {
  return data_->batches(data_->validation);
}

void ArrayBatches::training(std::uint64_t index, BatchArrays& batch) const {
  const auto count = static_cast<std::uint64_t>(epoch_batches());
  data_->shuffle(index / count);
  const auto [first, last] = data_->range(data_->training, index % count);
  data_->write(data_->training, data_->order, first, last, batch);
}

std::string ArrayBatches::training_place(std::uint64_t index, const std::string& array, std::int64_t row) const {
  const auto count = static_cast<std::uint64_t>(epoch_batches());
  const auto [first, last] = data_->range(data_->training, index % count);
  if (!data_->training.arrays.has(array) || row < 0 || static_cast<std::uint64_t>(row) >= last - first) return "";
  data_->shuffle(index / count);
  return data_->training.place(data_->order[first + static_cast<std::size_t>(row)]);
}

void ArrayBatches::validation(std::int64_t index, BatchArrays& batch) const {
  check_validation_index(index, validation_batches());
  const auto [first, last] = data_->range(data_->validation, static_cast<std::uint64_t>(index));
  data_->write(data_->validation, data_->in_order, first, last, batch);
}

void ArrayBatches::validation_sample(std::uint64_t index, BatchArrays& batch) const {
  const auto count = static_cast<std::uint64_t>(validation_batches());
  validation(static_cast<std::int64_t>(draw_below(count, data_->options.seed, streams::rows_sample, index)), batch);
}

}  // namespace xtape
