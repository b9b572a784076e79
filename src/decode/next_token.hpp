/// Playing a model's function `logits` on rows of tokens, to read what comes next in each.
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
  std::int64_t* row(std::int64_t row) { return tokens_.as<std::int64_t>() + row * columns_; }  ///< To be filled.
  void play();
  /// The logits of the last play for what follows position `column` of `row`, as they stand in the model's dtype.
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
