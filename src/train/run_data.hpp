/// What a recipe's data comes to: texts, tokenizers, batches.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "xtape/train.hpp"

namespace xtape::train {

/// A tokenizer for each side of pairs, which may be one and the same; other data has one.
struct Tokenizers {
  std::shared_ptr<const Tokenizer> source;
  std::shared_ptr<const Tokenizer> target;
};

/// The texts of a recipe's data, read once.
class Texts {
 public:
  /// Throws FileError where a file cannot be read, Error where files do not fit together.
  explicit Texts(const Recipe& recipe);
  /// From the training part alone.
  Tokenizers make_tokenizers() const;
  /// The batches that the recipe asks for.
  std::unique_ptr<Batches> batches(const Tokenizers& tokenizers) const;
  const PairTexts& validation() const { return validation_; }  ///< Of pairs.

 private:
  void split_documents_of(const Recipe::Data& data);
  std::vector<std::string> lines_for(bool source) const;
  std::shared_ptr<const Tokenizer> make_tokenizer(const std::vector<std::string>& lines) const;
  const Recipe& recipe_;
  TextSplit split_;     // of text
  PairTexts training_;  // documents are targets without sources
  PairTexts validation_;
};

PairBatchesOptions pair_options(const Recipe& recipe, const Tokenizers& tokenizers);

/// tokenizer.json, or source_tokenizer.json and target_tokenizer.json.
void save_tokenizers(const Tokenizers& tokenizers, const std::string& directory);
Tokenizers load_tokenizers(const std::string& directory);

}  // namespace xtape::train
