/// Text data: files, data sets, and the batches that training and evaluation read.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "xtape/array.hpp"
#include "xtape/owner.hpp"
#include "xtape/tokenizers.hpp"

namespace xtape {

/// The target that losses ignore: batches have it where there is nothing to predict.
inline constexpr std::int32_t ignored_target = -1;

/// The most tokens that a batch may have, padding included.
inline constexpr std::int64_t most_batch_tokens = std::int64_t{1} << 31;

/// The most bytes of a line, unless an option says otherwise.
inline constexpr std::int64_t usual_max_line = std::int64_t{16} << 20;

/// How files of texts are read.
struct ReadOptions {
  std::int64_t max_line = 0;  ///< The most bytes of a line, without its end; 0: any number.
};

/// The contents of a file. Throws FileError, with the path and the reason, also for a line that is too long, and for a
/// text that is larger than the memory that is left.
std::string read_text(const std::string& path, const ReadOptions& options = {});

/// The lines of a file, plain or compressed by gzip, without their ends (LF or CR LF). Throws FileError as read_text
/// does, also for compressed files that are truncated, damaged, or more than 64 MiB and 200 times the packed size.
std::vector<std::string> read_lines(const std::string& path, const ReadOptions& options = {});

/// From now on read_text and read_lines call `tell` while they read a file that is not a regular one, such as a pipe or
/// a device: with a sentence that names it and says how much has come, after `seconds`, then each time after twice as
/// long. Another thread calls it. An empty `tell` ends this. For one thread at a time. Throws Error if `seconds` is not
/// positive.
void watch_inputs(std::function<void(const std::string& sentence)> tell, double seconds = 5);

/// Rows of tokens as an array for inputs "int [b, t]": int64 [rows, length of the longest row, rounded up to a multiple
/// of `multiple`], padded on the right with `pad`. Throws Error unless 1 <= multiple <= most_batch_tokens.
Array token_array(const std::vector<Tokens>& rows, std::int32_t pad = 0, std::int64_t multiple = 1);

/// The arrays of a batch, named like the inputs of the loss function: int64 ("int" in definitions) and float32.
using BatchArrays = Named<Array>;
#ifndef XTAPE_NO_OLD_NAMES
using Batch [[deprecated("write BatchArrays")]] = BatchArrays;
#endif

/// How batches draw rows by chance (Poisson sampling): each row of the training split is in a draw with probability
/// expected / rows, whatever other rows are.
struct RowDraws {
  std::int64_t batches = 0;   ///< So many batches in a row hold one draw; 0: rows are not drawn so.
  std::int64_t expected = 0;  ///< Rows of a draw, on average.
  std::int64_t rows = 0;      ///< The rows of the training split.
  /// The probability of a row.
  double rate() const { return rows == 0 ? 0 : static_cast<double>(expected) / static_cast<double>(rows); }
};
/// The array of drawn batches that tells drawn rows from copies that fill up the batch: float32 [rows], 1 or 0.
inline constexpr const char* drawn_rows = "drawn rows";

/// A data set in batches of a few shapes. A batch depends only on the seed and its index, so that a checkpoint needs
/// only the index to resume. For one thread at a time.
class Batches {
 public:
  virtual ~Batches() = default;
  virtual std::int64_t rows() const = 0;     ///< The most rows of a batch.
  virtual std::int64_t columns() const = 0;  ///< The most tokens of a row.
  /// A batch of the largest shape, for the functions below to fill, which replace its arrays for other shapes. "tokens"
  /// and "targets", int64 [rows, columns], unless the class says otherwise.
  virtual BatchArrays blank() const;
  /// The number of batches of an epoch; 0 if training batches are drawn at random.
  virtual std::int64_t epoch_batches() const { return 0; }
  virtual RowDraws draws() const { return {}; }
  /// Batch `index` of the training split, in the order of the seed, for any index.
  virtual void training(std::uint64_t index, BatchArrays& batch) const = 0;
  /// Where row `row` of an array of training batch `index` comes from, for errors: "train.csv, line 12"; "" if that is
  /// not known.
  virtual std::string training_place(std::uint64_t /*index*/, const std::string& /*array*/,
                                     std::int64_t /*row*/) const {
    return "";
  }
  /// Whether the rows of training batch `index` continue those of the previous batch, so that recurrent models carry
  /// over their states. False for batch 0.
  virtual bool training_continues(std::uint64_t /*index*/) const { return false; }
  /// The number of batches that together have every token of the validation split exactly once.
  virtual std::int64_t validation_batches() const = 0;
  virtual void validation(std::int64_t index, BatchArrays& batch) const = 0;
  /// The same for validation batches.
  virtual bool validation_continues(std::int64_t /*index*/) const { return false; }
  /// Batch `index` of randomly chosen rows of the validation split.
  virtual void validation_sample(std::uint64_t index, BatchArrays& batch) const = 0;
};

struct TextBatchesOptions {
  std::int64_t rows = 1;
  std::int64_t block_size = 64;  ///< Tokens per row.
  std::uint64_t seed = 0;        ///< Determines the data order.
  bool consecutive = false;      ///< See TextBatches.
};

/// Next-token batches of a text: the target of each token is the next one. Training rows are blocks at random
/// positions; validation rows are consecutive blocks, the last one padded with ignored targets.
///
/// Consecutive: each split is cut into equally long strips, one per row, and row i of batch k is window k of strip i,
/// so that each row continues that of the previous batch. An epoch reads all whole windows of the training strips in
/// order. Validation strips are read to their ends, the last window padded with ignored targets.
class TextBatches : public Batches {
 public:
  /// Throws Error if the training split is too short for a block (consecutive: one per row), the validation split for
  /// one target, or a batch is empty or above most_batch_tokens.
  TextBatches(Tokens training, Tokens validation, const TextBatchesOptions& options);
  std::int64_t rows() const override { return options_.rows; }
  std::int64_t columns() const override { return options_.block_size; }
  std::int64_t epoch_batches() const override;  ///< 0 unless consecutive.
  void training(std::uint64_t index, BatchArrays& batch) const override;
  bool training_continues(std::uint64_t index) const override;
  std::int64_t validation_batches() const override;
  void validation(std::int64_t index, BatchArrays& batch) const override;
  bool validation_continues(std::int64_t index) const override;
  void validation_sample(std::uint64_t index, BatchArrays& batch) const override;

