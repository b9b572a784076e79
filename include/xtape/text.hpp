/// Text as numbers: files, data sets, and the batches that training and evaluation read from them.
#pragma once

#if defined(XTAPE_LAYER) && XTAPE_LAYER > 0 && XTAPE_LAYER < 8
#error "this layer of xtape may not see the text layer"
#endif

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "xtape/array.hpp"
#include "xtape/tokenizers.hpp"

namespace xtape {

/// The target that no loss counts: batches hold it where there is nothing to predict.
inline constexpr std::int32_t ignored_target = -1;

/// The most tokens that a batch may have, padding included.
inline constexpr std::int64_t most_batch_tokens = std::int64_t{1} << 31;

/// The whole of a file. Throws FileError, with the path and the system's reason.
std::string read_text(const std::string& path);

/// The lines of a file, plain or compressed by gzip, without their ends (LF, or CR LF). Throws FileError, with the path
/// and the reason, also where a compressed file is cut off or damaged.
std::vector<std::string> read_lines(const std::string& path);

/// Rows of tokens as an array that definitions take as "int [b, t]": int64 [rows, tokens of the longest, rounded up to
/// a multiple of `multiple`], filled up with `pad`.
Array token_array(const std::vector<Tokens>& rows, std::int32_t pad = 0, std::int64_t multiple = 1);

/// The arrays of one batch by the names of the loss function's inputs: int64, as definitions take "int".
using Batch = Named<Array>;

/// A prompt and the answer that should follow it.
struct Question {
  Tokens prompt;
  Tokens answer;
};

/// A data set cut into batches of a few shapes. A batch is a function of the seed and its index alone, so that the index
/// is all that a checkpoint needs to remember of the data order. For use by one thread at a time.
class Batches {
 public:
  virtual ~Batches() = default;
  virtual std::int64_t rows() const = 0;     ///< The most rows that a batch has.
  virtual std::int64_t columns() const = 0;  ///< The most tokens that a row has.
  /// A batch of the largest shape that there is, for the functions below to fill: "tokens" and "targets", int64 [rows,
  /// columns], unless the class says otherwise. They give the arrays another shape where theirs is another.
  virtual Batch blank() const;
  /// How many batches go once through the training part; 0 where it is not gone through in turn.
  virtual std::int64_t epoch_batches() const { return 0; }
  /// Batch `index` of the training part, in the data order of the seed; it never ends.
  virtual void training(std::uint64_t index, Batch& batch) const = 0;
  /// Whether the rows of training batch `index` go on from those of the batch before it: what a recurrent model carries
  /// on from one batch to the next. Batch 0 never does.
  virtual bool training_continues(std::uint64_t /*index*/) const { return false; }
  /// The batches that together hold every token of the validation part exactly once.
  virtual std::int64_t validation_batches() const = 0;
  virtual void validation(std::int64_t index, Batch& batch) const = 0;
  /// As training_continues, of validation batches.
  virtual bool validation_continues(std::int64_t /*index*/) const { return false; }
  /// Batch `index` of randomly chosen rows of the validation part.
  virtual void validation_sample(std::uint64_t index, Batch& batch) const = 0;
  /// Prompts with known answers, held out of training; empty where the data has none.
  virtual std::vector<Question> questions() const { return {}; }
  /// The token after which a row says nothing more: where generation ends. -1 where there is none.
  virtual std::int32_t end_token() const { return -1; }
};

struct TextBatchesOptions {
  std::int64_t rows = 1;
  std::int64_t block_size = 64;  ///< Tokens in a row.
  std::uint64_t seed = 0;        ///< Of the data order.
  bool consecutive = false;      ///< Each part is read in strips, a strip a row, window by window.
};

/// Next-token batches: targets are the tokens one further on. Training rows are blocks from random places; validation
/// rows are consecutive blocks, the last one filled up with ignored targets.
///
/// Consecutive: a part is cut into as many strips as there are rows, equally long, and row i of batch k is window k of
/// strip i, so that every row goes on from that of the batch before. An epoch goes through the whole windows of the
/// training strips, in order, and begins at their beginnings. Validation strips are read to their ends, and what they
/// do not fill is ignored targets.
class TextBatches : public Batches {
 public:
  /// Throws Error where a part is too short: for one block (training; consecutive: one a row), or for one target
  /// (validation).
  TextBatches(Tokens training, Tokens validation, const TextBatchesOptions& options);
  std::int64_t rows() const override { return options_.rows; }
  std::int64_t columns() const override { return options_.block_size; }
  std::int64_t epoch_batches() const override;  ///< 0 unless consecutive.
  void training(std::uint64_t index, Batch& batch) const override;
  bool training_continues(std::uint64_t index) const override;
  std::int64_t validation_batches() const override;
  void validation(std::int64_t index, Batch& batch) const override;
  bool validation_continues(std::int64_t index) const override;
  void validation_sample(std::uint64_t index, Batch& batch) const override;

