/// What a recipe's data comes to: texts, tokenizers, batches.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "xtape/train.hpp"

namespace xtape::train {

/// A tokenizer for each side of pairs, which may be one and the same; other data has one. And the names of labels.
struct Tokenizers {
  std::shared_ptr<const Tokenizer> source;
  std::shared_ptr<const Tokenizer> target;
  std::vector<std::string> labels;  ///< Sorted: a name's place is its number.
};

/// The texts of a recipe's data, read once: files may be pipes.
class Texts {
 public:
  /// Throws FileError where a file cannot be read, Error where files do not fit together.
  explicit Texts(const Recipe& recipe);
  /// From the training split alone.
  Tokenizers make_tokenizers(const Recipe& recipe) const;
  /// The batches that the recipe asks for; those of evaluations are of the validation split, or of the test split.
  /// Throws Error where there is no test split.
  std::unique_ptr<Batches> batches(const Recipe& recipe, const Tokenizers& tokenizers, bool on_test = false) const;
  /// What a model is asked and should answer: of pairs, sources and targets; of documents, prompts and what follows.
  PairTexts answers(const Recipe& recipe, bool on_test) const;

 private:
  /// A split: one text, or rows of texts column by column.
  struct Split {
    std::string text;
    TableTexts columns;
    std::vector<std::string> files;  // of the columns, or of all
    std::size_t first = 1;           // the number of its first row in them
  };
  static Split read(const Recipe::Data& data, const Recipe::Data::Files& files);
  /// Cuts the validation split off the training split.
  void split(const Recipe::Data& data);
  DataRows rows(const Recipe& recipe, const Split& split, const Tokenizers& tokenizers, std::int64_t max_length) const;
  const Split& evaluated(bool on_test) const;
  std::vector<std::string> lines_for(const Recipe& recipe, bool source) const;
  Split training_, validation_, test_;
};

RowBatchesOptions row_options(const Recipe& recipe);

/// tokenizer.json, or source_tokenizer.json and target_tokenizer.json; and labels.json.
void save_tokenizers(const Tokenizers& tokenizers, const std::string& directory);
Tokenizers load_tokenizers(const std::string& directory);

}  // namespace xtape::train
