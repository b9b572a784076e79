/// Text data: files, data sets, and batches for training and evaluation.
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

/// The target that losses ignore. Batches contain it at positions without anything to predict.
inline constexpr std::int32_t ignored_target = -1;

/// The most tokens of a batch, including padding.
inline constexpr std::int64_t most_batch_tokens = std::int64_t{1} << 31;

/// The most bytes of a line, unless an option sets another limit.
inline constexpr std::int64_t usual_max_line = std::int64_t{16} << 20;

/// Options of reading text files.
struct ReadOptions {
  std::int64_t max_line = 0;  ///< The most bytes of a line, without its end. 0: no limit.
};

/// Returns the text of a file, plain or compressed by gzip, without a byte-order mark at its beginning. Throws
/// FileError with the path and the reason if the file cannot be read, begins with the byte-order mark of UTF-16 or
/// UTF-32, has a line that is too long, or is larger than the available memory. Throws FileError if a compressed file
/// is truncated, damaged, or both larger than 64 MiB and more than 200 times its compressed size.
std::string read_text(const std::string& path, const ReadOptions& options = {});

/// Returns the lines of read_text, without their ends (LF or CR LF).
std::vector<std::string> read_lines(const std::string& path, const ReadOptions& options = {});

/// Reports slow inputs. Later calls of read_text and read_lines call `tell` while they read a file that is not a
/// regular file, such as a pipe or a device. The sentence names the file and says how much has arrived. The first call
/// comes after `seconds`. Each waiting time is twice the previous one. `tell` runs on another thread. An empty `tell`
/// ends the reports. Only one thread at a time may call watch_inputs. Throws Error if `seconds` is not positive.
void watch_inputs(std::function<void(const std::string& sentence)> tell, double seconds = 5);

/// Converts rows of tokens to an array for inputs "int [b, t]". The array is int64 [rows, length], padded on the right
/// with `pad`. length is that of the longest row, rounded up to a multiple of `multiple`. Throws Error if `multiple` is
/// not between 1 and most_batch_tokens.
Array token_array(const std::vector<Tokens>& rows, std::int32_t pad = 0, std::int64_t multiple = 1);

/// The arrays of a batch, named like the inputs of the loss function. They are int64 ("int" in definitions) or float32.
using BatchArrays = Named<Array>;

/// Poisson sampling of rows. Each row of the training split is in a draw with probability expected / rows,
/// independently of other rows.
struct RowDraws {
  std::int64_t batches = 0;   ///< The number of consecutive batches that form a draw. 0: no Poisson sampling.
  std::int64_t expected = 0;  ///< The expected number of rows of a draw.
  std::int64_t rows = 0;      ///< The number of rows of the training split.
  /// The probability of each row.
  double rate() const { return rows == 0 ? 0 : static_cast<double>(expected) / static_cast<double>(rows); }
};
/// The array in drawn batches that marks rows: float32 [rows], 1 for drawn rows, 0 for copies that fill up the batch.
inline constexpr const char* drawn_rows = "drawn rows";

/// A data set in batches of a few shapes. A batch depends only on the seed and its index. A checkpoint therefore needs
/// only the index to resume. Every row of a batch is a row of the data: there are no rows of padding, which losses that
/// are means, statistics and comparisons between rows would count. Only draws have copies of rows. Only one thread at a
/// time may use a data set.
class Batches {
 public:
  virtual ~Batches() = default;
  virtual std::int64_t rows() const = 0;     ///< The most rows of a batch.
  virtual std::int64_t columns() const = 0;  ///< The most tokens of a row.
  /// A batch of the largest shape. The functions below fill it, and replace its arrays if their shapes differ. By
  /// default it contains "tokens" and "targets", int64 [rows, columns].
  virtual BatchArrays blank() const;
  /// The number of batches of an epoch. 0 if training batches are random samples.
  virtual std::int64_t epoch_batches() const { return 0; }
  virtual RowDraws draws() const { return {}; }
  /// A number below 2^62 for the rows that the batches of an epoch have, apart from the seed. If it differs, a training
  /// cannot continue in the middle of an epoch. 0 if this is not known.
  virtual std::uint64_t order() const { return 0; }
  /// Fills `batch` with batch `index` of the training split. The seed determines the order. `index` has no upper limit.
  virtual void training(std::uint64_t index, BatchArrays& batch) const = 0;
  /// For errors: the source of row `row` of an array in training batch `index`, such as "train.csv, line 12". "" if the
  /// source is unknown.
  virtual std::string training_place(std::uint64_t /*index*/, const std::string& /*array*/,
                                     std::int64_t /*row*/) const {
    return "";
  }
  /// Whether the rows of training batch `index` continue those of the previous batch. Recurrent models then keep their
  /// states. False for batch 0.
  virtual bool training_continues(std::uint64_t /*index*/) const { return false; }
  /// The number of batches that together contain every token of the validation split exactly once.
  virtual std::int64_t validation_batches() const = 0;
  virtual void validation(std::int64_t index, BatchArrays& batch) const = 0;
  /// Whether the rows of validation batch `index` continue those of the previous batch. Fewer rows continue the first
  /// rows.
  virtual bool validation_continues(std::int64_t /*index*/) const { return false; }
  /// Fills `batch` with random rows of the validation split. `index` selects the sample.
  virtual void validation_sample(std::uint64_t index, BatchArrays& batch) const = 0;
};