 private:
  void random_rows(const Tokens& split, std::uint64_t stream, std::uint64_t index, BatchArrays& batch) const;
  /// Window `index` of each row's strip of `split`; strips have `strip` tokens.
  void windows(const Tokens& split, std::int64_t strip, std::int64_t index, BatchArrays& batch) const;
  std::int64_t training_strip() const;
  std::int64_t validation_strip() const;
  Tokens training_;
  Tokens validation_;
  TextBatchesOptions options_;
};

/// A text cut in two.
struct TextSplit {
  std::string training;
  std::string validation;
};
/// The first `fraction` of the text's characters, and the rest. Throws Error unless 0 < fraction <= 1.
TextSplit split_text(const std::string& text, double fraction);

/// A column of a data set, and the arrays that batches make of it.
struct Column {
  enum class Kind : std::uint8_t {
    text,    ///< Texts to read: int64 [b, t], the tokens from start to end, padded.
    target,  ///< Texts to produce: "tokens" without the last token and "targets" without the first, int64 [b, t].
    label,   ///< One of a list of names, as its index: int64 [b].
    number,  ///< Numbers: float32 [b], or [b, width].
    tags     ///< A label for each word of a text: int64 [b, t], aligned with its tokens, ignored_target elsewhere.
  };
  std::string name;  ///< The name of the array; for targets in messages only.
  Kind kind = Kind::text;
  std::int32_t pad = 0;    ///< Pads the tokens of texts.
  std::int64_t width = 0;  ///< Numbers per row; 0: one, without an axis.
};

/// Names a text in error messages: "line 3 of the source".
using TextPlace = std::function<std::string(std::size_t row, std::size_t column)>;

/// The rows of a data set.
struct DataRows {
  /// One row in one column.
  struct Cell {
    Tokens tokens;               ///< The tokens of a text or target; for a label, its index only.
    std::vector<float> numbers;  ///< For a column of numbers.
    std::size_t prompt = 0;      ///< For a target: the number of given tokens at its start, which are not predicted.
  };
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;    ///< One cell per column.
  TextPlace place = {};                   ///< Names the texts that the rows were made of.
  std::vector<std::uint32_t> texts = {};  ///< With `place`: the row of texts that each row was made of.
};

struct RowBatchesOptions {
  std::int64_t rows = 64;   ///< Rows per batch, if tokens is 0.
  std::int64_t tokens = 0;  ///< If not 0: as many rows as have at most this many tokens in any column, at least one.
  std::int64_t bucket = 2;  ///< Lengths are rounded up to multiples of this, so that there are few shapes.
  std::uint64_t seed = 0;   ///< Determines the data order.
  /// Not 0: training batches are draws, each in so many batches, of `rows` * `draws` rows on average.
  std::int64_t draws = 0;
};

/// Batches of rows: pairs of sentences, single texts, or texts with labels and numbers. A batch has rows of similar
/// length. The rest is padding, with ignored targets and labels; a batch with numbers, which cannot be ignored, has no
/// padding rows. An epoch reads all training rows once: rows of equal length are shuffled among their batches, and the
/// batches are shuffled.
///
/// Draws: whether a row is in a draw depends on the seed and the numbers of row and draw alone. Its rows, sorted by
/// length, are cut into batches of equally many. Copies of rows fill up a batch to a multiple of 8 rows: unlike zeros,
/// they have a finite loss. The array `drawn_rows` says which rows count. An epoch reads all rows once on average.
class RowBatches : public Batches {
 public:
  /// Throws Error if a split has no row, the splits differ in columns, a text has fewer than two tokens, or an option
  /// is out of range, also if a draw has more rows on average than there are.
  RowBatches(DataRows training, DataRows validation, const RowBatchesOptions& options);
  ~RowBatches() override;
  std::int64_t rows() const override;
  std::int64_t columns() const override;
  BatchArrays blank()
      const override;  ///< Has the shape with the most elements; others may have more rows or longer ones.
  std::int64_t epoch_batches() const override;
  RowDraws draws() const override;
  void training(std::uint64_t index, BatchArrays& batch) const override;
  std::string training_place(std::uint64_t index, const std::string& array, std::int64_t row) const override;
  std::int64_t validation_batches() const override;
  void validation(std::int64_t index, BatchArrays& batch) const override;
  void validation_sample(std::uint64_t index, BatchArrays& batch) const override;

