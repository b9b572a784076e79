#include <algorithm>
#include <cmath>

#include "base/arrays/order.hpp"
#include "base/memory/lengths.hpp"
#include "data/texts/texts.hpp"
#include "xtape/text.hpp"

// Reads files of several texts. Each text becomes a row.
namespace xtape {

std::vector<std::string> split_documents(const std::string& text, DocumentEnd end) {
  std::vector<std::string> documents;
  std::string document;
  const auto finish = [&] {
    if (!document.empty()) documents.push_back(std::move(document));
    document.clear();
  };
  for_each_line(text, [&](const std::string& line) {
    const bool blank = line.find_first_not_of(" \t") == std::string::npos;
    if (blank || end == DocumentEnd::line) finish();
    if (!blank) document += (document.empty() ? "" : "\n") + line;
  });
  finish();
  return documents;
}

namespace {

/// Writes one row: tokens[start, start + columns), and as the target of each token the token after it. From `end` on,
/// writes token 0 and ignored targets.
void write_block(const Tokens& split, std::int64_t start, std::int64_t end, std::int64_t columns, std::int64_t* tokens,
                 std::int64_t* targets) {
  for (std::int64_t i = 0; i < columns; ++i) {
    const bool inside = start + i < end;
    const auto at = static_cast<std::size_t>(start + i);
    tokens[i] = inside ? split[at] : 0;
    targets[i] = inside ? split[at + 1] : ignored_target;
  }
}

/// Returns the number of tokens that have a successor, which is their target.
std::int64_t pairs_of(const Tokens& split) {
  return std::ssize(split) - 1;
}

BatchArrays arrays_of(std::int64_t rows, std::int64_t columns) {
  const Shape shape = {rows, columns};
  return {{"tokens", Array(Dtype::int64, shape)}, {"targets", Array(Dtype::int64, shape)}};
}

/// The arrays of tokens and targets of a batch. The constructor replaces the arrays if the batch has another shape.
struct Filled {
  Filled(std::int64_t rows, std::int64_t columns, BatchArrays& batch) {
    const auto fits = [&](const char* name) {
      const Array* array = batch.find(name);
      return array != nullptr && array->dtype() == Dtype::int64 && array->shape() == Shape{rows, columns};
    };
    if (!fits("tokens") || !fits("targets")) batch = arrays_of(rows, columns);
    tokens = batch.at("tokens").as<std::int64_t>();
    targets = batch.at("targets").as<std::int64_t>();
  }
  std::int64_t* tokens;
  std::int64_t* targets;
};

/// Returns the number of a batch within its epoch.
std::int64_t in_epoch(std::uint64_t index, std::int64_t epoch) {
  return static_cast<std::int64_t>(index % static_cast<std::uint64_t>(epoch));
}

/// Throws HandleError if the split belongs to batches that were moved from.
void require(const Tokens& split) {
  if (split.empty()) *Owner<const Tokens>();
}
}  // namespace

BatchArrays Batches::blank() const {
  return arrays_of(rows(), columns());
}

TextSplit split_text(const std::string& text, double fraction) {
  if (!(fraction > 0 && fraction <= 1))
    throw Error("the training split must be a fraction in (0, 1] of the text, got " + std::to_string(fraction));
  // The split into training and validation counts characters, not bytes.
  const auto starts_character = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; };
  const auto characters = std::ranges::count_if(text, starts_character);
  auto left = static_cast<std::ptrdiff_t>(std::floor(static_cast<double>(characters) * fraction));
  std::size_t at = 0;
  for (; at < text.size(); ++at)
    if (starts_character(text[at]) && left-- == 0) break;
  return {text.substr(0, at), text.substr(at)};
}