/// A sequence of tokens, in memory or in a file, from which its parts are read when they are used.
class TokenSequence {
 public:
  virtual ~TokenSequence() = default;
  virtual std::int64_t size() const = 0;
  /// Copies the tokens [begin, begin + count), which must exist, to `to`. Throws FileError if a file cannot be read.
  /// Any thread can read.
  virtual void read(std::int64_t begin, std::int64_t count, std::int64_t* to) const = 0;
};

/// The order in which training reads the blocks of a text.
enum class TextOrder : std::uint8_t {
  random,       ///< Blocks begin at random positions. There are no epochs.
  consecutive,  ///< Each row continues the same row of the previous batch.
  shuffled      ///< The text is cut into blocks. An epoch reads each of them once, in random order.
};

struct TextBatchesOptions {
  std::int64_t rows = 1;
  std::int64_t block_size = 64;  ///< Tokens per row.
  std::uint64_t seed = 0;        ///< Determines the data order.
  TextOrder order = TextOrder::random;
};

/// Next-token batches of a text. The target of each token is the next token. Validation rows are consecutive blocks.
/// The last block is padded with ignored targets, and the last batch may have fewer rows.
///
/// If `consecutive`, each split is cut into strips of equal length, one per row. Row i of batch k is window k of strip
/// i, so each row continues the same row of the previous batch. An epoch reads all complete windows of the training
/// strips in order. Validation strips are read to their ends. The last window of a strip is padded with ignored
/// targets, and batches after it do not have the strip's row.
///
/// If `shuffled`, an epoch has every complete block of the training split once, and its last batch may have fewer rows.
class TextBatches : public Batches {
 public:
  /// Throws Error if the training split is too short for a block (if `consecutive`, for one block per row), if the
  /// validation split is too short for one target, or if a batch is empty or exceeds most_batch_tokens.
  TextBatches(Tokens training, Tokens validation, const TextBatchesOptions& options);
  /// The same for sequences, neither of which may be null.
  TextBatches(std::shared_ptr<const TokenSequence> training, std::shared_ptr<const TokenSequence> validation,
              const TextBatchesOptions& options);
  std::int64_t rows() const override { return options_.rows; }
  std::int64_t columns() const override { return options_.block_size; }
  std::int64_t epoch_batches() const override;  ///< 0 if the order is random.
  std::uint64_t order() const override;
  void training(std::uint64_t index, BatchArrays& batch) const override;
  bool training_continues(std::uint64_t index) const override;
  std::int64_t validation_batches() const override;
  void validation(std::int64_t index, BatchArrays& batch) const override;
  bool validation_continues(std::int64_t index) const override;
  void validation_sample(std::uint64_t index, BatchArrays& batch) const override;

 private:
  void random_rows(const TokenSequence& split, std::uint64_t stream, std::uint64_t index, BatchArrays& batch) const;
  /// Fills the rows with window `index` of their strips of `split`. Strips have `strip` tokens.
  void windows(const TokenSequence& split, std::int64_t strip, std::int64_t index, BatchArrays& batch) const;
  void shuffled_rows(std::uint64_t index, BatchArrays& batch) const;
  const TokenSequence& the_training() const;
  const TokenSequence& the_validation() const;
  std::int64_t training_strip() const;
  std::int64_t validation_strip() const;
  std::int64_t training_blocks() const;
  std::shared_ptr<const TokenSequence> training_, validation_;
  TextBatchesOptions options_;
};

/// A text in two parts.
struct TextSplit {
  std::string training;
  std::string validation;
};
/// Returns the first `fraction` of the text's characters, and the rest. Throws Error if `fraction` is not in (0, 1].
TextSplit split_text(const std::string& text, double fraction);

