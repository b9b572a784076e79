/// What the model of a run says of rows.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "xtape/train.hpp"

namespace xtape::train {

/// Predictions for rows: fields by row, and the names of the fields.
struct Predictions {
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> rows;
};

/// The most likely label of each row of `logits`, float32 [rows, labels], and its probability. Throws Error for another
/// shape or dtype.
std::vector<std::pair<std::string, double>> most_likely(const Array& logits, std::int64_t rows,
                                                        const std::vector<std::string>& labels);

/// Plays the functions of a run's model that read inputs without targets: `logits`, which gives the most likely label
/// of each row and its probability, and `predict`, which gives numbers. The run must outlive it.
class RowPredictor {
 public:
  /// Throws Error if the run's data has no rows to predict for, or the model has neither function.
  explicit RowPredictor(Run& run);

  /// The columns of a table, or inputs of arrays, that the functions read.
  bool reads(const std::string& input) const;
  /// Rows from lines of a table with the columns of the training data, of which targets may be missing. For arrays,
  /// `lines` begins with the header, if the recipe has one, and `skipped` lines of the file come between it and the
  /// others; blank lines are skipped. Throws Error, with the line of `file`.
  BatchArrays rows(const std::string& file, std::vector<std::string> lines, std::size_t skipped) const;
  /// Rows of a table with a text and a label, each line being the text. Throws Error for a run on other data.
  BatchArrays text_rows(const std::string& file, const std::vector<std::string>& lines, std::size_t skipped) const;
  /// The inputs among the arrays of a file, .npz or .safetensors.
  BatchArrays rows(const std::string& file) const;
  /// The label of each word of sentences: for a run on tags.
  std::vector<std::vector<std::string>> tags(const std::vector<std::vector<std::string>>& sentences) const;
  /// One prediction for each row. Throws Error if the results of the functions are not one for each row and label.
  Predictions predict(const BatchArrays& rows) const;

 private:
  Array tags_of(const Array& tokens) const;  // int64 [b, t]: by the function `tags`, or the largest logits
  std::vector<Column> columns() const;  // of a table, that are read
  BatchArrays field_rows(const std::string& file, const std::vector<std::vector<std::string>>& rows,
                         std::size_t skipped) const;
  BatchArrays table_rows(const std::string& file, const std::vector<std::string>& lines, std::size_t skipped) const;
  void add_labels(const Array& logits, std::int64_t rows, Predictions& made) const;
  void add_numbers(const Store& results, std::int64_t rows, Predictions& made) const;
  std::vector<std::string> target_names() const;
  std::vector<ArrayInput> wanted() const;
  Run& run_;
  bool logits_ = false, predict_ = false;
};

}  // namespace xtape::train
