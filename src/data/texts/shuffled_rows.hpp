/// Batches of two splits whose rows need no padding. An epoch has every training row once, in random order. The sizes
/// of its batches differ by at most one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "base/arrays/order.hpp"
#include "data/texts/texts.hpp"

namespace xtape {

class ShuffledRows {
 public:
  /// The splits have at least one row and at most 2^32 - 1 rows; a batch has at most `rows` rows.
  ShuffledRows(std::size_t training, std::size_t validation, std::int64_t rows, std::uint64_t seed)
      : training_(training), rows_(rows), seed_(seed), in_order_(validation) {
    std::iota(in_order_.begin(), in_order_.end(), 0U);
  }

  std::int64_t rows() const { return std::min(rows_, static_cast<std::int64_t>(training_)); }
  std::int64_t epoch_batches() const { return batches(training_); }
  std::uint64_t order() const { return order_by({training_, static_cast<std::uint64_t>(epoch_batches())}); }
  std::int64_t validation_batches() const { return batches(in_order_.size()); }
  /// The number of rows of the largest training batch.
  std::int64_t largest() const { return (static_cast<std::int64_t>(training_) - 1) / epoch_batches() + 1; }

  std::uint64_t epoch_of(std::uint64_t index) const { return index / static_cast<std::uint64_t>(epoch_batches()); }
  /// Returns the rows of training batch `index`. Valid until the next call.
  std::span<const std::uint32_t> training(std::uint64_t index) {
    const std::uint64_t epoch = epoch_of(index);
    if (ordered_ != epoch) {
      order_ = shuffled(static_cast<std::uint32_t>(training_), seed_, streams::epochs + 2 * epoch);
      ordered_ = epoch;
    }
    return part(order_, index % static_cast<std::uint64_t>(epoch_batches()));
  }
  std::span<const std::uint32_t> validation(std::int64_t index) const {
    return part(in_order_, static_cast<std::uint64_t>(index));
  }
  /// Returns the index of the validation batch that validation_sample(index) takes.
  std::int64_t validation_sample(std::uint64_t index) const {
    const auto count = static_cast<std::uint64_t>(validation_batches());
    return static_cast<std::int64_t>(draw_below(count, seed_, streams::rows_sample, index));
  }

 private:
  std::int64_t batches(std::size_t rows) const { return (static_cast<std::int64_t>(rows) - 1) / rows_ + 1; }
  std::span<const std::uint32_t> part(const std::vector<std::uint32_t>& all, std::uint64_t index) const {
    const auto count = static_cast<std::uint64_t>(batches(all.size()));
    const std::size_t first = all.size() * index / count, last = all.size() * (index + 1) / count;
    return std::span(all).subspan(first, last - first);
  }

  std::size_t training_;
  std::int64_t rows_;
  std::uint64_t seed_;
  std::vector<std::uint32_t> in_order_;   // the rows of the validation split
  std::optional<std::uint64_t> ordered_;  // the epoch to which `order_` belongs; every batch of this epoch needs it
  std::vector<std::uint32_t> order_;
};

}  // namespace xtape