/// A column of a data set. Batches make arrays from it.
struct Column {
  enum class Kind : std::uint8_t {
    text,  ///< Input texts: int64 [b, t], the tokens from start to end, padded.
    /// Output texts: "tokens" without the last token and "targets" without the first token, int64 [b, t]. If `packed`,
    /// also "positions" and "segments", int64 [b, t].
    target,
    label,   ///< The index of a name in a list: int64 [b].
    number,  ///< Numbers: float32 [b], or [b, width].
    /// A label for each word of a text: int64 [b, t], aligned with its tokens. Other positions have ignored_target.
    tags
  };
  std::string name;  ///< The name of the array. For targets, only messages use it.
  Kind kind = Kind::text;
  std::int32_t pad = 0;    ///< The padding token of texts.
  std::int64_t width = 0;  ///< Numbers per row. 0: one number without an axis.
  /// For targets: whether rows have several texts. A token has its position within its text, and the number of its text
  /// within its row, from 0. Padding has position 0 and segment -1.
  bool packed = false;
  std::string prefix = {};  ///< For targets: what the names of their arrays begin with: "chosen_".
};

/// The names of the arrays of packed texts.
inline constexpr const char* packed_positions = "positions";
inline constexpr const char* packed_segments = "segments";

/// Returns the name of a text for error messages: "line 3 of the source".
using TextPlace = std::function<std::string(std::size_t row, std::size_t column)>;

/// The numbers of rows in a file of which neighbouring rows are left out.
struct RowNumbers {
  std::size_t at = 0, skipped = 0;  ///< `skipped` rows of the file are left out before row `at`.
  std::size_t operator()(std::size_t row) const { return row < at ? row : row + skipped; }
};

/// The rows of a data set.
struct DataRows {
  /// One row in one column.
  struct Cell {
    Tokens tokens;               ///< The tokens of a text or target. For a label, only its index.
    std::vector<float> numbers;  ///< For a column of numbers.
    /// For a target: which tokens are given, such as those of a prompt. The model does not predict them. Tokens after
    /// the last element are not given.
    std::vector<bool> given = {};
    /// For a packed target: the indices at which its texts begin. Empty: one text.
    std::vector<std::uint32_t> starts = {};
  };
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;    ///< One cell per column.
  TextPlace place = {};                   ///< Names the texts that the rows come from.
  std::vector<std::uint32_t> texts = {};  ///< With `place`: for each row, the argument `row` of `place`.
};

struct RowBatchesOptions {
  std::int64_t rows = 64;  ///< Rows per batch, if tokens is 0.
  /// If not 0, a batch has as many rows as fit into this many tokens per column, at least one.
  std::int64_t tokens = 0;
  std::int64_t bucket = 2;  ///< Lengths are rounded up to multiples of this number, which limits the number of shapes.
  std::uint64_t seed = 0;   ///< Determines the data order.
  /// If not 0, training batches are draws. Each draw has this many batches, and `rows` * `draws` rows on average.
  std::int64_t draws = 0;
};

/// Batches of rows: pairs of sentences, single texts, or texts with labels and numbers. Rows of a batch have similar
/// lengths. Padding fills shorter rows; its targets are ignored. An epoch reads all training rows once. Rows of equal
/// length are shuffled among their batches, and the batches are shuffled.
///
/// With draws, only the seed and the numbers of the row and the draw determine whether the draw contains the row. The
/// drawn rows are sorted by length and divided into batches with equally many rows. Copies of rows fill up a batch to a
/// multiple of 8 rows. Unlike zeros, copies have a finite loss. The array `drawn_rows` marks the rows that count. An
/// epoch reads all rows once on average.
class RowBatches : public Batches {
 public:
  /// Throws Error if a split has no row, the columns of the splits differ, a text has fewer than two tokens, or an
  /// option is out of range. Throws Error if the average number of rows of a draw exceeds the number of rows.
  RowBatches(DataRows training, DataRows validation, const RowBatchesOptions& options);
  ~RowBatches() override;
  std::int64_t rows() const override;
  std::int64_t columns() const override;
  BatchArrays blank()
      const override;  ///< Has the shape with the most elements. Other batches may have more rows or longer rows.
  std::int64_t epoch_batches() const override;
  RowDraws draws() const override;
  std::uint64_t order() const override;
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
  char delimiter = '\t';        ///< The separator of fields. Unless it is a tab, fields may be quoted as in read_csv.
  std::int64_t skip_lines = 0;  ///< The number of lines to skip at the beginning, such as a header.
  ReadOptions reading = {};
};
/// Reads a file of rows, plain or compressed by gzip, as described at read_csv: blank lines are no rows. Throws
/// FileError, with the line if a line is wrong.
TableTexts read_table(const std::string& path, const TableOptions& options = {});

