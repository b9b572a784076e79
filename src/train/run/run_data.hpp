/// The texts, tokenizers and batches of a recipe's data.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "xtape/train.hpp"

namespace xtape::train {

/// The tokenizers of a run, and the names of labels. `source` and `target` are the same object, except for pairs with
/// two tokenizers. Both are null for images.
struct Tokenizers {
  std::shared_ptr<const Tokenizer> source;
  std::shared_ptr<const Tokenizer> target;
  std::vector<std::string> labels;  ///< Sorted. The index of a name is the number of the label.
};

/// The texts of a recipe's data. Each file is read only once, because it may be a pipe.
class Texts {
 public:
  /// Throws FileError if a file cannot be read, and Error if files do not fit together.
  explicit Texts(const Recipe& recipe);
  /// Creates the tokenizers from the training split alone, or loads them.
  Tokenizers make_tokenizers(const Recipe& recipe) const;
  /// Returns the recipe's batches. Evaluation batches come from the validation split or, with `on_test`, from the test
  /// split. Throws Error if there is no test split.
  std::unique_ptr<Batches> batches(const Recipe& recipe, const Tokenizers& tokenizers, bool on_test = false) const;
  /// For arrays from a CSV file, returns the inputs with the names of all their columns.
  const std::vector<ArrayInput>& inputs() const { return training_.arrays.inputs; }
  /// Returns a checksum of all texts of the three splits.
  std::uint64_t checksum() const;
  /// Returns the questions and correct answers of a split: the sources and targets of pairs, or the prompts and
  /// continuations of documents.
  PairTexts answers(const Recipe& recipe, bool on_test) const;

 private:
  /// The rows of one file, or of two parallel files.
  struct Part {
    std::vector<std::string> files;
    std::size_t rows = 0;
    std::vector<std::size_t> lines = {};  // the line numbers of all rows; if empty, row i is text i + 1 or line i + 1
  };
  /// A split: a single text, or rows of texts by column.
  struct Split {
    std::string text;
    TableTexts columns;
    Images images;
    ArrayRows arrays;
    std::size_t size() const { return columns.empty() ? images.size() + arrays.size() : columns[0].size(); }
    std::vector<Part> parts;  // in order
    std::size_t skipped = 0;  // number of first rows of the parts; they belong to another split
    std::string not_utf8;     // for texts and documents: an error that names the first line that is not UTF-8, or ""
  };
  static Split read(const Recipe::Data& data, const Recipe::Data::Files& files);
  static void read_part(const Recipe::Data& data, const std::vector<std::string>& files, Split& split);
  /// Moves the last rows of the training split, or the end of its text, to the validation split.
  void split(const Recipe::Data& data);
  /// Returns the file and line of a text of a split's column.
  static TextPlace places(const Recipe::Data& data, const Split& split);
  DataRows rows(const Recipe& recipe, const Split& split, const Tokenizers& tokenizers, std::int64_t max_length) const;
  /// Throws Error with the place of the first text of the training split that is not UTF-8.
  void check_utf8_texts(const Recipe::Data& data) const;
  const Split& evaluated(const Recipe::Data& data, bool on_test) const;
  std::vector<std::string> lines_for(const Recipe& recipe, bool source) const;
  Split training_, validation_, test_;
};

RowBatchesOptions row_options(const Recipe& recipe);

/// Save and load tokenizer.json, or source_tokenizer.json and target_tokenizer.json. Also save and load labels.json if
/// there are labels.
void save_tokenizers(const Tokenizers& tokenizers, const std::string& directory);
Tokenizers load_tokenizers(const std::string& directory, const Recipe::Data& data);

}  // namespace xtape::train
