/// The kinds of data: text, documents, chats, preferences, pairs, table, tags, images and arrays. Each is an object in
/// a file of its own. All that differs from kind to kind is in these objects.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/texts/long_text.hpp"
#include "data/texts/token_files.hpp"
#include "train/recipe/key_spec.hpp"
#include "xtape/chats.hpp"
#include "xtape/train.hpp"

namespace xtape::train {

/// The tokenizers of a run, and the names of labels. `source` and `target` are the same object, except for pairs with
/// two tokenizers. Both are null for images, and for arrays unless the recipe names one.
struct Tokenizers {
  std::shared_ptr<const Tokenizer> source;
  std::shared_ptr<const Tokenizer> target;
  std::vector<std::string> labels;                      ///< Sorted. The index of a name is the number of the label.
  std::shared_ptr<const ChatTemplate> chats = nullptr;  ///< How chats become tokens. Null for other data.
};

/// The rows of one file, or of two parallel files.
struct DataPart {
  std::vector<std::string> files;
  std::size_t rows = 0;
  std::vector<std::size_t> lines = {};  ///< The line numbers of all rows. If empty, row i is text i + 1 or line i + 1.
};

/// A split of the data: a single text, rows of texts by column, images, or arrays.
struct DataSplit {
  LongText text;
  std::shared_ptr<const TokenSequence> tokens;  ///< Of token files, which take the place of a text. Null: none.
  TokenFacts facts;                             ///< Of `tokens`.
  std::string cache;  ///< Where a run keeps the tokens of a long text: the path without ".npy". "": nowhere.
  TableTexts columns;
  Images images;
  ArrayRows arrays;
  std::vector<DataPart> parts;  ///< In order.
  RowNumbers numbers;           ///< The numbers of its rows in all parts. Other rows belong to another split.
  std::string not_utf8;         ///< For documents: an error that names the first line that is not UTF-8, or "".
  /// The number of rows; 0 for a single text.
  std::size_t size() const { return columns.empty() ? images.size() + arrays.size() : columns[0].size(); }
};

/// What the models of a kind of data are for: they continue texts, translate, predict for rows of fields, label the
/// words of sentences, predict for elements of arrays, or classify images.
enum class Task : std::uint8_t { texts, translations, rows, words, arrays, images };

struct DataFacts {
  const char* name;                  ///< The value of `data.kind`.
  const char* files = name;          ///< The key of the training files. Prefixes name those of the other splits.
  Task task;                         ///< What the models are for.
  const char* title = name;          ///< For errors: a run is on "a table".
  const char* unit = "tokens";       ///< What reports of trainings and evaluations count.
  const char* row = ", line ";       ///< In errors, between the file and the number of a row.
  bool has_rows = true;              ///< Whether the data consists of rows, not of one text.
  std::vector<Column> columns = {};  ///< For rows of texts: the columns, unless the recipe names others.
  bool has_tokens = true;            ///< Whether tokenizers make tokens of texts.
  bool may_be_tokens = false;  ///< Whether data without texts can be tokens, of which a recipe names the tokenizer.
};

/// A kind of data. The functions that are not abstract are those of rows of texts: documents, pairs, tables and tags,
/// which have Recipe::Data::columns.
struct DataKind : DataFacts {
  explicit DataKind(const DataFacts& facts) : DataFacts(facts) {}
  DataKind(const DataKind&) = delete;
  DataKind& operator=(const DataKind&) = delete;
  virtual ~DataKind() = default;

  Keys<Recipe::Data> keys;  ///< The keys of the section `data` that this kind has, besides data_keys().

