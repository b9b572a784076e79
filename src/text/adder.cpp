#include <algorithm>

#include "batch_size.hpp"
#include "order.hpp"
#include "xtape/text.hpp"

namespace xtape {

namespace {

struct Line {
  std::string prompt;  // "47+85="
  std::string answer;  // "132\n"
};

std::int64_t power_of_ten(std::int64_t digits) {
  return digits == 0 ? 1 : 10 * power_of_ten(digits - 1);
}

std::string written(std::int64_t number, std::int64_t digits, bool padded) {
  std::string text = std::to_string(number);
  if (padded) text.insert(0, static_cast<std::size_t>(digits) - text.size(), '0');
  return text;
}

Line line_of(std::int64_t a, std::int64_t b, const AdderOptions& options) {
  std::string sum = written(a + b, options.digits + 1, options.padded);
  if (options.reversed) std::reverse(sum.begin(), sum.end());
  return {written(a, options.digits, options.padded) + "+" + written(b, options.digits, options.padded) + "=",
          sum + "\n"};
}

/// Those of the longest line, less its last token, which is only ever a target.
std::int64_t columns_of(const AdderOptions& options) {
  return 3 * options.digits + 3;
}

void check(const AdderOptions& options) {
  if (options.digits < 1 || options.digits > 3)
    throw Error("the adder adds numbers of 1 to 3 digits, not " + std::to_string(options.digits));
  const std::int64_t sums = AdderBatches::sums(options.digits);
  if (options.held_out < 1 || options.held_out >= sums)
    throw Error("of " + std::to_string(sums) + " sums, between 1 and " + std::to_string(sums - 1) +
                " can be held out, not " + std::to_string(options.held_out));
  check_batch_size(options.rows, columns_of(options));
}
}  // namespace

std::int64_t AdderBatches::sums(std::int64_t digits) {
  return power_of_ten(2 * digits);
}

std::string AdderBatches::text(const AdderOptions& options) {
  check(options);
  std::string text;
  const std::int64_t numbers = power_of_ten(options.digits);
  for (std::int64_t a = 0; a < numbers; ++a)
    for (std::int64_t b = 0; b < numbers; ++b) {
      const Line line = line_of(a, b, options);
      text += line.prompt + line.answer;
    }
  return text;
}

AdderBatches::AdderBatches(const Tokenizer& tokenizer, const AdderOptions& options) : options_(options) {
  check(options);
  columns_ = columns_of(options);
  const std::int64_t numbers = power_of_ten(options.digits);
  const auto order = shuffled(static_cast<std::uint32_t>(numbers * numbers), split_seed, streams::adder_split);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Line line = line_of(order[i] / numbers, order[i] % numbers, options);
    Question question = {tokenizer.encode(line.prompt), tokenizer.encode(line.answer)};
    if (question.prompt.size() != line.prompt.size() || question.answer.size() != line.answer.size())
      throw Error("the adder needs a tokenizer that gives one token a character");
    (i < static_cast<std::size_t>(options.held_out) ? held_out_ : training_).push_back(std::move(question));
  }
}

void AdderBatches::write_row(const Question& line, std::int64_t row, Batch& batch) const {
  std::int64_t* tokens = batch.at("tokens").as<std::int64_t>() + row * columns_;
  std::int64_t* targets = batch.at("targets").as<std::int64_t>() + row * columns_;
  std::fill_n(tokens, columns_, 0);
  std::fill_n(targets, columns_, ignored_target);
  std::copy(line.prompt.begin(), line.prompt.end(), tokens);
  std::copy(line.answer.begin(), line.answer.end() - 1, tokens + line.prompt.size());
  std::copy(line.answer.begin(), line.answer.end(), targets + line.prompt.size() - 1);
}

void AdderBatches::training(std::uint64_t index, Batch& batch) const {
  const auto count = static_cast<std::uint64_t>(training_.size());
  std::vector<std::uint32_t> order;
  std::uint64_t shuffled_epoch = 0;
  for (std::int64_t row = 0; row < options_.rows; ++row) {
    const std::uint64_t place = index * static_cast<std::uint64_t>(options_.rows) + static_cast<std::uint64_t>(row);
    const std::uint64_t epoch = place / count;
    if (order.empty() || epoch != shuffled_epoch)
      order = shuffled(static_cast<std::uint32_t>(count), options_.seed, streams::epochs + epoch);
    shuffled_epoch = epoch;
    write_row(training_[order[place % count]], row, batch);
  }
}

std::int64_t AdderBatches::validation_batches() const {
  return (static_cast<std::int64_t>(held_out_.size()) + options_.rows - 1) / options_.rows;
}

void AdderBatches::validation(std::int64_t index, Batch& batch) const {
  for (std::int64_t row = 0; row < options_.rows; ++row) {
    const auto place = static_cast<std::size_t>(index * options_.rows + row);
    if (place < held_out_.size()) {
      write_row(held_out_[place], row, batch);
    } else {  // the last batch is filled up with rows that count for nothing
      std::fill_n(batch.at("tokens").as<std::int64_t>() + row * columns_, columns_, 0);
      std::fill_n(batch.at("targets").as<std::int64_t>() + row * columns_, columns_, ignored_target);
    }
  }
}

void AdderBatches::validation_sample(std::uint64_t index, Batch& batch) const {
  for (std::int64_t row = 0; row < options_.rows; ++row) {
    const std::uint64_t counter = index * static_cast<std::uint64_t>(options_.rows) + static_cast<std::uint64_t>(row);
    write_row(held_out_[draw_below(held_out_.size(), options_.seed, streams::adder_sample, counter)], row, batch);
  }
}

std::vector<Question> AdderBatches::questions() const {
  return held_out_;
}

}  // namespace xtape