 private:
  void random_rows(const Tokens& part, std::uint64_t stream, std::uint64_t index, Batch& batch) const;
  /// Window `index` of every row's strip of `part`, `strip` tokens long.
  void windows(const Tokens& part, std::int64_t strip, std::int64_t index, Batch& batch) const;
  std::int64_t training_strip() const;
  std::int64_t validation_strip() const;
  Tokens training_;
  Tokens validation_;
  TextBatchesOptions options_;
};

/// The two parts of a text: the first `fraction` of its characters, and the rest. Never cuts a character.
struct TextSplit {
  std::string training;
  std::string validation;
};
TextSplit split_text(const std::string& text, double fraction);

/// A sentence and its translation, each from its start token to its end token.
struct Pair {
  Tokens source;
  Tokens target;
};

struct PairBatchesOptions {
  bool sources = true;      ///< False: the pairs have no source, and batches no "source": rows are single texts.
  std::int64_t rows = 64;   ///< Sentences in a batch …
  std::int64_t tokens = 0;  ///< … or, above 0, as many as make at most so many tokens of either side, but at least one.
  std::int64_t bucket = 2;  ///< Lengths are rounded up to multiples of this, so that batches have few shapes.
  std::int32_t source_pad = 0;
  std::int32_t target_pad = 0;
  std::uint64_t seed = 0;  ///< Of the data order.
};

/// Batches of sentence pairs: "source" [rows, s], and "tokens" and "targets" [rows, t], which are the target without its
/// last and without its first token. A batch holds pairs of like length; what they do not fill is padding, and an
/// ignored target. An epoch goes through all training pairs once: pairs of one length are dealt out anew to their
/// batches, and the batches of all lengths follow one another in a new order.
class PairBatches : public Batches {
 public:
  /// Throws Error where a part holds no pair, or a pair has fewer than two tokens on a side that it should have.
  PairBatches(std::vector<Pair> training, std::vector<Pair> validation, const PairBatchesOptions& options);
  ~PairBatches() override;
  std::int64_t rows() const override;
  std::int64_t columns() const override;
  Batch blank() const override;  ///< Of the shape with the most elements; rows may be longer, or more, in others.
  std::int64_t epoch_batches() const override;
  void training(std::uint64_t index, Batch& batch) const override;
  std::int64_t validation_batches() const override;
  void validation(std::int64_t index, Batch& batch) const override;
  void validation_sample(std::uint64_t index, Batch& batch) const override;

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

struct AdderOptions {
  std::int64_t rows = 1;
  std::int64_t digits = 2;       ///< Of each number added, 1 to 3.
  std::int64_t held_out = 2000;  ///< Sums kept out of training: the validation part. The same ones for every seed.
  bool reversed = false;         ///< The sum is written with its last digit first.
  bool padded = false;           ///< Numbers are written with leading zeros.
  std::uint64_t seed = 0;        ///< Of the data order.
};

/// Sums of two numbers, made by the program: lines such as `47+85=132`, one a row. Only the answer and the line's end
/// are targets. An epoch goes through all training sums in a shuffled order.
class AdderBatches : public Batches {
 public:
  /// How many sums there are of numbers with 1 to 3 digits.
  static std::int64_t sums(std::int64_t digits);
  /// Every line of the data, those held out too: what a tokenizer is made from.
  static std::string text(const AdderOptions& options);
  /// Throws Error where the options make no sense or `tokenizer` does not give one token a character.
  AdderBatches(const Tokenizer& tokenizer, const AdderOptions& options);
  std::int64_t rows() const override { return options_.rows; }
  std::int64_t columns() const override { return columns_; }
  void training(std::uint64_t index, Batch& batch) const override;
  std::int64_t validation_batches() const override;
  void validation(std::int64_t index, Batch& batch) const override;
  void validation_sample(std::uint64_t index, Batch& batch) const override;
  std::vector<Question> questions() const override;
  std::int32_t end_token() const override { return held_out_.front().answer.back(); }

