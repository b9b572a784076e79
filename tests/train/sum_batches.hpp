/// Sums of one digit, such as 3+4=7, one per row, with the answer and the line end as targets. 80 are for training and
/// 20 are held out. A row has two or three targets.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "xtape/text.hpp"

namespace tiny {

/// The sums, in a mixed order.
inline std::vector<std::string> sums() {
  std::vector<std::string> lines;
  for (int i = 0; i < 100; ++i) {
    const int a = i * 37 % 100 / 10, b = i * 37 % 10;
    lines.push_back(std::to_string(a) + "+" + std::to_string(b) + "=" + std::to_string(a + b));
  }
  return lines;
}

inline std::string sums_text() {
  std::string text;
  for (const std::string& line : sums()) text += line + "\n";
  return text;
}

class SumBatches : public xtape::Batches {
 public:
  SumBatches(const xtape::Tokenizer& tokenizer, std::int64_t rows) : rows_(rows) {
    for (const std::string& line : sums()) lines_.push_back(tokenizer.encode(line + "\n"));
  }
  std::int64_t rows() const override { return rows_; }
  std::int64_t columns() const override { return 6; }
  void training(std::uint64_t index, xtape::BatchArrays& batch) const override {
    for (std::int64_t row = 0; row < rows_; ++row)
      write((static_cast<std::int64_t>(index) * rows_ + row) % trained, row, batch);
  }
  std::int64_t validation_batches() const override { return (held_out + rows_ - 1) / rows_; }
  void validation(std::int64_t index, xtape::BatchArrays& batch) const override {
    for (std::int64_t row = 0; row < rows_; ++row) write(trained + index * rows_ + row, row, batch);
  }
  void validation_sample(std::uint64_t index, xtape::BatchArrays& batch) const override {
    for (std::int64_t row = 0; row < rows_; ++row)
      write(trained + (static_cast<std::int64_t>(index) * 7 + row) % held_out, row, batch);
  }
  /// The number of targets of the held-out sums.
  std::int64_t held_out_targets() const {
    std::int64_t count = 0;
    for (std::int64_t i = trained; i < trained + held_out; ++i)
      count += static_cast<std::int64_t>(lines_[static_cast<std::size_t>(i)].size()) - 4;
    return count;
  }

 private:
  static constexpr std::int64_t trained = 80, held_out = 20;

  /// Writes a line, or, after the last one, a row without targets.
  void write(std::int64_t line, std::int64_t row, xtape::BatchArrays& batch) const {
    std::int64_t* tokens = batch.at("tokens").as<std::int64_t>() + row * columns();
    std::int64_t* targets = batch.at("targets").as<std::int64_t>() + row * columns();
    std::fill_n(tokens, columns(), 0);
    std::fill_n(targets, columns(), xtape::ignored_target);
    if (line >= static_cast<std::int64_t>(lines_.size())) return;
    const xtape::Tokens& all = lines_[static_cast<std::size_t>(line)];
    std::copy(all.begin(), all.end() - 1, tokens);
    std::copy(all.begin() + 4, all.end(), targets + 3);  // the characters after "3+4="
  }

  std::int64_t rows_;
  std::vector<xtape::Tokens> lines_;
};

/// Pairs of numbers in Portuguese and English digit words, from number `first` on.
inline std::string number_pairs(int first, int count) {
  const char* portuguese[] = {"zero", "um", "dois", "três", "quatro", "cinco", "seis", "sete", "oito", "nove"};
  const char* english[] = {"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"};
  std::string text;
  for (int i = first; i < first + count; ++i) {
    std::string source, target;
    for (const char digit : std::to_string(i * 37 % 1000)) {
      source += (source.empty() ? "" : " ") + std::string(portuguese[digit - '0']);
      target += (target.empty() ? "" : " ") + std::string(english[digit - '0']);
    }
    text += source + "\t" + target + "\n";
  }
  return text;
}

}  // namespace tiny
