#include "xtape/corruption.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/arrays/order.hpp"
#include "base/messages/wording.hpp"
#include "xtape/error.hpp"

namespace xtape {

namespace {
/// The first of three streams of random numbers: of training, validation and samples of it. See streams (order.hpp),
/// whose numbers of epochs stay below it.
constexpr std::uint64_t corrupted_stream = std::uint64_t{1} << 60;

/// Random numbers of one text, one after the other.
class TextDraws {
 public:
  TextDraws(std::uint64_t seed, std::uint64_t stream, std::uint64_t number)
      : seed_(seed), stream_(stream), counter_(number << 32) {}
  std::size_t below(std::size_t bound) { return draw_below(bound, seed_, stream_, counter_++); }
  bool happens(double probability) {
    constexpr std::uint64_t fine = std::uint64_t{1} << 52;
    return static_cast<double>(draw_below(fine, seed_, stream_, counter_++)) < probability * static_cast<double>(fine);
  }
  /// Moves `count` random elements to the front (Fisher and Yates).
  void choose(std::vector<std::size_t>& elements, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) std::swap(elements[i], elements[i + below(elements.size() - i)]);
  }

 private:
  std::uint64_t seed_, stream_, counter_;
};

void check_rate(double rate) {
  if (!(rate > 0 && rate < 1))
    throw Error("the share of corrupted tokens must be in (0, 1), got " + std::to_string(rate));
}

/// Cuts `length` into `parts` random positive parts.
std::vector<std::int64_t> random_parts(std::int64_t length, std::int64_t parts, TextDraws& draws) {
  std::vector<std::size_t> cuts(static_cast<std::size_t>(length - 1));
  std::iota(cuts.begin(), cuts.end(), std::size_t{1});
  draws.choose(cuts, static_cast<std::size_t>(parts - 1));
  cuts.resize(static_cast<std::size_t>(parts - 1));
  cuts.push_back(static_cast<std::size_t>(length));
  std::ranges::sort(cuts);
  std::vector<std::int64_t> made;
  for (std::size_t i = 0; i < cuts.size(); ++i)
    made.push_back(static_cast<std::int64_t>(cuts[i] - (i == 0 ? 0 : cuts[i - 1])));
  return made;
}
}  // namespace

MaskedText masked_lm(const Tokens& text, const MaskedLmOptions& options, std::uint64_t seed, std::uint64_t stream,
                     std::uint64_t number) {
  check_rate(options.rate);
  if (!(options.masked >= 0 && options.random >= 0 && options.masked + options.random <= 1))
    throw Error("the probabilities of masked and random tokens must be at least 0, and their sum at most 1");
  if (options.mask < 0 || options.vocabulary < 1) throw Error("masked_lm needs a mask token and a vocabulary");
  MaskedText made{text, Tokens(text.size(), ignored_target)};
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (!contains(options.kept, text[i])) places.push_back(i);
  if (places.empty()) return made;
  TextDraws draws(seed, stream, number);
  const auto count = std::max<std::size_t>(
      1, static_cast<std::size_t>(std::llround(options.rate * static_cast<double>(places.size()))));
  draws.choose(places, count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = places[i];
    made.targets[at] = text[at];
    if (draws.happens(options.masked))
      made.tokens[at] = options.mask;
    else if (options.masked < 1 && draws.happens(options.random / (1 - options.masked)))
      made.tokens[at] = static_cast<std::int32_t>(draws.below(static_cast<std::size_t>(options.vocabulary)));
  }
  return made;
}

