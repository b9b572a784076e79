/// Plays a model's function `logits` on rows of tokens, and gives the logits of the next token of each row.
#pragma once

#include <memory>

#include "xtape/model.hpp"
#include "xtape/text.hpp"

namespace xtape::decode {

class NextToken {
 public:
  /// Throws DefinitionError unless the model's `logits` takes int tokens [rows, columns] and gives floats
  /// [rows, columns, classes].
  NextToken(Model& model, std::int64_t rows, std::int64_t columns, Mode mode = Mode::eval);
  std::int64_t classes() const { return classes_; }
  std::int64_t* row(std::int64_t row) { return tokens_.as<std::int64_t>() + row * columns_; }  ///< The caller fills it.
  void play();
  /// Copies the logits, [classes], of the token that follows position `column` of `row` from the last play.
  void logits(std::int64_t row, std::int64_t column, std::vector<double>& out) const;

 private:
  std::shared_ptr<PlayableFunction> function_;
  Array tokens_;
  std::int64_t columns_;
  std::int64_t classes_ = 0;
  std::vector<Feed> feeds_;
  ArrayView result_;
};

}  // namespace xtape::decode
