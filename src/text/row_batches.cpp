#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "batch_size.hpp"
#include "order.hpp"
#include "xtape/text.hpp"

namespace xtape {

namespace {
using Cell = DataRows::Cell;

std::int64_t rounded_up(std::size_t length, std::int64_t unit) {
  return (static_cast<std::int64_t>(length) + unit - 1) / unit * unit;
}

/// With `tokens` and in draws, the rows of a batch are a multiple of this where possible: fewer shapes.
constexpr std::int64_t unit = 8;

bool has_numbers(const std::vector<Column>& columns) {
  return std::any_of(columns.begin(), columns.end(), [](const Column& c) { return c.kind == Column::Kind::number; });
}

/// A range of a split's rows, sorted by length, and the shape of the batch that they form.
struct Cut {
  std::size_t first = 0;
  std::size_t count = 0;
  std::int64_t rows = 0;
  std::vector<std::int64_t> lengths;  // padded length of the texts, by column; 0 for labels and numbers
  bool drawn = false;                 // has the array of drawn rows

  std::int64_t longest() const { return *std::max_element(lengths.begin(), lengths.end()); }
  std::int64_t elements() const { return rows * std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}); }
};

/// Rows, sorted by length and cut into batches. The order of rows of equal lengths may vary, but the sequence of
/// lengths does not, so the batches have the same shapes in every epoch.
class Split {
 public:
  Split(DataRows rows, const RowBatchesOptions& options, const std::string& name) : rows_(std::move(rows)) {
    if (rows_.rows.empty()) throw Error("the " + name + " split has no rows");
    if (rows_.columns.empty()) throw Error("rows must have at least one column");
    for (const std::vector<Cell>& row : rows_.rows) {
      if (row.size() != columns().size()) throw Error("a row must have one cell for each column");
      for (std::size_t i = 0; i < row.size(); ++i) {
        check(columns()[i], row[i]);
        lengths_.push_back(length_of(columns()[i], row[i], options.bucket));
      }
    }
    std::vector<std::uint32_t> order(size());
    std::iota(order.begin(), order.end(), 0U);
    sort(order);
    for (std::size_t at = 0; at < order.size(); at += cuts_.back().count) cuts_.push_back(cut(order, at, options));
    places_ = std::move(order);
  }

  const std::vector<Column>& columns() const { return rows_.columns; }
  const std::vector<Cut>& cuts() const { return cuts_; }
  /// The indices of the rows, sorted by length.
  const std::vector<std::uint32_t>& places() const { return places_; }
  const std::vector<Cell>& row(std::uint32_t place) const { return rows_.rows[place]; }
  std::size_t size() const { return rows_.rows.size(); }
  /// Where a cell of a row comes from; "" if that is not known.
  std::string place_of(std::uint32_t place, std::size_t column) const {
    return rows_.place && place < rows_.texts.size() ? rows_.place(rows_.texts[place], column) : "";
  }

