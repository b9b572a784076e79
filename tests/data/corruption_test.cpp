// Masked language modelling and span corruption: shares, lengths, inverse, and batches.
#include "xtape/corruption.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "xtape/error.hpp"

using namespace xtape;

namespace {
Tokens consecutive(std::int32_t first, std::size_t count) {
  Tokens tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

MaskedLmOptions bert() {
  MaskedLmOptions options;
  options.mask = 9;
  options.vocabulary = 1000;
  options.kept = {1, 2};
  return options;
}

SpanCorruptionOptions t5(std::size_t sentinels = 100) {
  SpanCorruptionOptions options;
  for (std::size_t i = 0; i < sentinels; ++i) options.sentinels.push_back(5000 - static_cast<std::int32_t>(i));
  return options;
}

/// Puts the spans of the target back into the source.
Tokens restored(const CorruptedText& text, const Tokens& sentinels) {
  Tokens whole;
  auto span = text.target.begin();
  for (const std::int32_t token : text.source) {
    if (std::ranges::find(sentinels, token) == sentinels.end()) {
      whole.push_back(token);
      continue;
    }
    if (span == text.target.end() || *span != token) return {};  // the spans have the order of their sentinels
    for (++span; span != text.target.end() && std::ranges::find(sentinels, *span) == sentinels.end(); ++span)
      whole.push_back(*span);
  }
  return span == text.target.end() ? whole : Tokens();
}
}  // namespace

TEST_CASE("masked_lm predicts 15 % of the tokens: 80 % are masked, 10 % random, 10 % unchanged") {
  double predicted = 0, masked = 0, same = 0, all = 0;
  std::map<std::size_t, int> places;
  for (std::uint64_t number = 0; number < 2000; ++number) {
    Tokens text = consecutive(100, 62);
    text.insert(text.begin(), 1);
    text.push_back(2);
    const MaskedText made = masked_lm(text, bert(), 7, 3, number);
    REQUIRE(made.tokens.size() == text.size());
    CHECK(std::ranges::count_if(made.targets, [](std::int32_t each) { return each >= 0; }) == 9);  // 0.15 * 62
    for (std::size_t i = 0; i < text.size(); ++i) {
      ++all;
      if (made.targets[i] == ignored_target) {
        CHECK(made.tokens[i] == text[i]);
        continue;
      }
      CHECK(made.targets[i] == text[i]);
      CHECK((text[i] != 1 && text[i] != 2));
      ++predicted;
      ++places[i];
      masked += made.tokens[i] == 9 ? 1 : 0;
      same += made.tokens[i] == text[i] ? 1 : 0;
    }
  }
  // Within four standard deviations of 18000 draws.
  CHECK(std::abs(masked / predicted - 0.8) < 4 * std::sqrt(0.8 * 0.2 / predicted));
  CHECK(std::abs(same / predicted - 0.1) < 4 * std::sqrt(0.1 * 0.9 / predicted) + 0.001);
  CHECK(places.size() == 62);
  for (const auto& each : places) CHECK(std::abs(each.second - 2000 * 9 / 62.0) < 5 * std::sqrt(2000 * 9 / 62.0));
}

TEST_CASE("masked_lm depends on seed, stream and number alone, and predicts at least one token") {
  const Tokens text = consecutive(100, 40);
  const auto targets = [&](std::uint64_t seed, std::uint64_t stream, std::uint64_t number) {
    return masked_lm(text, bert(), seed, stream, number).targets;
  };
  CHECK(targets(1, 2, 3) == targets(1, 2, 3));
  CHECK(targets(1, 2, 3) != targets(2, 2, 3));
  CHECK(targets(1, 2, 3) != targets(1, 3, 3));
  CHECK(targets(1, 2, 3) != targets(1, 2, 4));
  CHECK(masked_lm({100, 1}, bert(), 0, 0, 0).targets == Tokens{100, ignored_target});
  CHECK(masked_lm({1, 2}, bert(), 0, 0, 0).tokens == Tokens{1, 2});
  CHECK(masked_lm({}, bert(), 0, 0, 0).tokens.empty());
  MaskedLmOptions all = bert();
  all.masked = 1;
  all.random = 0;
  const MaskedText made = masked_lm(text, all, 0, 0, 0);
  CHECK(std::ranges::count(made.tokens, 9) == 6);
}

TEST_CASE("span corruption has the lengths of T5, and its inverse is the text") {
  // As in T5's code: 568 tokens give 512 and 114 with an end token each.
  const CorruptedLengths lengths = corrupted_lengths(568, t5());
  CHECK(lengths.source + 1 == 512);
  CHECK(lengths.target + 1 == 114);
  CHECK(lengths.spans == 28);
  double spans = 0, tokens = 0, begins = 0;
  for (const std::size_t length : {2U, 3U, 7U, 20U, 64U, 301U})
    for (std::uint64_t number = 0; number < 300; ++number) {
      const Tokens text = consecutive(100, length);
      const CorruptedText made = span_corruption(text, t5(), 3, 1, number);
      const CorruptedLengths expected = corrupted_lengths(static_cast<std::int64_t>(length), t5());
      CHECK(std::ssize(made.source) == expected.source);
      CHECK(std::ssize(made.target) == expected.target);
      CHECK(restored(made, t5().sentinels) == text);
      CHECK(made.source[0] == 100);  // a text begins with a piece that stays
      CHECK(made.target[0] == 5000);
      if (length != 301) continue;
      spans += static_cast<double>(expected.spans);
      tokens += static_cast<double>(expected.target - expected.spans);
      begins += made.source[1] == 5000 ? 1 : 0;
    }
  CHECK(std::abs(tokens / spans - 3) < 0.1);
  CHECK(std::abs(begins / 300 - 14.0 / 255) < 0.06);  // the first of 15 pieces of 256 tokens has one token
  CHECK(span_corruption({7}, t5(), 0, 0, 0).source == Tokens{7});
  CHECK(span_corruption({7}, t5(), 0, 0, 0).target.empty());
  CHECK(span_corruption({}, t5(), 0, 0, 0).source.empty());
}

TEST_CASE("corruption refuses options out of range") {
  const auto masks = [](auto change) {
    MaskedLmOptions options = bert();
    change(options);
    masked_lm({100, 101}, options, 0, 0, 0);
  };
  CHECK_THROWS_WITH_AS(masks([](auto& o) { o.rate = 0; }), doctest::Contains("in (0, 1)"), Error);
  CHECK_THROWS_WITH_AS(masks([](auto& o) { o.rate = std::nan(""); }), doctest::Contains("in (0, 1)"), Error);
  CHECK_THROWS_WITH_AS(masks([](auto& o) { o.random = 0.3; }), doctest::Contains("at most 1"), Error);
  CHECK_THROWS_WITH_AS(masks([](auto& o) { o.mask = -1; }), doctest::Contains("a mask token"), Error);
  CHECK_THROWS_WITH_AS(corrupted_lengths(1000, t5(10)), doctest::Contains("50 spans, more than the 10 sentinels"),
                       Error);
  SpanCorruptionOptions spans = t5();
  spans.mean_span = 0.5;
  CHECK_THROWS_WITH_AS(corrupted_lengths(100, spans), doctest::Contains("at least 1"), Error);
}

namespace {
/// Documents of different lengths, with start 1 and end 2, or a text.
std::unique_ptr<Batches> inner(bool documents) {
  if (!documents)
    return std::make_unique<TextBatches>(consecutive(100, 400), consecutive(100, 75), TextBatchesOptions{3, 20, 5});
  DataRows rows{{{"tokens", Column::Kind::text, 0}}, {}};
  for (std::size_t length = 5; length < 30; ++length) {
    DataRows::Cell cell{consecutive(100, length), {}};
    cell.tokens.insert(cell.tokens.begin(), 1);
    cell.tokens.push_back(2);
    rows.rows.push_back({cell});
  }
  return std::make_unique<RowBatches>(rows, rows, RowBatchesOptions{.rows = 4, .seed = 5});
}

CorruptionOptions options_of(CorruptionOptions::Kind kind) {
  CorruptionOptions options;
  options.kind = kind;
  options.masks = bert();
  options.spans = t5();
  options.start = 1;
  options.end = 2;
  options.seed = 5;
  return options;
}

std::vector<Tokens> rows_in(const BatchArrays& batch, const char* name, std::int64_t filling) {
  const Array& array = batch.at(name);
  std::vector<Tokens> rows;
  for (std::int64_t row = 0; row < array.shape()[0]; ++row) {
    Tokens& tokens = rows.emplace_back();
    for (std::int64_t i = 0; i < array.shape()[1]; ++i)
      tokens.push_back(static_cast<std::int32_t>(array.as<std::int64_t>()[row * array.shape()[1] + i]));
    while (!tokens.empty() && tokens.back() == filling) tokens.pop_back();
  }
  return rows;
}
}  // namespace

TEST_CASE("corrupted batches have the texts of their batches, other parts in each epoch, and always the same ones") {
  using Kind = CorruptionOptions::Kind;
  for (const bool documents : {false, true})
    for (const Kind kind : {Kind::masked_lm, Kind::span_corruption}) {
      CAPTURE(documents);
      const CorruptedBatches batches(inner(documents), options_of(kind));
      const auto plain = inner(documents);
      BatchArrays batch = batches.blank(), again = batches.blank(), text = plain->blank();
      const auto check = [&](bool training, std::int64_t index) {
        if (training) {
          batches.training(static_cast<std::uint64_t>(index), batch);
          plain->training(static_cast<std::uint64_t>(index), text);
        } else {
          batches.validation(index, batch);
          plain->validation(index, text);
        }
        const auto texts = rows_in(text, "tokens", 0), tokens = rows_in(batch, "tokens", 0),
                   targets = rows_in(batch, "targets", ignored_target);
        CHECK(tokens.size() == texts.size());
        for (std::size_t row = 0; row < texts.size(); ++row) {
          if (kind == Kind::masked_lm) {
            for (std::size_t i = 0; i < targets[row].size(); ++i)
              CHECK((targets[row][i] == ignored_target ? tokens[row][i] : targets[row][i]) == texts[row][i]);
            continue;
          }
          CorruptedText made{rows_in(batch, "source", 0)[row], targets[row]};
          CHECK(made.source.back() == 2);
          CHECK(made.target.back() == 2);
          made.source.pop_back();
          made.target.pop_back();
          if (documents) made.source.erase(made.source.begin());
          const Tokens whole = restored(made, t5().sentinels);
          CHECK(whole == (documents ? Tokens(texts[row].begin() + 1, texts[row].end() - 1) : texts[row]));
          CHECK(tokens[row].front() == 1);  // the targets, one later
          CHECK(std::equal(tokens[row].begin() + 1, tokens[row].end(), targets[row].begin()));
        }
      };
      for (std::int64_t index = 0; index < 12; ++index) check(true, index);
      for (std::int64_t index = 0; index < batches.validation_batches(); ++index) check(false, index);
      batches.validation(0, batch);
      batches.training(3, again);
      batches.validation(0, again);
      CHECK(rows_in(batch, "targets", -1) == rows_in(again, "targets", -1));
      if (!documents) continue;
      std::map<Tokens, int> seen;  // a text has other targets in other epochs
      for (std::int64_t index = 0; index < 20 * batches.epoch_batches(); ++index) {
        batches.training(static_cast<std::uint64_t>(index), batch);
        for (const Tokens& each : rows_in(batch, "targets", -1)) ++seen[each];
      }
      CHECK(seen.size() > (kind == Kind::masked_lm ? 60U : 24U));  // these texts have one span, which is their end
    }
}
