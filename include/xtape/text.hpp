/// Text as numbers: files, data sets, and the batches that training and evaluation read from them.
#pragma once

#if defined(XTAPE_LAYER) && XTAPE_LAYER < 8 && !defined(XTAPE_LAYER_IS_TEXT)
#error "this layer of xtape may not see the text layer"
#endif

#include <cstdint>
#include <functional>
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

/// The arrays of one batch by the names of the loss function's inputs: int64, as definitions take "int", and float32.
using Batch = Named<Array>;

/// A data set cut into batches of a few shapes. A batch is a function of the seed and its index alone, so that the
/// index is all that a checkpoint needs to remember of the data order. For use by one thread at a time.
class Batches {
 public:
  virtual ~Batches() = default;
  virtual std::int64_t rows() const = 0;     ///< The most rows that a batch has.
  virtual std::int64_t columns() const = 0;  ///< The most tokens that a row has.
  /// A batch of the largest shape that there is, for the functions below to fill: "tokens" and "targets", int64 [rows,
  /// columns], unless the class says otherwise. They give the arrays another shape where theirs is another.
  virtual Batch blank() const;
  /// How many batches go once through the training split; 0 where it is not gone through in turn.
  virtual std::int64_t epoch_batches() const { return 0; }
  /// Batch `index` of the training split, in the data order of the seed; it never ends.
  virtual void training(std::uint64_t index, Batch& batch) const = 0;
  /// Whether the rows of training batch `index` go on from those of the batch before it: what a recurrent model carries
  /// on from one batch to the next. Batch 0 never does.
  virtual bool training_continues(std::uint64_t /*index*/) const { return false; }
  /// The batches that together hold every token of the validation split exactly once.
  virtual std::int64_t validation_batches() const = 0;
  virtual void validation(std::int64_t index, Batch& batch) const = 0;
  /// As training_continues, of validation batches.
  virtual bool validation_continues(std::int64_t /*index*/) const { return false; }
  /// Batch `index` of randomly chosen rows of the validation split.
  virtual void validation_sample(std::uint64_t index, Batch& batch) const = 0;
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

/// What a column of a data set holds, and the arrays that batches make of it.
struct Column {
  enum class Kind : std::uint8_t {
    text,    ///< Texts to be read: int [b, t], the tokens from start to end, filled up with padding.
    target,  ///< Texts to be produced: "tokens" and "targets", int [b, t], the tokens without the last, without the
             ///< first.
    label,   ///< One of some names, as its number: int [b].
    number   ///< Numbers: float32 [b], or [b, width].
  };
  std::string name;  ///< Of the array; that of a target serves messages alone.
  Kind kind = Kind::text;
  std::int32_t pad = 0;    ///< Fills up the tokens of texts.
  std::int64_t width = 0;  ///< Of numbers; 0: one, without an axis.
};

/// Rows of a data set.
struct DataRows {
  /// What one row holds in one column.
  struct Cell {
    Tokens tokens;               ///< Of a text; of a label, its number alone.
    std::vector<float> numbers;  ///< Of a column of numbers.
    std::size_t prompt = 0;      ///< Of a target: so many tokens at its beginning are given, and no targets.
  };
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;  ///< Cell i is of column i.
};

struct RowBatchesOptions {
  std::int64_t rows = 64;   ///< Rows in a batch …
  std::int64_t tokens = 0;  ///< … or, above 0, as many as make at most so many tokens of any column, but at least one.
  std::int64_t bucket = 2;  ///< Lengths are rounded up to multiples of this, so that batches have few shapes.
  std::uint64_t seed = 0;   ///< Of the data order.
};

/// Batches of rows: sentences and their translations, texts by themselves, or texts, labels and numbers as definitions
/// take them. A batch holds rows of like length. What they do not fill is padding, and targets and labels that are
/// ignored; a batch with numbers, which cannot be ignored, has only as many rows as there are. An epoch goes through
/// all training rows once: those of one length are dealt out anew to their batches, and the batches of all lengths
/// follow one another in a new order.
class RowBatches : public Batches {
 public:
  /// Throws Error where a part has no row, the parts have other columns, or a text has fewer than two tokens.
  RowBatches(DataRows training, DataRows validation, const RowBatchesOptions& options);
  ~RowBatches() override;
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

/// The fields of a file, column by column.
using TableTexts = std::vector<std::vector<std::string>>;

struct TableOptions {
  std::size_t columns = 2;      ///< Fields of a line.
  bool more = false;            ///< Lines may have more, which are not read.
  char delimiter = '\t';        ///< Between fields. Around any other than a tab, quotation marks are those of CSV.
  std::int64_t skip_lines = 0;  ///< At the beginning: a heading.
};
/// Reads a file of rows, a line each, plain or compressed by gzip. Throws FileError, with the line where it is wrong.
TableTexts read_table(const std::string& path, const TableOptions& options = {});

/// Sentences and their translations: line i of one is line i of the other.
struct PairTexts {
  std::vector<std::string> source;
  std::vector<std::string> target;
};
/// From a file of lines source<TAB>target; what a second tab parts from them is not read. Throws FileError, with the
/// line where there is no tab.
PairTexts read_pairs(const std::string& path);
/// From two files. Throws FileError, and Error where they have not as many lines.
PairTexts read_pairs(const std::string& source, const std::string& target);

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

/// What is given of a text, up to the first `prompt_end`, that one included, and what a model is to make of it. Throws
/// Error where the text does not hold it.
struct PromptSplit {
  std::string prompt;
  std::string answer;
};
PromptSplit split_prompt(const std::string& text, const std::string& prompt_end);

/// A column of texts that are to become cells, and what it takes.
struct ColumnTexts {
  Column column;
  const std::vector<std::string>* texts = nullptr;   ///< Of several numbers, the first of as many lists in a row.
  const Tokenizer* tokenizer = nullptr;              ///< Of texts and targets.
  std::string prompt_end = "";                       ///< Of targets: what ends the part that is given; empty: none is.
  const std::vector<std::string>* labels = nullptr;  ///< Of labels: the names, sorted; a name's place is its number.
};
/// Which text an error is about: "line 3 of the source".
using TextPlace = std::function<std::string(std::size_t row, std::size_t column)>;

/// Row by row from start to end token. Rows with an empty text, or with more than `max_length` tokens in one (0: any
/// number), are left out. Throws Error, with the place, where a text cannot be read, a target has no `prompt_end`, a
/// label is none of the names, or a number is none.
DataRows rows_of(const std::vector<ColumnTexts>& columns, std::int64_t max_length, const TextPlace& place);

/// Texts by themselves, each a target: what RowBatches takes, and models of language learn from.
DataRows documents_of(const std::vector<std::string>& texts, const Tokenizer& tokenizer, std::int64_t max_length = 0,
                      const std::string& prompt_end = "");

/// Pairs, with the columns "source" and "target".
DataRows pairs_of(const PairTexts& texts, const Tokenizer& source, const Tokenizer& target,
                  std::int64_t max_length = 0);

}  // namespace xtape
