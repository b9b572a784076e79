/// Texts with parts taken out, which models learn to restore: masked language modelling and span corruption.
#pragma once

#include <cstdint>
#include <memory>

#include "xtape/text.hpp"
#include "xtape/tokenizers.hpp"

namespace xtape {

/// Options of masked_lm. The defaults are those of BERT (Devlin et al., 2019).
struct MaskedLmOptions {
  double rate = 0.15;           ///< The share of the tokens that the model predicts. At least one token of a text.
  double masked = 0.8;          ///< The probability that a predicted token becomes `mask`.
  double random = 0.1;          ///< The probability that it becomes a random token. Otherwise it stays as it is.
  std::int32_t mask = -1;       ///< The mask token.
  std::int64_t vocabulary = 0;  ///< Random tokens are below this number.
  Tokens kept = {};             ///< Tokens that are never predicted, such as start, end and padding.
};

/// A text with changed tokens, and the tokens to predict.
struct MaskedText {
  Tokens tokens;
  Tokens targets;  ///< The original tokens at predicted positions, and ignored_target elsewhere.
};

/// Changes tokens of a text. The choice depends on `seed`, `stream` and `number` alone. Throws Error if an option is
/// out of range.
MaskedText masked_lm(const Tokens& text, const MaskedLmOptions& options, std::uint64_t seed, std::uint64_t stream,
                     std::uint64_t number);

/// Options of span_corruption. The defaults are those of T5 (Raffel et al., 2020).
struct SpanCorruptionOptions {
  double rate = 0.15;     ///< The share of the tokens that are taken out.
  double mean_span = 3;   ///< The average number of tokens of a span.
  Tokens sentinels = {};  ///< The tokens that stand for the spans, in order.
};

/// A text without some spans, and the spans. A sentinel stands in the source for each span, and before it in the
/// target.
struct CorruptedText {
  Tokens source, target;
};

/// The numbers of tokens of a CorruptedText. Both depend on the length of the text alone.
struct CorruptedLengths {
  std::int64_t source, target, spans;
};
/// Throws Error if an option is out of range, or if there are fewer sentinels than spans.
CorruptedLengths corrupted_lengths(std::int64_t text, const SpanCorruptionOptions& options);

/// Takes spans out of a text. As in T5, the spans and the pieces between them have random lengths, and the text begins
/// with a piece that stays. A text of fewer than two tokens has no span, and one of a single span loses its end. The
/// choice depends on `seed`, `stream` and `number` alone. Errors are those of corrupted_lengths.
CorruptedText span_corruption(const Tokens& text, const SpanCorruptionOptions& options, std::uint64_t seed,
                              std::uint64_t stream, std::uint64_t number);

/// What CorruptedBatches do with texts.
struct CorruptionOptions {
  enum class Kind : std::uint8_t { none, masked_lm, span_corruption };
  Kind kind = Kind::none;
  MaskedLmOptions masks;
  SpanCorruptionOptions spans;
  std::int32_t start = -1;  ///< Begins targets of span corruption. A text may begin with it; then the source does, too.
  std::int32_t end = -1;    ///< Ends sources and targets of span corruption. A text may end with it. -1: nothing does.
  std::int32_t pad = 0;     ///< Fills up rows.
  std::uint64_t seed = 0;
};

/// The batches of a text or of documents, with parts of their texts taken out. Another part in each epoch and, for
/// evaluations, always the same ones. The texts are the rows of the array "tokens"; targets that are ignored, or
/// padding, follow them.
///
/// With masked_lm, batches have "tokens" and "targets", int64 [rows, columns]. With span_corruption, they have
/// "source", "tokens" and "targets", as pairs do: the tokens begin with `start`. Other arrays stay.
class CorruptedBatches : public Batches {
 public:
  /// Throws Error if an option is out of range, or if there are fewer sentinels than the longest row has spans.
  CorruptedBatches(std::unique_ptr<Batches> batches, const CorruptionOptions& options);
  ~CorruptedBatches() override;
  std::int64_t rows() const override { return batches_->rows(); }
  std::int64_t columns() const override { return batches_->columns(); }
  BatchArrays blank() const override;
  std::int64_t epoch_batches() const override { return batches_->epoch_batches(); }
  RowDraws draws() const override { return batches_->draws(); }
  std::uint64_t order() const override { return batches_->order(); }
  void training(std::uint64_t index, BatchArrays& batch) const override;
  std::string training_place(std::uint64_t index, const std::string& array, std::int64_t row) const override;
  std::int64_t validation_batches() const override { return batches_->validation_batches(); }
  void validation(std::int64_t index, BatchArrays& batch) const override;
  void validation_sample(std::uint64_t index, BatchArrays& batch) const override;

 private:
  void corrupt(const BatchArrays& from, std::uint64_t stream, std::uint64_t index, BatchArrays& to) const;
  std::unique_ptr<Batches> batches_;
  CorruptionOptions options_;
  mutable BatchArrays texts_;  // the batch before the corruption
};

}  // namespace xtape
