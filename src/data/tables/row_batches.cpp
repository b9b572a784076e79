#include <algorithm>
#include <cmath>
#include <optional>

#include "base/arrays/order.hpp"
#include "data/texts/sorted_rows.hpp"
#include "xtape/text.hpp"

namespace xtape {

using rows::Cell;
using rows::Cut;
using rows::SortedRows;

namespace {
/// Writes row `row` of the batch's array: the elements from `first` to `last`, followed by `filling`.
template <class To, class Iterator>
void write(Array& array, std::int64_t row, Iterator first, Iterator last, To filling) {
  const std::int64_t columns = array.count() / array.shape()[0];
  To* begin = array.as<To>() + row * columns;
  std::fill(std::copy(first, last, begin), begin + columns, filling);
}
}  // namespace

struct RowBatches::Data {
  RowBatchesOptions options;
  SortedRows training;
  SortedRows validation;
  Cut largest;  // the cut with the most elements
  RowDraws draws;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  // The order of the last requested epoch, or the last requested draw. It is kept because each of its batches needs the
  // whole order.
  std::optional<std::uint64_t> ordered;
  std::vector<std::uint32_t> order;    // indices of rows
  std::vector<std::uint32_t> batches;  // of an epoch: the order of its cuts
  std::vector<Cut> parts;              // of a draw: its cuts

  Data(DataRows train, DataRows validate, const RowBatchesOptions& the_options)
      : options(the_options),
        training(std::move(train), options, "training"),
        validation(std::move(validate), options, "validation") {
    const auto same = [](const Column& a, const Column& b) {
      return a.name == b.name && a.kind == b.kind && a.width == b.width;
    };
    if (!std::equal(training.columns().begin(), training.columns().end(), validation.columns().begin(),
                    validation.columns().end(), same))
      throw Error("the training split and the validation split must have the same columns");
    for (const SortedRows* split : {&training, &validation})
      for (const Cut& cut : split->cuts()) {
        rows = std::max(rows, cut.rows);
        columns = std::max(columns, cut.longest());
        if (largest.rows == 0 || std::pair(cut.elements(), cut.rows) > std::pair(largest.elements(), largest.rows))
          largest = cut;
      }
    if (options.draws > 0) set_draws();
  }

  void shuffle(std::uint64_t epoch) {
    if (ordered == epoch) return;
    const std::uint64_t stream = streams::epochs + 2 * epoch;
    order = shuffled(static_cast<std::uint32_t>(training.size()), options.seed, stream);
    training.sort(order);
    batches = shuffled(static_cast<std::uint32_t>(training.cuts().size()), options.seed, stream + 1);
    ordered = epoch;
  }

  void draw(std::uint64_t number) {
    if (ordered == number) return;
    const auto expected = static_cast<std::uint64_t>(draws.expected), all = static_cast<std::uint64_t>(draws.rows);
    order.clear();
    for (std::uint32_t row = 0; row < all; ++row)
      if (draw_below(all, options.seed, streams::row_draws + number, row) < expected) order.push_back(row);
    training.sort(order);
    parts.clear();
    const auto count = static_cast<std::size_t>(draws.batches);
    for (std::size_t i = 0; i < count; ++i)
      parts.push_back(training.part(order, order.size() * i / count, order.size() * (i + 1) / count));
    ordered = number;
  }

  /// Returns training batch `index` as a range of `order`.
  const Cut& chosen(std::uint64_t index) {
    if (draws.batches > 0) {
      const auto count = static_cast<std::uint64_t>(draws.batches);
      draw(index / count);
      return parts[index % count];
    }
    const std::uint64_t count = training.cuts().size();
    shuffle(index / count);
    return training.cuts()[batches[index % count]];
  }

  /// Sets the sizes of draws, and of the batch of the largest draw. A draw almost never has more rows than the average
  /// plus six standard deviations.
  void set_draws() {
    draws = {options.draws, options.rows, std::ssize(training)};
    if (!checked_multiply(draws.expected, options.draws) || draws.expected > draws.rows)
      throw Error("a draw has " + std::to_string(options.rows) + " * " + std::to_string(options.draws) +
                  " rows on average (batch.size * batch.accumulate), more than the " + std::to_string(draws.rows) +
                  " of the training split");
    const auto average = static_cast<double>(draws.expected);
    const auto most = std::min(draws.rows, static_cast<std::int64_t>(average + 6 * std::sqrt(average)));
    largest = training.part(training.places(), 0, static_cast<std::size_t>((most - 1) / draws.batches + 1));
    for (const Cut& cut : training.cuts())
      for (std::size_t c = 0; c < cut.lengths.size(); ++c)
        largest.lengths[c] = std::max(largest.lengths[c], cut.lengths[c]);
    check_batch_size(largest.rows, std::max<std::int64_t>(1, largest.longest()));
    rows = std::max(rows, largest.rows);
  }

