/// Mini-batches of rows for custom training loops, and a split of rows into two parts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "xtape/array.hpp"
#include "xtape/owner.hpp"

namespace xtape {

/// Options of mini-batches.
struct BatchOptions {
  std::int64_t size = 32;  ///< The number of rows of a batch.
  std::uint64_t seed = 0;  ///< Determines the order.
  /// Whether each epoch has a new order, determined by seed and epoch. If false, rows keep the order of the arrays.
  bool shuffle = true;
  bool drop_last = false;  ///< Whether to drop the last batch of an epoch if it has fewer rows.
};

/// Reads the rows of some arrays batch by batch. A row is an index of the first axis. MiniBatches uses RowReader in
/// loops.
class RowReader {
 public:
  /// Throws Error if the batch size is not positive or there is no batch, ShapeError if the numbers of rows differ.
  RowReader(std::vector<ArrayView> arrays, const BatchOptions& options);
  std::int64_t batches() const;         ///< The number of batches of an epoch.
  void set_epoch(std::uint64_t epoch);  ///< Orders the rows as in this epoch.
  /// Returns batch `index` of the epoch, where index < batches(). The batch consists of copies, valid until the next
  /// call.
  const std::vector<ArrayView>& read(std::int64_t index);

 private:
  struct Data;
  Owner<Data> data_;
};

/// Mini-batches of n arrays. Each loop over them is an epoch. A batch is valid until the next batch, which reuses its
/// memory.
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
  /// Begins the next epoch. The first epoch is 0.
  Iterator begin() {
    reader_.set_epoch(epoch_++);
    return {&reader_, 0};
  }
  Iterator end() { return {&reader_, reader_.batches()}; }
  std::int64_t size() const { return reader_.batches(); }  ///< The number of batches of an epoch.
  std::uint64_t epoch() const { return epoch_; }           ///< The epoch that begins next.
  void set_epoch(std::uint64_t epoch) { epoch_ = epoch; }  ///< Continues from a checkpoint.

 private:
  RowReader reader_;
  std::uint64_t epoch_ = 0;
};

/// Makes mini-batches of any arrays that convert to ArrayView. Arrays other than temporaries must outlive the
/// mini-batches. Errors are those of RowReader.
template <class... Arrays>
MiniBatches<sizeof...(Arrays)> batches(const BatchOptions& options, Arrays&&... arrays) {
  static_assert(sizeof...(Arrays) > 0, "batches are of one array or several");
  return {{ArrayView(std::forward<Arrays>(arrays))...}, options};
}
/// Makes mini-batches of `size` rows, shuffled by `seed`.
template <class... Arrays>
MiniBatches<sizeof...(Arrays)> batches(std::int64_t size, std::uint64_t seed, Arrays&&... arrays) {
  BatchOptions options;
  options.size = size;
  options.seed = seed;
  return batches(options, std::forward<Arrays>(arrays)...);
}

/// Draws rounded(fraction * rows) rows with `seed`. For each array, returns copies of the drawn rows, then of the
/// remaining rows. Throws Error if a part has no rows, ShapeError if the numbers of rows differ.
std::vector<Array> split_rows(double fraction, std::uint64_t seed, const std::vector<ArrayView>& arrays);
/// The same for any number of arrays: auto [x, x_test, y, y_test] = split_rows(0.8, seed, all_x, all_y).
template <class... Arrays, class = std::enable_if_t<(std::is_convertible<Arrays, ArrayView>::value && ...)>>
std::array<Array, 2 * sizeof...(Arrays)> split_rows(double fraction, std::uint64_t seed, Arrays&&... arrays) {
  std::vector<Array> parts =
      split_rows(fraction, seed, std::vector<ArrayView>{ArrayView(std::forward<Arrays>(arrays))...});
  std::array<Array, 2 * sizeof...(Arrays)> given;
  for (std::size_t i = 0; i < given.size(); ++i) given[i] = std::move(parts[i]);
  return given;
}

}  // namespace xtape
