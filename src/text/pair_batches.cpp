#include <algorithm>
#include <numeric>

#include "batch_size.hpp"
#include "order.hpp"
#include "xtape/text.hpp"

namespace xtape {

namespace {
// Streams of the data order; those of epochs count on, one for the pairs and one for the batches.

std::int64_t rounded_up(std::size_t length, std::int64_t unit) {
  return (static_cast<std::int64_t>(length) + unit - 1) / unit * unit;
}

/// A stretch of a part's pairs in the order of their lengths, and the shape of the batch that they make.
struct Cut {
  std::size_t first = 0;
  std::size_t count = 0;
  std::int64_t rows = 0;
  std::int64_t source = 0;  // columns
  std::int64_t target = 0;
};

/// Pairs, sorted by length and cut into batches. Which of the pairs of one length come first may vary, but never the
/// lengths: shapes are the same in every epoch.
class Part {
 public:
  Part(std::vector<Pair> pairs, const PairBatchesOptions& options, const std::string& name)
      : pairs_(std::move(pairs)), bucket_(options.bucket) {
    if (pairs_.empty()) throw Error("the " + name + " part has no " + (options.sources ? "sentence pair" : "text"));
    for (const Pair& pair : pairs_) {
      if ((options.sources && pair.source.size() < 2) || pair.target.size() < 2)
        throw Error("a sentence has at least its start and its end token");
      if (!options.sources && !pair.source.empty()) throw Error("texts without sources are to have none");
    }
    std::vector<std::uint32_t> order(pairs_.size());
    std::iota(order.begin(), order.end(), 0U);
    sort(order);
    for (std::size_t at = 0; at < order.size(); at += cuts_.back().count) cuts_.push_back(cut(order, at, options));
    places_ = std::move(order);
  }

  const std::vector<Cut>& cuts() const { return cuts_; }
  /// The places of the pairs, by length.
  const std::vector<std::uint32_t>& places() const { return places_; }
  const Pair& pair(std::uint32_t place) const { return pairs_[place]; }
  std::size_t size() const { return pairs_.size(); }

  /// By target length, then source length; equal ones keep their order.
  void sort(std::vector<std::uint32_t>& order) const {
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::pair(target_of(a), source_of(a)) < std::pair(target_of(b), source_of(b));
    });
  }

 private:
  std::int64_t source_of(std::uint32_t place) const { return rounded_up(pairs_[place].source.size(), bucket_); }
  /// The target is read without its last token, and predicted without its first.
  std::int64_t target_of(std::uint32_t place) const { return rounded_up(pairs_[place].target.size() - 1, bucket_); }

  /// As many pairs from `first` on as the options put into one batch.
  Cut cut(const std::vector<std::uint32_t>& order, std::size_t first, const PairBatchesOptions& options) const {
    constexpr std::int64_t unit = 8;  // rows by tokens are whole multiples of this, so that there are fewer shapes
    Cut made{first, 0, 0, 0, 0};
    for (std::size_t i = first; i < order.size(); ++i) {
      const std::int64_t source = std::max(made.source, source_of(order[i]));
      const std::int64_t target = std::max(made.target, target_of(order[i]));
      const std::int64_t fitting = options.tokens / std::max(source, target);
      const std::int64_t rows = options.tokens == 0 ? options.rows
                                : fitting < unit    ? std::max<std::int64_t>(1, fitting)
                                                    : fitting / unit * unit;
      if (static_cast<std::int64_t>(made.count) >= rows) break;
      made = {first, made.count + 1, rows, source, target};
    }
    check_batch_size(made.rows, std::max(made.source, made.target));
    return made;
  }

  std::vector<Pair> pairs_;
  std::int64_t bucket_;
  std::vector<Cut> cuts_;
  std::vector<std::uint32_t> places_;
};

/// A row of the batch's array: the tokens from `first` to `last`, then `filling`.
void write(Array array, std::int64_t row, Tokens::const_iterator first, Tokens::const_iterator last,
           std::int32_t filling) {
  const std::int64_t columns = array.shape()[1];
  std::int64_t* to = array.as<std::int64_t>() + row * columns;
  std::fill(std::copy(first, last, to), to + columns, filling);
}
}  // namespace

struct PairBatches::Data {
  PairBatchesOptions options;
  Part training;
  Part validation;
  Cut largest;  // that of the most elements
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  // The order of the epoch that was last asked for: a batch needs all of it.
  std::uint64_t epoch = 0;
  std::vector<std::uint32_t> epoch_places;   // of pairs; empty before the first
  std::vector<std::uint32_t> epoch_batches;  // of cuts