CorruptedLengths corrupted_lengths(std::int64_t text, const SpanCorruptionOptions& options) {
  check_rate(options.rate);
  if (!(options.mean_span >= 1)) throw Error("the mean length of a span must be at least 1");
  if (text < 2) return {text, 0, 0};
  const std::int64_t noise =
      std::clamp<std::int64_t>(std::llround(options.rate * static_cast<double>(text)), 1, text - 1);
  const std::int64_t spans = std::clamp<std::int64_t>(std::llround(static_cast<double>(noise) / options.mean_span), 1,
                                                      std::min(noise, text - noise));
  if (spans > std::ssize(options.sentinels))
    throw Error("a text of " + std::to_string(text) + " tokens has " + std::to_string(spans) +
                " spans, more than the " + std::to_string(options.sentinels.size()) +
                " sentinels: shorter texts, a lower rate or longer spans need fewer");
  return {text - noise + spans, noise + spans, spans};
}

CorruptedText span_corruption(const Tokens& text, const SpanCorruptionOptions& options, std::uint64_t seed,
                              std::uint64_t stream, std::uint64_t number) {
  const CorruptedLengths lengths = corrupted_lengths(std::ssize(text), options);
  if (lengths.spans == 0) return {text, {}};
  TextDraws draws(seed, stream, number);
  const auto noise = random_parts(lengths.target - lengths.spans, lengths.spans, draws);
  const auto kept = random_parts(lengths.source - lengths.spans, lengths.spans, draws);
  CorruptedText made;
  auto at = text.begin();
  for (std::size_t i = 0; i < noise.size(); ++i) {
    made.source.insert(made.source.end(), at, at + kept[i]);
    at += kept[i];
    made.source.push_back(options.sentinels[i]);
    made.target.push_back(options.sentinels[i]);
    made.target.insert(made.target.end(), at, at + noise[i]);
    at += noise[i];
  }
  return made;
}

namespace {
/// Returns the number of tokens of row `row`, before padding or ignored targets.
std::int64_t text_length(const BatchArrays& batch, std::int64_t row, const CorruptionOptions& options) {
  const Array& tokens = batch.at("tokens");
  std::int64_t length = tokens.shape()[1];
  const Array* targets = batch.find("targets");
  const std::int64_t* last = (targets != nullptr ? *targets : tokens).as<std::int64_t>() + row * length - 1;
  const std::int64_t filling = targets != nullptr ? ignored_target : options.pad;
  while (length > 0 && last[length] == filling) --length;
  // A text that ends with the token that pads has one such token.
  return targets == nullptr && options.pad == options.end && length < tokens.shape()[1] ? length + 1 : length;
}

Tokens row_text(const BatchArrays& batch, std::int64_t row, const CorruptionOptions& options) {
  const Array& tokens = batch.at("tokens");
  const std::int64_t* begin = tokens.as<std::int64_t>() + row * tokens.shape()[1];
  Tokens text;
  for (std::int64_t i = 0; i < text_length(batch, row, options); ++i)
    text.push_back(static_cast<std::int32_t>(begin[i]));
  return text;
}

/// Writes rows into an array of a batch, which is replaced if it has another shape.
void write_rows(const char* name, const std::vector<Tokens>& rows, std::int64_t columns, std::int64_t filling,
                BatchArrays& batch) {
  const Shape shape = {std::ssize(rows), columns};
  if (const Array* array = batch.find(name); array == nullptr || array->shape() != shape)
    batch.set(name, Array(Dtype::int64, shape));
  std::int64_t* to = batch.at(name).as<std::int64_t>();
  for (const Tokens& row : rows) {
    std::fill(std::copy(row.begin(), row.end(), to), to + columns, filling);
    to += columns;
  }
}

/// The rows of a batch after span corruption.
struct SpanRows {
  std::vector<Tokens> source, tokens, targets;

  void add(Tokens text, const CorruptionOptions& options, std::uint64_t stream, std::uint64_t number) {
    const bool begins = !text.empty() && options.start >= 0 && text.front() == options.start;
    if (!text.empty() && options.end >= 0 && text.back() == options.end) text.pop_back();
    if (begins) text.erase(text.begin());
    CorruptedText made = span_corruption(text, options.spans, options.seed, stream, number);
    if (begins) made.source.insert(made.source.begin(), options.start);
    if (options.end >= 0)
      for (Tokens* each : {&made.source, &made.target}) each->push_back(options.end);
    targets.push_back(made.target);
    made.target.insert(made.target.begin(), std::max(0, options.start));
    made.target.pop_back();
    source.push_back(std::move(made.source));
    tokens.push_back(std::move(made.target));
  }
};

std::int64_t longest(const std::vector<Tokens>& rows) {
  std::size_t columns = 1;
  for (const Tokens& row : rows) columns = std::max(columns, row.size());
  return static_cast<std::int64_t>(columns);
}
}  // namespace