  /// Completes the recipe when the keys are read.
  virtual void finish(const Section&, Recipe&) const {}
  /// Returns the names of the sizes of the data to which {"from": …} can refer, or nothing if only the files tell.
  virtual std::vector<std::string> size_names(const Recipe::Data& data) const;
  virtual void add_sizes(const Tokenizers& tokenizers, const Batches& batches, Named<std::int64_t>& sizes) const;
  /// Completes the section `data` of a new run by what the files have decided.
  virtual void complete(const Recipe& recipe, const Batches& batches, Json& json) const;
  /// Appends the rows of a part to a split, and sets the part's `lines`. By default, reads JSON Lines, with the fields
  /// of the columns.
  virtual void read(const Recipe::Data& data, DataPart& part, DataSplit& split) const;
  /// Moves rows of the training split, or the end of its text, to the validation split.
  virtual void divide(const Recipe::Data& data, DataSplit& training, DataSplit& validation) const;
  /// Returns the texts of a split, or those of the columns of these kinds.
  virtual std::vector<std::string> texts(const Recipe::Data& data, const DataSplit& split,
                                         const std::vector<Column::Kind>& kinds) const;
  /// Makes or loads the tokenizers, and collects the labels of the training split.
  virtual Tokenizers tokenizers(const Recipe& recipe, const DataSplit& training) const;
  virtual std::unique_ptr<Batches> batches(const Recipe& recipe, const Tokenizers& tokenizers,
                                           const DataSplit& training, const DataSplit& evaluated) const;
  /// Returns the rows of a split. Leaves out rows with more than `max_length` tokens; 0: no limit.
  virtual DataRows rows(const Recipe& recipe, const DataSplit& split, const Tokenizers& tokenizers,
                        std::int64_t max_length) const;
  /// Returns questions and correct answers, if Recipe::Data::has_answers.
  virtual PairTexts answers(const Recipe::Data&, const DataSplit&) const { return {}; }
  /// Writes what an export of a run's model contains besides the model.
  virtual void write_export(const Model&, const Recipe&, const std::string& /*folder*/) const {}
};

const DataKind &text_data(), &document_data(), &chat_data(), &preference_data(), &pair_data(), &table_data(),
    &tag_data(), &image_data(), &array_data();
std::array<const DataKind*, 9> data_kinds();
/// Throws Error if the recipe has no data.
const DataKind& kind_of(const Recipe::Data& data);

/// The keys that several kinds have.
const Keys<Recipe::Data>& data_keys();
extern const Keys<ImageResize> resize_keys;
extern const Keys<ImageOptions> normalise_keys;
/// Reads the section `data` into the recipe, whose `from` must already be read.
void read_data(Section section, Recipe& recipe);

// What several kinds have in common.

/// Rows of the training files that validate: from `begin` to `end`.
struct HeldOut {
  std::int64_t begin, end;
};
/// Returns these rows, and notes in both splits which rows they will have. Throws Error if there are fewer rows than
/// folds.
HeldOut hold_out(const Recipe::Data& data, DataSplit& training, DataSplit& validation);
/// Moves elements to another list, of `width` elements for each row.
template <class List>
void move_rows(const HeldOut& rows, List& from, List& to, std::int64_t width = 1) {
  const auto begin = from.begin() + rows.begin * width, end = from.begin() + rows.end * width;
  to.assign(std::make_move_iterator(begin), std::make_move_iterator(end));
  from.erase(begin, end);
}
/// Changes the labels of rows from indices in `names` to indices in `known`, the labels of the training split. Throws
/// Error with the place of a row that has another label. A negative index is no label.
void relabel(std::int64_t* labels, std::size_t rows, const std::vector<std::string>& names,
             const std::vector<std::string>& known, const std::function<std::string(std::size_t)>& place);
/// Reads the columns of a table, in the order of its fields. `column_of` makes a column of its word.
void read_columns(Section section, Column (*column_of)(Section&, const std::string&, const Json&), Recipe::Data& data);
/// A key of the files of a split. read_data reads the files of all splits.
Key<Recipe::Data> file_key(const char* name, const char* doc, const char* values = "string, list of strings");
Key<Recipe::Data> max_line_key();
/// The character between fields of a file whose name contains `file`, and of other files.
struct UsualDelimiter {
  const char* file;
  char delimiter, otherwise;
};
/// The key of the character between fields. `initial` says in words what is usual.
Key<Recipe::Data> delimiter_key(const char* initial, UsualDelimiter usual, std::function<char&(Recipe::Data&)> target);
/// Whether a file of rows has a header.
Key<Recipe::Data> header_key();
/// The key `fields` of files of JSON Lines. The fields are those of the columns, or of `names`.
Key<Recipe::Data> fields_key(std::vector<std::string> names = {});
/// Returns the field that `fields` gives a name.
const std::string& field_of(const Recipe::Data& data, const std::string& name);
Key<Recipe::Data> pack_key();
/// The key `corruption`, of kinds whose texts can be corrupted.
Key<Recipe::Data> corruption_key();
extern const Keys<CorruptionOptions> corruption_keys;
/// Returns the batches with the recipe's corruption, if it has one.
std::unique_ptr<Batches> corrupted(std::unique_ptr<Batches> batches, const Recipe& recipe,
                                   const Tokenizers& tokenizers);
/// Returns a tokenizer with more special tokens. Only a tokenizer of kind "sentencepiece" that the run has made gets
/// those that it lacks.
std::shared_ptr<const Tokenizer> with_special_tokens(const std::shared_ptr<const Tokenizer>& tokenizer,
                                                     const std::vector<std::string>& names, const Recipe& recipe);
/// Returns the tokenizers with the special tokens that the recipe's corruption needs. Throws Error if a tokenizer that
/// the run has not made lacks them.
Tokenizers with_corruption(Tokenizers made, const Recipe& recipe);
void append(TableTexts more, TableTexts& columns);
/// Returns the file and line of a text of a split's column.
TextPlace places(const Recipe::Data& data, const DataSplit& split);
RowBatchesOptions row_options(const Recipe& recipe);

/// Calls take(column, field) for each column that is read. `field` is the index of the column's first field.
template <class Take>
void for_each_column(const Recipe::Data& data, const Take& take) {
  std::size_t field = 0;
  for (const Column& column : data.columns) {
    if (!column.name.empty()) take(column, field);
    field += static_cast<std::size_t>(std::max<std::int64_t>(1, column.width));
  }
}

inline constexpr const char* test_split = "test";

/// The data of a recipe: the training split, the validation split, the test split if there is one, and further
/// validation sets. Each file is read only once, because it may be a pipe.
class DataSplits {
 public:
  /// Throws FileError if a file cannot be read, and Error if files do not fit together. For `cache`, see use_cache.
  explicit DataSplits(const Recipe& recipe, const std::string& cache = "");
  /// Lets the splits keep the tokens of a long text in a folder, and use those that it has. The folder is made when it
  /// is needed. "": they are kept in temporary files.
  void use_cache(const std::string& folder);
  /// Creates the tokenizers from the training split alone, or loads them.
  Tokenizers make_tokenizers(const Recipe& recipe) const;
  /// Returns the recipe's batches. The batches may refer to this object.
  std::unique_ptr<Batches> batches(const Recipe& recipe, const Tokenizers& tokenizers) const;
  /// Returns batches whose validation split is the test split or a set of Recipe::Data::sets. They are not for
  /// training. Throws Error if there is no such split, or if its rows do not fit the training split.
  std::unique_ptr<Batches> batches(const Recipe& recipe, const Tokenizers& tokenizers, const std::string& on) const;
  /// Returns those of all sets, in order.
  std::vector<std::unique_ptr<Batches>> sets(const Recipe& recipe, const Tokenizers& tokenizers) const;
  /// For arrays from a CSV file, returns the inputs with the names of all their columns.
  const std::vector<ArrayInput>& inputs() const { return splits_[0].arrays.inputs; }
  /// Returns a checksum of all texts of the splits.
  std::uint64_t checksum() const;
  /// Returns the questions and correct answers of a split (see `batches`; "": of the validation split): the sources and
  /// targets of pairs, or the prompts and continuations of documents.
  PairTexts answers(const Recipe& recipe, const std::string& on) const;