/// Sentences with labelled words.
struct SentenceTexts {
  TableTexts columns;              ///< The fields of the words, joined by spaces: columns[column][sentence].
  std::vector<std::size_t> lines;  ///< The number of the first line of each sentence in the file.
};
/// Reads a file with one word and its labels per line, in the format of the CoNLL shared tasks. Blank lines, and lines
/// with the word -DOCSTART-, separate sentences. The delimiter ' ' means any number of spaces and tabs. Throws
/// FileError with the line if the number of fields is wrong, or if a field is not a single UTF-8 word.
SentenceTexts read_sentences(const std::string& path, const TableOptions& options = {});

/// Sentences and their translations. target[i] is the translation of source[i].
struct PairTexts {
  std::vector<std::string> source;
  std::vector<std::string> target;
  std::vector<std::size_t> lines = {};  ///< The line of each pair in the file. Empty for pairs from two files.
};
/// Reads a file of lines source<TAB>target. Further fields are ignored, and blank lines are no pairs. Throws FileError
/// with the line if a line has no tab.
PairTexts read_pairs(const std::string& path, const ReadOptions& options = {});
/// Reads two files. Throws FileError if a file cannot be read, Error if the numbers of lines differ.
PairTexts read_pairs(const std::string& source, const std::string& target, const ReadOptions& options = {});

/// Returns the text's tokens between the start and end tokens. Throws Error if the tokenizer lacks these tokens. Errors
/// of `encode` propagate.
Tokens framed(const Tokenizer& tokenizer, const std::string& text);
/// Like framed, for the text of an encoder. If the tokenizer has only an end token, no start token precedes the text.
Tokens source_of(const Tokenizer& tokenizer, const std::string& text);
/// Returns the tokens of a text to continue. A start token precedes them if tokenizer.begins(). Errors of `encode`
/// propagate.
Tokens prompt_of(const Tokenizer& tokenizer, const std::string& text);

/// The separator between the texts of a file.
enum class DocumentEnd : std::uint8_t {
  line,       ///< Every line is a text.
  blank_line  ///< Blank lines separate texts. Texts keep their inner line ends.
};
/// Returns the nonempty texts in the contents of a file.
std::vector<std::string> split_documents(const std::string& text, DocumentEnd end);

/// A text split after the first `prompt_end`: the given prompt, and the answer that a model should generate.
struct PromptSplit {
  std::string prompt;
  std::string answer;
};
PromptSplit split_prompt(const std::string& text, const std::string& prompt_end);

/// A column of texts to convert to cells. The pointers must stay valid during rows_of.
struct ColumnTexts {
  Column column;
  /// One text per row. For several numbers per row, points to `width` lists.
  const std::vector<std::string>* texts = nullptr;
  const Tokenizer* tokenizer = nullptr;  ///< For texts, targets and tags.
  std::string prompt_end = "";           ///< For targets: see split_prompt. If empty, the target has no given prompt.
  const std::vector<std::string>* labels = nullptr;  ///< For labels and tags: the sorted names.
};
/// Converts texts to rows. Omits a row if a text is empty or has more than `max_length` tokens between start and end.
/// max_length = 0 means no limit. Throws Error with the text's `place` if a text cannot be encoded, a target lacks
/// `prompt_end`, a label is unknown, a number is not finite, or the numbers of tokens and tags of a text differ. The
/// rows keep `place`.
DataRows rows_of(const std::vector<ColumnTexts>& columns, std::int64_t max_length, const TextPlace& place);

/// Makes rows of single texts for language models. Each text is a target. Errors are those of rows_of.
DataRows documents_of(const std::vector<std::string>& texts, const Tokenizer& tokenizer, std::int64_t max_length = 0,
                      const std::string& prompt_end = "");

/// Packs the texts of rows that have a single column, a target, into rows of at most `columns` tokens. A longer text is
/// cut into several, which overlap by one token, so that no target is lost. Each text goes into the fullest row that
/// has room for it, the longest texts first. The loss of a packed row is that of its texts if the model attends only to
/// tokens of the same segment. Throws Error if `columns` is below 1, or if the rows have other columns.
DataRows packed(DataRows rows, std::int64_t columns);

/// Makes rows of pairs, with the columns "source" and "target". Throws Error if the numbers of sources and targets
/// differ. Errors of rows_of propagate.
DataRows pairs_of(const PairTexts& texts, const Tokenizer& source, const Tokenizer& target,
                  std::int64_t max_length = 0);

}  // namespace xtape