CorruptedBatches::CorruptedBatches(std::unique_ptr<Batches> batches, const CorruptionOptions& options)
    : batches_(std::move(batches)), options_(options) {
  if (options.kind == CorruptionOptions::Kind::none) throw Error("CorruptedBatches need a kind of corruption");
  BatchArrays batch;
  corrupt(batches_->blank(), 0, 0, batch);  // throws if an option is wrong
  if (options.kind == CorruptionOptions::Kind::span_corruption) corrupted_lengths(columns(), options.spans);
}

CorruptedBatches::~CorruptedBatches() = default;

void CorruptedBatches::corrupt(const BatchArrays& from, std::uint64_t stream, std::uint64_t index,
                               BatchArrays& to) const {
  const Shape shape = from.at("tokens").shape();
  std::vector<Tokens> tokens, targets;
  SpanRows spans;
  const bool masks = options_.kind == CorruptionOptions::Kind::masked_lm;
  for (std::int64_t row = 0; row < shape[0]; ++row) {
    const std::uint64_t number = index * static_cast<std::uint64_t>(rows()) + static_cast<std::uint64_t>(row);
    Tokens text = row_text(from, row, options_);
    if (!masks) {
      spans.add(std::move(text), options_, stream, number);
      continue;
    }
    MaskedText made = masked_lm(text, options_.masks, options_.seed, stream, number);
    tokens.push_back(std::move(made.tokens));
    targets.push_back(std::move(made.targets));
  }
  if (masks) {
    write_rows("tokens", tokens, shape[1], options_.pad, to);
    write_rows("targets", targets, shape[1], ignored_target, to);
  } else {
    const std::int64_t columns = longest(spans.targets);
    write_rows("source", spans.source, longest(spans.source), options_.pad, to);
    write_rows("tokens", spans.tokens, columns, options_.pad, to);
    write_rows("targets", spans.targets, columns, ignored_target, to);
  }
  for (const auto& [name, array] : from)
    if (name != "tokens" && name != "targets") to.set(name, array.clone());
}

BatchArrays CorruptedBatches::blank() const {
  BatchArrays texts = batches_->blank(), batch;
  // The longest texts: without padding and ignored targets.
  std::fill_n(texts.at("tokens").as<std::int64_t>(), texts.at("tokens").count(),
              std::max<std::int64_t>(1, options_.pad + 1));
  if (texts.has("targets"))
    std::fill_n(texts.at("targets").as<std::int64_t>(), texts.at("targets").count(), std::int64_t{0});
  corrupt(texts, 0, 0, batch);
  return batch;
}

void CorruptedBatches::training(std::uint64_t index, BatchArrays& batch) const {
  batches_->training(index, texts_);
  corrupt(texts_, corrupted_stream, index, batch);
}

std::string CorruptedBatches::training_place(std::uint64_t index, const std::string& array, std::int64_t row) const {
  return batches_->training_place(index, array == "source" || array == "targets" ? "tokens" : array, row);
}

void CorruptedBatches::validation(std::int64_t index, BatchArrays& batch) const {
  batches_->validation(index, texts_);
  corrupt(texts_, corrupted_stream + 1, static_cast<std::uint64_t>(index), batch);
}

void CorruptedBatches::validation_sample(std::uint64_t index, BatchArrays& batch) const {
  batches_->validation_sample(index, texts_);
  corrupt(texts_, corrupted_stream + 2, index, batch);
}

}  // namespace xtape