  /// Sorts stably by the length of the last column, then of the column before it, and so on.
  void sort(std::vector<std::uint32_t>& order) const {
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      for (std::size_t i = columns().size(); i > 0; --i)
        if (length(a, i - 1) != length(b, i - 1)) return length(a, i - 1) < length(b, i - 1);
      return false;
    });
  }

  /// The part of drawn rows from `first` to `last`, in a batch of its own.
  Cut part(const std::vector<std::uint32_t>& drawn, std::size_t first, std::size_t last) const {
    Cut made{first, last - first, rounded_up(std::max<std::size_t>(1, last - first), unit),
             std::vector<std::int64_t>(columns().size(), 0), true};
    if (first == last) lengthen(made, places_[0]);  // padding alone, as long as the shortest row
    for (std::size_t i = first; i < last; ++i) lengthen(made, drawn[i]);
    check_batch_size(made.rows, std::max<std::int64_t>(1, made.longest()));
    return made;
  }

 private:
  /// Throws Error if the cell is not one of the column.
  static void check(const Column& column, const Cell& cell) {
    const auto exactly = [&](std::size_t count, std::int64_t wanted, const char* what) {
      if (static_cast<std::int64_t>(count) != wanted)
        throw Error("a row of column '" + column.name + "' has " + std::to_string(count) + " " + what + ", not " +
                    std::to_string(wanted));
    };
    if (column.kind == Column::Kind::label) return exactly(cell.tokens.size(), 1, "labels");
    if (column.kind == Column::Kind::number)
      return exactly(cell.numbers.size(), std::max<std::int64_t>(1, column.width), "numbers");
    if (cell.tokens.size() < 2) throw Error("a text must have at least its start and its end token");
    if (cell.prompt > cell.tokens.size())
      throw Error("a prompt of " + std::to_string(cell.prompt) + " tokens is not in a text of " +
                  std::to_string(cell.tokens.size()));
  }
  static std::int64_t length_of(const Column& column, const Cell& cell, std::int64_t bucket) {
    if (column.kind == Column::Kind::label || column.kind == Column::Kind::number) return 0;
    // The inputs are the target without its last token; the predictions are the target without its first.
    return rounded_up(cell.tokens.size() - (column.kind == Column::Kind::target ? 1 : 0), bucket);
  }
  std::int64_t length(std::uint32_t place, std::size_t column) const {
    return lengths_[place * columns().size() + column];
  }

  void lengthen(Cut& cut, std::uint32_t place) const {
    for (std::size_t c = 0; c < cut.lengths.size(); ++c) cut.lengths[c] = std::max(cut.lengths[c], length(place, c));
  }

  /// The batch that begins at `first`: as many rows as the options allow.
  Cut cut(const std::vector<std::uint32_t>& order, std::size_t first, const RowBatchesOptions& options) const {
    Cut made{first, 0, 0, std::vector<std::int64_t>(columns().size(), 0)};
    for (std::size_t i = first; i < order.size(); ++i) {
      Cut next = made;
      lengthen(next, order[i]);
      const std::int64_t fitting = options.tokens / std::max<std::int64_t>(1, next.longest());
      next.rows = options.tokens == 0 ? options.rows
                  : fitting < unit    ? std::max<std::int64_t>(1, fitting)
                                      : fitting / unit * unit;
      if (static_cast<std::int64_t>(made.count) >= next.rows) break;
      ++next.count;
      made = std::move(next);
    }
    if (has_numbers(columns())) made.rows = static_cast<std::int64_t>(made.count);
    check_batch_size(made.rows, std::max<std::int64_t>(1, made.longest()));
    return made;
  }

  DataRows rows_;
  std::vector<std::int64_t> lengths_;  // [rows, columns]
  std::vector<Cut> cuts_;
  std::vector<std::uint32_t> places_;
};

/// Writes row `row` of the batch's array: the elements from `first` to `last`, then `filling`.
template <class To, class Iterator>
void write(Array& array, std::int64_t row, Iterator first, Iterator last, To filling) {
  const std::int64_t columns = array.count() / array.shape()[0];
  To* begin = array.as<To>() + row * columns;
  std::fill(std::copy(first, last, begin), begin + columns, filling);
}
}  // namespace

struct RowBatches::Data {
  RowBatchesOptions options;
  Split training;
  Split validation;
  Cut largest;  // the one with the most elements
  RowDraws draws;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  // The order of the epoch, or the draw, requested last. It is kept because each of its batches needs the whole.
  std::optional<std::uint64_t> ordered;
  std::vector<std::uint32_t> order;    // indices of rows
  std::vector<std::uint32_t> batches;  // of an epoch: indices of cuts
  std::vector<Cut> parts;              // of a draw: the cuts

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
    for (const Split* split : {&training, &validation})
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

  /// Training batch `index`, as rows of `order`.
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

