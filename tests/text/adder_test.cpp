#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "xtape/text.hpp"

using namespace xtape;

namespace {
/// A row of a batch as text, and its targets as text with '.' where they are ignored.
std::pair<std::string, std::string> row_text(const Tokenizer& tokenizer, const Batch& batch, std::int64_t row) {
  const std::int64_t columns = batch.at("tokens").shape()[1];
  std::pair<std::string, std::string> text;
  for (std::int64_t i = 0; i < columns; ++i) {
    text.first +=
        tokenizer.decode({static_cast<std::int32_t>(batch.at("tokens").as<std::int64_t>()[row * columns + i])});
    const std::int64_t target = batch.at("targets").as<std::int64_t>()[row * columns + i];
    text.second += target == ignored_target ? "." : tokenizer.decode({static_cast<std::int32_t>(target)});
  }
  return text;
}
}  // namespace

TEST_CASE("the adder's lines") {
  const std::string plain = AdderBatches::text({});
  CHECK(plain.find("\n47+85=132\n") != std::string::npos);
  CHECK(plain.find("\n7+5=12\n") != std::string::npos);
  CHECK(std::count(plain.begin(), plain.end(), '\n') == 10000);
  const std::string other = AdderBatches::text({.reversed = true, .padded = true});
  CHECK(other.find("\n47+85=231\n") != std::string::npos);
  CHECK(other.find("\n07+05=210\n") != std::string::npos);
}

TEST_CASE("an adder's row targets the answer and the line's end alone") {
  AdderOptions options;
  options.rows = 4;
  options.held_out = 2500;
  const CharacterTokenizer tokenizer(AdderBatches::text(options));
  CHECK(tokenizer.size() == 13);
  const AdderBatches batches(tokenizer, options);
  Batch batch = batches.blank();
  CHECK(batch.at("targets").shape() == Shape{4, 9});
  for (std::uint64_t index = 0; index < 20; ++index) {
    batches.training(index, batch);
    for (std::int64_t row = 0; row < 4; ++row) {
      const auto [tokens, targets] = row_text(tokenizer, batch, row);
      const std::size_t plus = tokens.find('+');
      const std::size_t equals = tokens.find('=');
      const int sum = std::stoi(tokens.substr(0, plus)) + std::stoi(tokens.substr(plus + 1, equals - plus - 1));
      const std::string answer = std::to_string(sum) + "\n";
      CHECK(targets == std::string(equals, '.') + answer + std::string(9 - equals - answer.size(), '.'));
    }
  }
}

TEST_CASE("an epoch holds every training sum once and no held-out one") {
  AdderOptions options;
  options.rows = 10;
  options.digits = 1;
  options.held_out = 20;
  options.seed = 5;
  const CharacterTokenizer tokenizer(AdderBatches::text(options));
  const AdderBatches batches(tokenizer, options);
  Batch batch = batches.blank();
  std::vector<std::set<std::string>> epochs(2);
  std::vector<std::string> first_rows;
  for (std::uint64_t index = 0; index < 16; ++index) {
    batches.training(index, batch);
    for (std::int64_t row = 0; row < 10; ++row) epochs[index / 8].insert(row_text(tokenizer, batch, row).first);
    if (index % 8 == 0) first_rows.push_back(row_text(tokenizer, batch, 0).first);
  }
  CHECK(epochs[0].size() == 80);
  CHECK(epochs[0] == epochs[1]);
  CHECK(first_rows[0] != first_rows[1]);  // shuffled anew
  std::set<std::string> held_out;
  for (const Question& question : batches.questions()) {
    const std::string line = tokenizer.decode(question.prompt) + tokenizer.decode(question.answer);
    held_out.insert(line);
    for (const std::string& seen : epochs[0]) CHECK(seen.substr(0, 4) != line.substr(0, 4));
  }
  CHECK(held_out.size() == 20);

  options.seed = 6;  // the same sums are held out
  const AdderBatches other(tokenizer, options);
  CHECK(other.questions()[3].prompt == batches.questions()[3].prompt);
}

TEST_CASE("the adder's validation holds every held-out sum once") {
  AdderOptions options;
  options.rows = 7;
  options.digits = 1;
  options.held_out = 20;
  const CharacterTokenizer tokenizer(AdderBatches::text(options));
  const AdderBatches batches(tokenizer, options);
  Batch batch = batches.blank();
  CHECK(batches.validation_batches() == 3);
  std::set<std::string> seen;
  for (std::int64_t index = 0; index < 3; ++index) {
    batches.validation(index, batch);
    for (std::int64_t row = 0; row < 7; ++row) {
      const auto [tokens, targets] = row_text(tokenizer, batch, row);
      if (targets != "......") seen.insert(tokens);
    }
  }
  CHECK(seen.size() == 20);
}

TEST_CASE("options that make no sense are refused") {
  const CharacterTokenizer tokenizer(AdderBatches::text({}));
  CHECK_THROWS_WITH_AS(AdderBatches(tokenizer, {.digits = 4}), "the adder adds numbers of 1 to 3 digits, not 4", Error);
  CHECK_THROWS_WITH_AS(AdderBatches(tokenizer, {.held_out = 10000}), doctest::Contains("between 1 and 9999"), Error);
  CHECK_THROWS_AS(AdderBatches(tokenizer, {.rows = 0}), Error);
  CHECK_THROWS_WITH_AS(AdderBatches(CharacterTokenizer("12"), {}), doctest::Contains("is not among"), Error);
}
