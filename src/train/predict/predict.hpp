/// Predictions of a run's model for rows.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "data/tables/fields.hpp"
#include "xtape/train.hpp"

namespace xtape::train {

/// Predictions for rows: the fields of each row, and the names of the fields.
struct Predictions {
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> rows;
};

/// Returns the most likely label of each row of `logits`, float32 [rows, labels], and its probability. Throws Error if
/// `logits` has another shape or dtype.
std::vector<std::pair<std::string, double>> most_likely(const Array& logits, std::int64_t rows,
                                                        const std::vector<std::string>& labels);

/// Plays the functions `logits` and `predict` of a run's model, which read inputs without targets. `logits` gives the
/// most likely label of each row and its probability. `predict` gives numbers. The run must outlive this object.
class RowPredictor {
 public:
  /// Throws Error if the run's data has no rows to predict, or if the model has neither function.
  explicit RowPredictor(Run& run);

  /// Returns whether the functions read `input`, which is the name of a column of a table or of an input of arrays.
  bool reads(const std::string& input) const;
  /// Returns a reader of the rows of a table with the columns of the training data. `first` is the first line, from
  /// which the character between fields is found for arrays. A blank line is a row if the model reads one text.
  FieldReader reader(const std::string& file, const std::string& first) const;
  /// Returns the arrays of rows of such a reader. Targets may be missing. For arrays, the rows begin with the header if
  /// the recipe has one. Throws Error if a row is wrong. The message names `file` and the line number.
  BatchArrays rows(const std::string& file, const std::vector<FieldRow>& rows) const;
  /// Returns rows of a table with a text and a label, where each line is the text. Throws Error for a run on other
  /// data.
  BatchArrays text_rows(const std::string& file, const std::vector<std::string>& lines, std::size_t skipped) const;
  /// Reads a .npz or .safetensors file. Returns those of its arrays that are inputs of the functions.
  BatchArrays rows(const std::string& file) const;
  /// Returns the label of each word of each sentence, for a run on tags.
  std::vector<std::vector<std::string>> tags(const std::vector<std::vector<std::string>>& sentences) const;
  /// Returns one prediction for each row. Throws Error if the results of the functions do not have one element for each
  /// row and label.
  Predictions predict(const BatchArrays& rows) const;

 private:
  // int64 [b, t]: the result of the function `tags`, or the indices of the largest logits
  Array tags_of(const Array& tokens) const;
  std::vector<Column> columns() const;  // the columns of a table that the model reads
  std::vector<bool> taken() const;      // for each field of a complete row of a table: whether the model reads it
  char separator(const std::string& first) const;
  BatchArrays field_rows(const std::string& file, const std::vector<FieldRow>& rows) const;
  BatchArrays table_rows(const std::string& file, const std::vector<FieldRow>& rows) const;
  void add_labels(const Array& logits, std::int64_t rows, Predictions& made) const;
  void add_numbers(const Store& results, std::int64_t rows, Predictions& made) const;
  std::vector<std::string> target_names() const;
  std::vector<ArrayInput> wanted() const;
  Run& run_;
  bool logits_ = false, predict_ = false;
};

}  // namespace xtape::train