 private:
  void write_row(const Question& line, std::int64_t row, Batch& batch) const;
  AdderOptions options_;
  std::int64_t columns_ = 0;
  std::vector<Question> training_;
  std::vector<Question> held_out_;
};

/// Sentences and their translations: line i of one is line i of the other.
struct PairTexts {
  std::vector<std::string> source;
  std::vector<std::string> target;
};

/// The text's tokens between start and end. Throws Error where the tokenizer has no such tokens.
Tokens framed(const Tokenizer& tokenizer, const std::string& text);
/// The same of a text that an encoder reads: nothing stands before it where the tokenizer has no start token.
Tokens source_of(const Tokenizer& tokenizer, const std::string& text);
/// The tokens of a text that a model is to continue: behind the start token where the tokenizer `begins`.
Tokens prompt_of(const Tokenizer& tokenizer, const std::string& text);

/// What separates the texts of a file.
enum class DocumentEnd : std::uint8_t {
  line,       ///< Every line is a text.
  blank_line  ///< Texts are stretches of lines between blank ones, and hold their line ends but the last.
};
/// The texts of a file that are not empty.
std::vector<std::string> split_documents(const std::string& text, DocumentEnd end);

/// Every text from start to end token, as a pair without a source: what PairBatches takes where `sources` is false.
/// Empty texts, and those with more than `max_length` tokens (0: any number), are left out. Throws Error, with the
/// text's number, where the tokenizer does.
std::vector<Pair> documents_of(const std::vector<std::string>& texts, const Tokenizer& tokenizer,
                               std::int64_t max_length = 0);

/// Every pair from start to end token: what PairBatches takes. Pairs with an empty side, or with more than `max_length`
/// tokens on one (0: any number), are left out. Throws Error, with the line, where a tokenizer does.
std::vector<Pair> pairs_of(const PairTexts& texts, const Tokenizer& source, const Tokenizer& target,
                           std::int64_t max_length = 0);

/// Pairs that the program makes itself: those that train, and others. Neither depends on any seed.
struct SplitPairs {
  PairTexts training;
  PairTexts held_out;
};

struct NumberWordsOptions {
  std::int64_t training = 100000;  ///< Numbers that train: those below 1000 that are not held out, then any others.
  std::int64_t held_out = 2000;    ///< Other numbers, for the validation part.
};

/// Numbers from 0 to 999,999 in Portuguese words and in English ones: "duzentos e quarenta e um", "two hundred and
/// forty-one". Throws Error where there are not as many numbers.
SplitPairs number_words(const NumberWordsOptions& options);

struct DatesOptions {
  std::int64_t training = 100000;  ///< Written dates that train: there are more of them than there are dates.
  std::int64_t held_out = 2000;    ///< Dates that train in no form: each is written once, for the validation part.
};

/// Dates from 1900 to 2099 as people write them in numbers, English, German, French, Spanish, Portuguese and Italian,
/// and as ISO 8601 has them: "mercredi 3 mai 2000", "2000-05-03". No text means two dates: numbers alone are a day, a
/// month and a year, unless the year comes first with four digits; two digits are a year from 1970 to 2069. Both parts
/// have the same mix of forms. Throws Error where the options leave a part empty.
SplitPairs dates(const DatesOptions& options);

}  // namespace xtape