  /// Calls `give` with the name, dtype and shape of each array of a batch.
  template <class Give>
  void describe(const Cut& cut, const Give& give) const {
    for (std::size_t i = 0; i < cut.lengths.size(); ++i) {
      const Column& column = training.columns()[i];
      const Shape of_tokens = {cut.rows, cut.lengths[i]};
      switch (column.kind) {
        case Column::Kind::text:
        case Column::Kind::tags:
          give(column.name, Dtype::int64, of_tokens);
          break;
        case Column::Kind::target:
          give(column.prefix + "tokens", Dtype::int64, of_tokens);
          give(column.prefix + "targets", Dtype::int64, of_tokens);
          if (!column.packed) break;
          give(column.prefix + packed_positions, Dtype::int64, of_tokens);
          give(column.prefix + packed_segments, Dtype::int64, of_tokens);
          break;
        case Column::Kind::label:
          give(column.name, Dtype::int64, Shape{cut.rows});
          break;
        case Column::Kind::number:
          give(column.name, Dtype::float32, column.width == 0 ? Shape{cut.rows} : Shape{cut.rows, column.width});
          break;
      }
    }
    if (cut.drawn) give(drawn_rows, Dtype::float32, Shape{cut.rows});
  }

  BatchArrays shaped(const Cut& cut) const {
    BatchArrays batch;
    describe(cut,
             [&](const std::string& name, Dtype dtype, const Shape& shape) { batch.add(name, Array(dtype, shape)); });
    return batch;
  }

  bool fits(const Cut& cut, const BatchArrays& batch) const {
    std::size_t arrays = 0;
    bool same = true;
    describe(cut, [&](const std::string& name, Dtype dtype, const Shape& shape) {
      const Array* array = batch.find(name);
      same = same && array != nullptr && array->dtype() == dtype && array->shape() == shape;
      ++arrays;
    });
    return same && arrays == batch.size();
  }

  /// Writes the texts of a target one after the other: each token but the last, and the token after it.
  static void write_target(const Column& column, const Cell& from, std::int64_t row, BatchArrays& batch) {
    const auto row_of = [&](const char* name, std::int64_t filling) {
      Array& array = batch.at(column.prefix + name);
      const std::int64_t columns = array.shape()[1];
      std::int64_t* begin = array.as<std::int64_t>() + row * columns;
      std::fill_n(begin, columns, filling);
      return begin;
    };
    std::int64_t* tokens = row_of("tokens", column.pad);
    std::int64_t* targets = row_of("targets", ignored_target);
    std::int64_t* positions = column.packed ? row_of(packed_positions, 0) : nullptr;
    std::int64_t* segments = column.packed ? row_of(packed_segments, -1) : nullptr;
    const std::size_t texts = std::max<std::size_t>(1, from.starts.size());
    for (std::size_t text = 0, to = 0; text < texts; ++text) {
      const std::size_t first = from.starts.empty() ? 0 : from.starts[text];
      const std::size_t last = (text + 1 < texts ? from.starts[text + 1] : from.tokens.size()) - 1;
      for (std::size_t at = first; at < last; ++at, ++to) {
        tokens[to] = from.tokens[at];
        if (at + 1 >= from.given.size() || !from.given[at + 1]) targets[to] = from.tokens[at + 1];
        if (!column.packed) continue;
        positions[to] = static_cast<std::int64_t>(at - first);
        segments[to] = static_cast<std::int64_t>(text);
      }
    }
  }

  /// Writes one cell of row `row`. Padding and ignored targets follow its tokens.
  static void write_cell(const Column& column, const Cell& from, std::int64_t row, BatchArrays& batch) {
    const auto begin = from.tokens.begin(), end = from.tokens.end();
    if (column.kind == Column::Kind::number) {
      write(batch.at(column.name), row, from.numbers.begin(), from.numbers.end(), 0.0F);
    } else if (column.kind == Column::Kind::target) {
      write_target(column, from, row, batch);
    } else {
      const bool labels = column.kind == Column::Kind::label || column.kind == Column::Kind::tags;
      const std::int32_t filling = labels ? ignored_target : column.pad;
      write(batch.at(column.name), row, begin, end, std::int64_t{filling});
    }
  }