 private:
  struct Data;
  Owner<Data> data_;
};

/// The fields of a file by column: table[column][row].
using TableTexts = std::vector<std::vector<std::string>>;

struct TableOptions {
  std::size_t columns = 2;      ///< Fields per line.
  bool more = false;            ///< Whether lines may have more fields, which are ignored.
  char delimiter = '\t';        ///< Between fields. Unless it is a tab, fields may be quoted as in CSV.
  std::int64_t skip_lines = 0;  ///< To skip at the beginning: a header.
  ReadOptions reading = {};
};
/// Reads a file with a row per line, plain or compressed by gzip. Throws FileError, with the line if one is wrong.
TableTexts read_table(const std::string& path, const TableOptions& options = {});

/// Sentences whose words have labels.
struct SentenceTexts {
  TableTexts columns;              ///< The fields of the words, joined by spaces: columns[column][sentence].
  std::vector<std::size_t> lines;  ///< The number of the first line of each sentence in the file.
};
/// Reads a file with a word and its labels per line, as the shared tasks of CoNLL have them. Blank lines, and lines of
/// the word -DOCSTART-, separate sentences. The delimiter ' ' stands for any number of spaces and tabs. Throws FileError,
/// with the line if it has another number of fields, or a field that is not one word in UTF-8.
SentenceTexts read_sentences(const std::string& path, const TableOptions& options = {});

/// Sentences and their translations: target[i] is that of source[i].
struct PairTexts {
  std::vector<std::string> source;
  std::vector<std::string> target;
};
/// From a file of lines source<TAB>target; further fields are ignored. Throws FileError, with the line if it has no
/// tab.
PairTexts read_pairs(const std::string& path, const ReadOptions& options = {});
/// From two files. Throws FileError, and Error if they differ in the number of lines.
PairTexts read_pairs(const std::string& source, const std::string& target, const ReadOptions& options = {});

/// The text's tokens between the start and end tokens. Throws Error if the tokenizer has none, and as encode.
Tokens framed(const Tokenizer& tokenizer, const std::string& text);
/// The same for a text that an encoder reads: without a start token if the tokenizer has an end token only.
Tokens source_of(const Tokenizer& tokenizer, const std::string& text);
/// The tokens of a text that a model is to continue, after the start token if tokenizer.begins(). Throws as encode.
Tokens prompt_of(const Tokenizer& tokenizer, const std::string& text);

/// What separates the texts of a file.
enum class DocumentEnd : std::uint8_t {
  line,       ///< Every line is a text.
  blank_line  ///< Texts are separated by blank lines, and keep their inner line ends.
};
/// The texts in the contents of a file, without empty ones.
std::vector<std::string> split_documents(const std::string& text, DocumentEnd end);

/// A text cut after the first `prompt_end`: what is given, and what a model should generate. Throws Error if the text
/// does not contain it.
struct PromptSplit {
  std::string prompt;
  std::string answer;
};
PromptSplit split_prompt(const std::string& text, const std::string& prompt_end);

/// A column of texts to convert to cells. The pointers must stay valid during rows_of.
struct ColumnTexts {
  Column column;
  const std::vector<std::string>* texts = nullptr;   ///< One per row; for several numbers, a pointer to `width` lists.
  const Tokenizer* tokenizer = nullptr;              ///< For texts, targets and tags.
  std::string prompt_end = "";                       ///< For targets: see split_prompt; empty: nothing is given.
  const std::vector<std::string>* labels = nullptr;  ///< For labels and tags: the names, sorted.
};
/// Converts texts to rows; those with an empty text, or one of more than `max_length` tokens between start and end (0:
/// any number), are left out. Throws Error, with the text's `place`, if it cannot be encoded, a target lacks
/// `prompt_end`, a label is unknown, a number is not finite, or a text has not one token for each tag. The rows keep
/// `place`.
DataRows rows_of(const std::vector<ColumnTexts>& columns, std::int64_t max_length, const TextPlace& place);

/// Single texts, each a target, for language models. Throws as rows_of.
DataRows documents_of(const std::vector<std::string>& texts, const Tokenizer& tokenizer, std::int64_t max_length = 0,
                      const std::string& prompt_end = "");

/// Pairs, with the columns "source" and "target". Throws as rows_of, and Error if there is not a target for each
/// source.
DataRows pairs_of(const PairTexts& texts, const Tokenizer& source, const Tokenizer& target,
                  std::int64_t max_length = 0);

}  // namespace xtape