  Data(std::vector<Pair> train, std::vector<Pair> validate, const PairBatchesOptions& the_options)
      : options(the_options),
        training(std::move(train), options, "training"),
        validation(std::move(validate), options, "validation") {
    const auto elements = [](const Cut& cut) { return cut.rows * (cut.source + cut.target); };
    for (const Part* part : {&training, &validation})
      for (const Cut& cut : part->cuts()) {
        rows = std::max(rows, cut.rows);
        columns = std::max({columns, cut.source, cut.target});
        if (elements(cut) > elements(largest)) largest = cut;
      }
  }

  void shuffle(std::uint64_t the_epoch) {
    if (!epoch_places.empty() && the_epoch == epoch) return;
    epoch = the_epoch;
    const std::uint64_t stream = streams::epochs + 2 * epoch;
    epoch_places = shuffled(static_cast<std::uint32_t>(training.size()), options.seed, stream);
    training.sort(epoch_places);
    epoch_batches = shuffled(static_cast<std::uint32_t>(training.cuts().size()), options.seed, stream + 1);
  }

  Batch shaped(const Cut& cut) const {
    Batch batch;
    if (options.sources) batch.add("source", Array(Dtype::int64, {cut.rows, cut.source}));
    for (const char* name : {"tokens", "targets"}) batch.add(name, Array(Dtype::int64, {cut.rows, cut.target}));
    return batch;
  }

  /// Rows that the cut has no pairs for are padding.
  void write_batch(const Part& part, const Cut& cut, const std::vector<std::uint32_t>& places, Batch& batch) const {
    const auto fits = [&](const char* name, std::int64_t columns) {
      const Array* array = batch.find(name);
      return array != nullptr && array->dtype() == Dtype::int64 && array->shape() == Shape{cut.rows, columns};
    };
    const bool same = fits("tokens", cut.target) && fits("targets", cut.target) &&
                      (!options.sources || fits("source", cut.source)) && batch.size() == (options.sources ? 3 : 2);
    if (!same) batch = shaped(cut);
    Array tokens = batch.at("tokens");
    Array targets = batch.at("targets");
    const Tokens none;
    for (std::size_t i = 0; i < static_cast<std::size_t>(cut.rows); ++i) {
      const auto row = static_cast<std::int64_t>(i);
      const Pair* pair = i < cut.count ? &part.pair(places[cut.first + i]) : nullptr;
      const Tokens& from = pair != nullptr ? pair->source : none;
      const Tokens& to = pair != nullptr ? pair->target : none;
      const std::ptrdiff_t shifted = pair != nullptr ? 1 : 0;
      if (options.sources) write(batch.at("source"), row, from.begin(), from.end(), options.source_pad);
      write(tokens, row, to.begin(), to.end() - shifted, options.target_pad);
      write(targets, row, to.begin() + shifted, to.end(), ignored_target);
    }
  }
};

PairBatches::PairBatches(std::vector<Pair> training, std::vector<Pair> validation, const PairBatchesOptions& options) {
  if (options.rows < 1 || options.tokens < 0 || options.bucket < 1 || options.bucket > most_batch_tokens)
    throw Error("a batch has at least one row, and lengths are rounded up to multiples of 1 to " +
                std::to_string(most_batch_tokens));
  data_ = std::make_unique<Data>(std::move(training), std::move(validation), options);
}
PairBatches::~PairBatches() = default;

std::int64_t PairBatches::rows() const {
  return data_->rows;
}
std::int64_t PairBatches::columns() const {
  return data_->columns;
}
std::int64_t PairBatches::epoch_batches() const {
  return static_cast<std::int64_t>(data_->training.cuts().size());
}
std::int64_t PairBatches::validation_batches() const {
  return static_cast<std::int64_t>(data_->validation.cuts().size());
}

Batch PairBatches::blank() const {
  return data_->shaped(data_->largest);
}

void PairBatches::training(std::uint64_t index, Batch& batch) const {
  const Part& part = data_->training;
  const std::uint64_t epoch_size = part.cuts().size();
  data_->shuffle(index / epoch_size);
  data_->write_batch(part, part.cuts()[data_->epoch_batches[index % epoch_size]], data_->epoch_places, batch);
}

void PairBatches::validation(std::int64_t index, Batch& batch) const {
  const Part& part = data_->validation;
  data_->write_batch(part, part.cuts().at(static_cast<std::size_t>(index)), part.places(), batch);
}

void PairBatches::validation_sample(std::uint64_t index, Batch& batch) const {
  const std::uint64_t batches = data_->validation.cuts().size();
  validation(static_cast<std::int64_t>(draw_below(batches, data_->options.seed, streams::pairs_sample, index)), batch);
}

}  // namespace xtape
