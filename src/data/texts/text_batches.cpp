#include <algorithm>
#include <bit>
#include <cmath>

#include "base/arrays/lengths.hpp"
#include "base/arrays/order.hpp"
#include "data/tables/fields.hpp"
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
void write_block(const TokenSequence& split, std::int64_t start, std::int64_t end, std::int64_t columns,
                 std::int64_t* tokens, std::int64_t* targets) {
  const std::int64_t inside = std::clamp<std::int64_t>(end - start, 0, columns);
  if (inside > 0) {
    split.read(start, inside, tokens);
    std::copy(tokens + 1, tokens + inside, targets);
    split.read(start + inside, 1, targets + inside - 1);
  }
  std::fill(tokens + inside, tokens + columns, 0);
  std::fill(targets + inside, targets + columns, ignored_target);
}

/// Returns the number of tokens that have a successor, which is their target.
std::int64_t pairs_of(const TokenSequence& split) {
  return split.size() - 1;
}

/// Returns element `index` of a random permutation of [0, count), without a table of it. A Feistel network of four
/// rounds permutes the numbers of as many bits as `count` needs, and is applied again to results that are too large.
std::int64_t permuted(std::int64_t index, std::int64_t count, std::uint64_t seed, std::uint64_t stream) {
  const int half = (std::bit_width(static_cast<std::uint64_t>(count)) + 1) / 2;
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  auto number = static_cast<std::uint64_t>(index);
  do {
    for (std::uint64_t round = 0; round < 4; ++round) {
      const std::uint64_t right = number & mask;
      const std::uint64_t mixed = draw_below(mask + 1, seed, stream, round << 32 | right);
      number = right << half | ((number >> half ^ mixed) & mask);
    }
  } while (number >= static_cast<std::uint64_t>(count));
  return static_cast<std::int64_t>(number);
}

class HeldTokens final : public TokenSequence {
 public:
  explicit HeldTokens(Tokens tokens) : tokens_(std::move(tokens)) {}
  std::int64_t size() const override { return std::ssize(tokens_); }
  void read(std::int64_t begin, std::int64_t count, std::int64_t* to) const override {
    std::copy_n(tokens_.begin() + begin, count, to);
  }

 private:
  Tokens tokens_;
};

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

}  // namespace

std::shared_ptr<const TokenSequence> held_tokens(Tokens tokens) {
  return std::make_shared<HeldTokens>(std::move(tokens));
}

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
    : TextBatches(held_tokens(std::move(training)), held_tokens(std::move(validation)), options) {}

TextBatches::TextBatches(std::shared_ptr<const TokenSequence> training, std::shared_ptr<const TokenSequence> validation,
                         const TextBatchesOptions& options)
    : training_(std::move(training)), validation_(std::move(validation)), options_(options) {
  check_batch_size(options.rows, options.block_size);
  const std::int64_t size = the_training().size();
  if (options.order == TextOrder::consecutive && training_strip() <= options.block_size)
    throw Error("the training split has " + std::to_string(size) + " tokens; consecutive blocks of " +
                std::to_string(options.block_size) + " in " + std::to_string(options.rows) + " rows need at least " +
                std::to_string(options.rows * (options.block_size + 1)));
  if (size <= options.block_size)
    throw Error("the training split has " + std::to_string(size) + " tokens; blocks of " +
                std::to_string(options.block_size) + " need at least " + std::to_string(options.block_size + 1));
  if (the_validation().size() < 2)
    throw Error("the validation split has " + std::to_string(validation_->size()) +
                " tokens; it needs at least 2: a smaller data.split leaves it more");
}

const TokenSequence& TextBatches::the_training() const {
  return held(training_);
}

const TokenSequence& TextBatches::the_validation() const {
  return held(validation_);
}

void TextBatches::random_rows(const TokenSequence& split, std::uint64_t stream, std::uint64_t index,
                              BatchArrays& batch) const {
  const auto [tokens, targets] = Filled(rows(), columns(), batch);
  const std::int64_t places = std::max<std::int64_t>(1, split.size() - columns());
  for (std::int64_t row = 0; row < rows(); ++row) {
    const std::uint64_t counter = index * static_cast<std::uint64_t>(rows()) + static_cast<std::uint64_t>(row);
    const std::uint64_t start = draw_below(static_cast<std::uint64_t>(places), options_.seed, stream, counter);
    write_block(split, static_cast<std::int64_t>(start), pairs_of(split), columns(), tokens + row * columns(),
                targets + row * columns());
  }
}