TextBatches::TextBatches(Tokens training, Tokens validation, const TextBatchesOptions& options)
    : training_(std::move(training)), validation_(std::move(validation)), options_(options) {
  check_batch_size(options.rows, options.block_size);
  if (options.consecutive && training_strip() <= options.block_size)
    throw Error("the training split has " + std::to_string(training_.size()) + " tokens; consecutive blocks of " +
                std::to_string(options.block_size) + " in " + std::to_string(options.rows) + " rows need at least " +
                std::to_string(options.rows * (options.block_size + 1)));
  if (training_.size() <= static_cast<std::size_t>(options.block_size))
    throw Error("the training split has " + std::to_string(training_.size()) + " tokens; blocks of " +
                std::to_string(options.block_size) + " need at least " + std::to_string(options.block_size + 1));
  if (validation_.size() < 2)
    throw Error("the validation split has " + std::to_string(validation_.size()) +
                " tokens; it needs at least 2: a smaller data.split leaves it more");
}

void TextBatches::random_rows(const Tokens& split, std::uint64_t stream, std::uint64_t index,
                              BatchArrays& batch) const {
  const auto [tokens, targets] = Filled(rows(), columns(), batch);
  require(split);
  const std::int64_t places = std::max<std::int64_t>(1, std::ssize(split) - columns());
  for (std::int64_t row = 0; row < rows(); ++row) {
    const std::uint64_t counter = index * static_cast<std::uint64_t>(rows()) + static_cast<std::uint64_t>(row);
    const std::uint64_t start = draw_below(static_cast<std::uint64_t>(places), options_.seed, stream, counter);
    write_block(split, static_cast<std::int64_t>(start), pairs_of(split), columns(), tokens + row * columns(),
                targets + row * columns());
  }
}

void TextBatches::windows(const Tokens& split, std::int64_t strip, std::int64_t index, BatchArrays& batch) const {
  // The last strips of a split may end before the others. The rows of strips that have ended are left out.
  const std::int64_t present = std::min(rows(), ceiling(pairs_of(split) - index * columns(), strip));
  const auto [tokens, targets] = Filled(present, columns(), batch);
  for (std::int64_t row = 0; row < present; ++row)
    write_block(split, row * strip + index * columns(), std::min((row + 1) * strip, pairs_of(split)), columns(),
                tokens + row * columns(), targets + row * columns());
}

std::int64_t TextBatches::training_strip() const {
  require(training_);
  return std::ssize(training_) / rows();
}

std::int64_t TextBatches::validation_strip() const {
  require(validation_);
  return ceiling(pairs_of(validation_), rows());
}

std::int64_t TextBatches::epoch_batches() const {
  return options_.consecutive ? (training_strip() - 1) / columns() : 0;
}

std::uint64_t TextBatches::order() const {
  if (!options_.consecutive) return 0;
  return order_by({training_.size(), static_cast<std::uint64_t>(rows()), static_cast<std::uint64_t>(columns())});
}

void TextBatches::training(std::uint64_t index, BatchArrays& batch) const {
  if (options_.consecutive)
    windows(training_, training_strip(), in_epoch(index, epoch_batches()), batch);
  else
    random_rows(training_, streams::text_rows, index, batch);
}

bool TextBatches::training_continues(std::uint64_t index) const {
  return options_.consecutive && in_epoch(index, epoch_batches()) != 0;
}

void TextBatches::validation_sample(std::uint64_t index, BatchArrays& batch) const {
  random_rows(validation_, streams::text_sample, index, batch);
}

std::int64_t TextBatches::validation_batches() const {
  require(validation_);
  return options_.consecutive ? ceiling(validation_strip(), columns())
                              : ceiling(pairs_of(validation_), rows() * columns());
}

void TextBatches::validation(std::int64_t index, BatchArrays& batch) const {
  check_validation_index(index, validation_batches());
  if (options_.consecutive) return windows(validation_, validation_strip(), index, batch);
  const std::int64_t present = std::min(rows(), ceiling(pairs_of(validation_), columns()) - index * rows());
  const auto [tokens, targets] = Filled(present, columns(), batch);
  for (std::int64_t row = 0; row < present; ++row)
    write_block(validation_, (index * rows() + row) * columns(), pairs_of(validation_), columns(),
                tokens + row * columns(), targets + row * columns());
}

bool TextBatches::validation_continues(std::int64_t index) const {
  return options_.consecutive && index > 0;
}

}  // namespace xtape