  /// Returns the cells of row `row` of a batch. Copies of drawn rows fill up a draw. The loss of a row of zeros might
  /// be infinite, and infinity times the weight 0 of a copy would be NaN.
  static const std::vector<Cell>& cells_of(const SortedRows& split, const Cut& cut,
                                           const std::vector<std::uint32_t>& places, std::size_t row) {
    return split.row(cut.count > 0 ? places[cut.first + row % cut.count] : split.places()[0]);
  }

  void write_batch(const SortedRows& split, const Cut& cut, const std::vector<std::uint32_t>& places,
                   BatchArrays& batch) const {
    if (!fits(cut, batch)) batch = shaped(cut);
    for (std::size_t i = 0; i < static_cast<std::size_t>(cut.rows); ++i) {
      const std::vector<Cell>& cells = cells_of(split, cut, places, i);
      for (std::size_t c = 0; c < split.columns().size(); ++c)
        write_cell(split.columns()[c], cells[c], static_cast<std::int64_t>(i), batch);
      if (cut.drawn) batch.at(drawn_rows).as<float>()[i] = i < cut.count ? 1 : 0;
    }
  }
};

RowBatches::RowBatches(DataRows training, DataRows validation, const RowBatchesOptions& options) {
  if (options.rows < 1 || options.tokens < 0 || options.bucket < 1 || options.bucket > most_batch_tokens)
    throw Error("a batch must have at least one row, `tokens` must not be negative, and `bucket` must be 1 to " +
                std::to_string(most_batch_tokens));
  if (options.draws < 0 || (options.draws > 0 && options.tokens > 0))
    throw Error("`draws` must not be negative, and its batches have `rows`, not `tokens`");
  data_ = std::make_unique<Data>(std::move(training), std::move(validation), options);
}
RowBatches::~RowBatches() = default;

std::int64_t RowBatches::rows() const {
  return data_->rows;
}
std::int64_t RowBatches::columns() const {
  return data_->columns;
}
std::int64_t RowBatches::epoch_batches() const {
  const RowDraws& draws = data_->draws;
  return draws.batches > 0 ? (draws.rows - 1) / data_->options.rows + 1 : std::ssize(data_->training.cuts());
}
RowDraws RowBatches::draws() const {
  return data_->draws;
}
std::uint64_t RowBatches::order() const {
  if (data_->draws.batches > 0) return 0;  // draws do not depend on batches
  std::vector<std::uint64_t> numbers;
  for (const Cut& cut : data_->training.cuts()) {
    numbers.push_back(cut.count);
    numbers.insert(numbers.end(), cut.lengths.begin(), cut.lengths.end());
  }
  return order_by(numbers);
}
std::int64_t RowBatches::validation_batches() const {
  return std::ssize(data_->validation.cuts());
}

BatchArrays RowBatches::blank() const {
  return data_->shaped(data_->largest);
}

void RowBatches::training(std::uint64_t index, BatchArrays& batch) const {
  const Cut& cut = data_->chosen(index);
  data_->write_batch(data_->training, cut, data_->order, batch);
}

std::string RowBatches::training_place(std::uint64_t index, const std::string& array, std::int64_t row) const {
  const SortedRows& split = data_->training;
  const Cut& cut = data_->chosen(index);
  const auto& columns = split.columns();
  const auto found = std::ranges::find_if(columns, [&](const Column& column) {
    if (column.kind != Column::Kind::target) return array == column.name;
    return array == column.prefix + "tokens" || array == column.prefix + "targets";
  });
  if (found == columns.end() || row < 0 || static_cast<std::uint64_t>(row) >= cut.count) return "";
  return split.place_of(data_->order[cut.first + static_cast<std::size_t>(row)],
                        static_cast<std::size_t>(found - columns.begin()));
}

void RowBatches::validation(std::int64_t index, BatchArrays& batch) const {
  const SortedRows& split = data_->validation;
  check_validation_index(index, validation_batches());
  data_->write_batch(split, split.cuts()[index], split.places(), batch);
}

void RowBatches::validation_sample(std::uint64_t index, BatchArrays& batch) const {
  const std::uint64_t batches = data_->validation.cuts().size();
  validation(static_cast<std::int64_t>(draw_below(batches, data_->options.seed, streams::rows_sample, index)), batch);
}

}  // namespace xtape