  /// The rows of a draw are almost never more than six standard deviations above the average.
  void set_draws() {
    draws = {options.draws, options.rows, static_cast<std::int64_t>(training.size())};
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
          give(column.name, Dtype::int64, of_tokens);
          break;
        case Column::Kind::target:
          give("tokens", Dtype::int64, of_tokens);
          give("targets", Dtype::int64, of_tokens);
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

  Batch shaped(const Cut& cut) const {
    Batch batch;
    describe(cut,
             [&](const std::string& name, Dtype dtype, const Shape& shape) { batch.add(name, Array(dtype, shape)); });
    return batch;
  }

  bool fits(const Cut& cut, const Batch& batch) const {
    std::size_t arrays = 0;
    bool same = true;
    describe(cut, [&](const std::string& name, Dtype dtype, const Shape& shape) {
      const Array* array = batch.find(name);
      same = same && array != nullptr && array->dtype() == dtype && array->shape() == shape;
      ++arrays;
    });
    return same && arrays == batch.size();
  }

  /// Writes one cell of row `row`; null writes padding and ignored targets, for rows that the batch has no data for.
  void write_cell(const Column& column, const Cell* cell, std::int64_t row, Batch& batch) const {
    static const Cell none;
    const Cell& from = cell != nullptr ? *cell : none;
    const auto begin = from.tokens.begin(), end = from.tokens.end();
    if (column.kind == Column::Kind::number) {
      write(batch.at(column.name), row, from.numbers.begin(), from.numbers.end(), 0.0F);
    } else if (column.kind == Column::Kind::target) {
      const std::ptrdiff_t shifted = cell != nullptr ? 1 : 0;
      write(batch.at("tokens"), row, begin, end - shifted, std::int64_t{column.pad});
      Array& targets = batch.at("targets");
      write(targets, row, begin + shifted, end, std::int64_t{ignored_target});
      if (from.prompt > 1)
        std::fill_n(targets.as<std::int64_t>() + row * targets.shape()[1], from.prompt - 1, ignored_target);
    } else {
      const std::int32_t filling = column.kind == Column::Kind::label ? ignored_target : column.pad;
      write(batch.at(column.name), row, begin, end, std::int64_t{filling});
    }
  }

  void write_batch(const Split& split, const Cut& cut, const std::vector<std::uint32_t>& places, Batch& batch) const {
    if (!fits(cut, batch)) batch = shaped(cut);
    for (std::size_t i = 0; i < static_cast<std::size_t>(cut.rows); ++i) {
      const std::vector<Cell>* cells = i < cut.count ? &split.row(places[cut.first + i]) : nullptr;
      for (std::size_t c = 0; c < split.columns().size(); ++c)
        write_cell(split.columns()[c], cells != nullptr ? &(*cells)[c] : nullptr, static_cast<std::int64_t>(i), batch);
      if (cut.drawn) batch.at(drawn_rows).as<float>()[i] = cells != nullptr ? 1 : 0;
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
  return draws.batches > 0 ? (draws.rows - 1) / data_->options.rows + 1
                           : static_cast<std::int64_t>(data_->training.cuts().size());
}
RowDraws RowBatches::draws() const {
  return data_->draws;
}
std::int64_t RowBatches::validation_batches() const {
  return static_cast<std::int64_t>(data_->validation.cuts().size());
}

Batch RowBatches::blank() const {
  return data_->shaped(data_->largest);
}

void RowBatches::training(std::uint64_t index, Batch& batch) const {
  const Cut& cut = data_->chosen(index);
  data_->write_batch(data_->training, cut, data_->order, batch);
}

std::string RowBatches::training_place(std::uint64_t index, const std::string& array, std::int64_t row) const {
  const Split& split = data_->training;
  const Cut& cut = data_->chosen(index);
  const auto& columns = split.columns();
  const auto found = std::find_if(columns.begin(), columns.end(), [&](const Column& column) {
    return column.kind == Column::Kind::target ? array == "tokens" || array == "targets" : array == column.name;
  });
  if (found == columns.end() || row < 0 || static_cast<std::uint64_t>(row) >= cut.count) return "";
  return split.place_of(data_->order[cut.first + static_cast<std::size_t>(row)],
                        static_cast<std::size_t>(found - columns.begin()));
}

void RowBatches::validation(std::int64_t index, Batch& batch) const {
  const Split& split = data_->validation;
  check_validation_index(index, validation_batches());
  data_->write_batch(split, split.cuts()[index], split.places(), batch);
}

void RowBatches::validation_sample(std::uint64_t index, Batch& batch) const {
  const std::uint64_t batches = data_->validation.cuts().size();
  validation(static_cast<std::int64_t>(draw_below(batches, data_->options.seed, streams::rows_sample, index)), batch);
}

}  // namespace xtape