void TextBatches::shuffled_rows(std::uint64_t index, BatchArrays& batch) const {
  const TokenSequence& split = the_training();
  const std::int64_t first = in_epoch(index, epoch_batches()) * rows(), blocks = training_blocks();
  const std::uint64_t epoch = index / static_cast<std::uint64_t>(epoch_batches());
  const std::int64_t present = std::min(rows(), blocks - first);
  const auto [tokens, targets] = Filled(present, columns(), batch);
  for (std::int64_t row = 0; row < present; ++row)
    write_block(split, permuted(first + row, blocks, options_.seed, streams::epochs + 2 * epoch) * columns(),
                pairs_of(split), columns(), tokens + row * columns(), targets + row * columns());
}

void TextBatches::windows(const TokenSequence& split, std::int64_t strip, std::int64_t index,
                          BatchArrays& batch) const {
  // The last strips of a split may end before the others. The rows of strips that have ended are left out.
  const std::int64_t present = std::min(rows(), ceiling(pairs_of(split) - index * columns(), strip));
  const auto [tokens, targets] = Filled(present, columns(), batch);
  for (std::int64_t row = 0; row < present; ++row)
    write_block(split, row * strip + index * columns(), std::min((row + 1) * strip, pairs_of(split)), columns(),
                tokens + row * columns(), targets + row * columns());
}

std::int64_t TextBatches::training_strip() const {
  return the_training().size() / rows();
}

std::int64_t TextBatches::training_blocks() const {
  return pairs_of(the_training()) / columns();
}

std::int64_t TextBatches::validation_strip() const {
  return ceiling(pairs_of(the_validation()), rows());
}

std::int64_t TextBatches::epoch_batches() const {
  if (options_.order == TextOrder::consecutive) return (training_strip() - 1) / columns();
  return options_.order == TextOrder::shuffled ? ceiling(training_blocks(), rows()) : 0;
}

std::uint64_t TextBatches::order() const {
  if (options_.order == TextOrder::random) return 0;
  std::vector<std::uint64_t> sizes;
  for (const std::int64_t size : {the_training().size(), rows(), columns()})
    sizes.push_back(static_cast<std::uint64_t>(size));
  if (options_.order == TextOrder::shuffled) sizes.push_back(1);
  return order_by(sizes);
}

void TextBatches::training(std::uint64_t index, BatchArrays& batch) const {
  if (options_.order == TextOrder::consecutive)
    windows(the_training(), training_strip(), in_epoch(index, epoch_batches()), batch);
  else if (options_.order == TextOrder::shuffled)
    shuffled_rows(index, batch);
  else
    random_rows(the_training(), streams::text_rows, index, batch);
}

bool TextBatches::training_continues(std::uint64_t index) const {
  return options_.order == TextOrder::consecutive && in_epoch(index, epoch_batches()) != 0;
}

void TextBatches::validation_sample(std::uint64_t index, BatchArrays& batch) const {
  random_rows(the_validation(), streams::text_sample, index, batch);
}

std::int64_t TextBatches::validation_batches() const {
  return options_.order == TextOrder::consecutive ? ceiling(validation_strip(), columns())
                                                  : ceiling(pairs_of(the_validation()), rows() * columns());
}

void TextBatches::validation(std::int64_t index, BatchArrays& batch) const {
  check_validation_index(index, validation_batches());
  if (options_.order == TextOrder::consecutive) return windows(the_validation(), validation_strip(), index, batch);
  const std::int64_t present = std::min(rows(), ceiling(pairs_of(the_validation()), columns()) - index * rows());
  const auto [tokens, targets] = Filled(present, columns(), batch);
  for (std::int64_t row = 0; row < present; ++row)
    write_block(the_validation(), (index * rows() + row) * columns(), pairs_of(the_validation()), columns(),
                tokens + row * columns(), targets + row * columns());
}

bool TextBatches::validation_continues(std::int64_t index) const {
  return options_.order == TextOrder::consecutive && index > 0;
}

}  // namespace xtape
