/// Mini-batches of rows for training loops of your own, and a split of rows into two parts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "xtape/array.hpp"
#include "xtape/owner.hpp"

namespace xtape {

/// How rows are put in batches.
struct BatchOptions {
  std::int64_t size = 32;  ///< Rows of a batch.
  std::uint64_t seed = 0;  ///< Determines the order.
  bool shuffle = true;     ///< In a new order each epoch, by seed and epoch; else in the order of the arrays.
  bool drop_last = false;  ///< Without the last batch of an epoch if it has fewer rows; else it is shorter.
};

/// The rows of some arrays, batch by batch: a row is an index of the first axis. MiniBatches gives them to a loop.
class RowReader {
 public:
  /// Throws Error if the size is not above 0 or there is no batch, ShapeError unless all arrays have equally many rows.
  RowReader(std::vector<ArrayView> arrays, const BatchOptions& options);
  std::int64_t batches() const;         ///< In an epoch.
  void set_epoch(std::uint64_t epoch);  ///< Orders the rows as in this epoch.
  /// Batch `index` of the epoch, below batches(): copies of its rows, valid until the next call.
  const std::vector<ArrayView>& read(std::int64_t index);

 private:
  struct Data;
  Owner<Data> data_;
};

/// Mini-batches of n arrays. Each loop over them is an epoch. A batch is valid until the next one; it is the only copy.
///
///   auto data = batches(32, seed, x, y);
///   for (int epoch = 0; epoch < 10; ++epoch)
///     for (auto [bx, by] : data) step({bx, by});
template <std::size_t n>
class MiniBatches {
 public:
  class Iterator {
   public:
    std::array<ArrayView, n> operator*() const {
      return given_of(reader_->read(index_), std::make_index_sequence<n>());
    }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    bool operator!=(const Iterator& other) const { return index_ != other.index_; }
    bool operator==(const Iterator& other) const { return index_ == other.index_; }

   private:
    friend class MiniBatches;
    Iterator(RowReader* reader, std::int64_t index) : reader_(reader), index_(index) {}
    template <std::size_t... i>
    static std::array<ArrayView, n> given_of(const std::vector<ArrayView>& views, std::index_sequence<i...>) {
      return {{views[i]...}};
    }
    RowReader* reader_;
    std::int64_t index_;
  };

  MiniBatches(std::vector<ArrayView> arrays, const BatchOptions& options) : reader_(std::move(arrays), options) {}
  /// Begins the next epoch; the first is 0.
  Iterator begin() {
    reader_.set_epoch(epoch_++);
    return {&reader_, 0};
  }
  Iterator end() { return {&reader_, reader_.batches()}; }
  std::int64_t size() const { return reader_.batches(); }  ///< Batches of an epoch.
  std::uint64_t epoch() const { return epoch_; }           ///< The next epoch to begin.
  void set_epoch(std::uint64_t epoch) { epoch_ = epoch; }  ///< To continue from a checkpoint.

 private:
  RowReader reader_;
  std::uint64_t epoch_ = 0;
};

/// Mini-batches of these arrays, whatever ArrayView converts from, which must outlive them unless they are temporaries.
/// Throws as RowReader does.
template <class... Arrays>
MiniBatches<sizeof...(Arrays)> batches(const BatchOptions& options, Arrays&&... arrays) {
  static_assert(sizeof...(Arrays) > 0, "batches are of one array or several");
  return {{ArrayView(std::forward<Arrays>(arrays))...}, options};
}
/// The same of `size` rows, shuffled by `seed`.
template <class... Arrays>
MiniBatches<sizeof...(Arrays)> batches(std::int64_t size, std::uint64_t seed, Arrays&&... arrays) {
  BatchOptions options;
  options.size = size;
  options.seed = seed;
  return batches(options, std::forward<Arrays>(arrays)...);
}

/// Copies of rows drawn by `seed`, rounded(fraction * rows) of them, and of the rest, for each array in turn. Throws
/// Error unless both parts have rows, ShapeError unless all arrays have equally many.
std::vector<Array> split_rows(double fraction, std::uint64_t seed, const std::vector<ArrayView>& arrays);
/// The same: auto [x, x_test, y, y_test] = split_rows(0.8, seed, all_x, all_y).
template <class... Arrays, class = std::enable_if_t<(std::is_convertible<Arrays, ArrayView>::value && ...)>>
std::array<Array, 2 * sizeof...(Arrays)> split_rows(double fraction, std::uint64_t seed, Arrays&&... arrays) {
  std::vector<Array> parts =
      split_rows(fraction, seed, std::vector<ArrayView>{ArrayView(std::forward<Arrays>(arrays))...});
  std::array<Array, 2 * sizeof...(Arrays)> given;
  for (std::size_t i = 0; i < given.size(); ++i) given[i] = std::move(parts[i]);
  return given;
}

}  // namespace xtape