 private:
  const DataSplit& evaluated(const Recipe::Data& data, const std::string& on) const;
  std::vector<DataSplit> splits_;  // training, validation, test, and those of Recipe::Data::sets
};

/// Whether the recipe's tokenizer is made from texts of the data, not from files. Its kind is "" if there is none.
bool is_made(const TokenizerSettings& settings);
/// Makes or loads the recipe's tokenizer. The texts from which it is made are `lines`.
std::shared_ptr<const Tokenizer> make_tokenizer(const Recipe& recipe, const std::vector<std::string>& lines);

/// Returns the tokens of a split of one long text: those of its token files or of its cache, or those that the
/// tokenizer makes of its text. Throws Error if a token is not in the vocabulary.
std::shared_ptr<const TokenSequence> tokens_of(const DataSplit& split, const Tokenizer& tokenizer);
/// Notes the checksum of the split's text if its cache has it, and the text has not changed since.
void recall_checksum(DataSplit& split);

/// Save and load tokenizer.json, or source_tokenizer.json and target_tokenizer.json. Also save and load labels.json if
/// there are labels, and chat_template.json if there is a template.
void save_tokenizers(const Tokenizers& tokenizers, const std::string& directory);
Tokenizers load_tokenizers(const std::string& directory, const Recipe::Data& data);

}  // namespace xtape::train
