/// Predictions of a run's model for rows.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/tables/fields.hpp"
#include "ranks/rank_group.hpp"
#include "train/data/data_kind.hpp"
#include "xtape/decode.hpp"
#include "xtape/train.hpp"

namespace xtape::train {

// Greedy answers of a model, and measures of their correctness.

/// Returns whether the model has this function and the function reads this input.
bool reads(const Model& model, const std::string& function, const std::string& input);

/// Throws Error, which says what is missing, unless the model continues texts: it has a function logits(tokens), which
/// gives [b, t, vocabulary].
void check_continues(const Model& model, const Tokenizer& tokenizer);
/// Throws Error, which says what is missing, unless the model translates: it has a function logits(source, tokens), and
/// targets have a start and an end.
void check_translates(const Model& model, const Tokenizer& target);

/// Returns whether prompts begin with the start token: if the rows of the data do, or texts of the tokenizer's folder.
/// With `chats`, a template says how prompts begin.
bool begins(const Recipe& recipe, const Tokenizer& tokenizer, bool chats);
/// Returns the tokens of a prompt.
Tokens prompt_tokens(const Recipe& recipe, const Tokenizer& tokenizer, const std::string& text);

/// Returns the tokens that end a text in training or in the folder of the tokenizer.
Tokens end_tokens(const Tokenizer& tokenizer);

/// Continues each prompt (`answers.source`) greedily with the model's function `logits(tokens)`. Generates at most as
/// many tokens as the longest target needs. `columns` is the context length. Each rank of the group continues some of
/// the prompts, and every rank receives all answers. The function calls `between` before every token. An exception that
/// `between` throws propagates.
std::vector<std::string> continued(const Recipe& recipe, Model& model, const Tokenizer& tokenizer,
                                   const PairTexts& answers, std::int64_t columns, ranks::RankGroup& group,
                                   const std::function<void()>& between);

/// Compares the answers `made` with the correct answers `right` by the measures that the recipe requests (BLEU, exact
/// match). Stores the results in `evaluation`.
void compare(const Recipe& recipe, const std::vector<std::string>& made, const std::vector<std::string>& right,
             Evaluation& evaluation);

// Attention weights and the tokens to which they belong.

/// Throws Error if the model has no function `attention`.
void check_attention(const Model& model);

/// Implements Run::attention for a pair. `produced` contains the target's tokens in the order of production, with the
/// end token last.
std::vector<Attention> attention(Model& model, const Tokenizers& tokenizers, const std::string& source,
                                 const Tokens& produced);
/// Implements Run::attention for one text.
std::vector<Attention> attention(Model& model, const Tokenizer& tokenizer, const std::string& text);

/// Returns the target's tokens and the end token, without the start token, which the model reads but does not produce.
Tokens produced(const Tokenizer& tokenizer, const std::string& target);

// Translates lines of text.

/// Translates every line with the model's function `logits(source, tokens)` and the searcher. `positions` is the
/// maximum number of tokens that the model can read or write; 0 means that the model has no limit. Each rank of the
/// group translates some of the batches of lines. All ranks receive all translations.
std::vector<Translation> translate(Searcher& searcher, const Tokenizers& tokenizers,
                                   const std::vector<std::string>& lines, SearchOptions options, std::int64_t positions,
                                   ranks::RankGroup& group);

/// Predictions in mode train, whose random ops, such as dropout, make each sample another one.
struct PredictSamples {
  std::int64_t count = 0;  ///< The number of samples for each row, at least 2. 0: one prediction in mode eval.
  std::uint64_t seed = 0;
};
inline constexpr std::int64_t most_samples = 1 << 20;

/// Returns a model with the weights of `model` that plays samples. See RowPredictor.
Model model_of_samples(const Model& model, std::uint64_t seed);

/// The mean of samples and their standard deviation with count - 1 (as torch.std), by the names of results. Each is
/// float32 [rows, …].
struct SampledResults {
  Store mean, deviation;
};

/// Predictions for rows: the fields of each row, and the names of the fields.
struct Predictions {
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> rows;
};

/// Returns the most likely label of each row of `logits`, float32 [rows, labels], and its probability. Throws Error if
/// `logits` has another shape or dtype.
std::vector<std::pair<std::string, double>> most_likely(const Array& logits, std::int64_t rows,
                                                        const std::vector<std::string>& labels);

std::string text_of_probability(double probability);

/// Plays the functions `logits` and `predict` of a run's model, which read inputs without targets. `logits` gives the
/// most likely label of each row and its probability. `predict` gives numbers. The run must outlive this object.
class RowPredictor {
 public:
  /// Throws Error if the run's data has no rows to predict, or if the model has neither function. With samples, blocks
  /// that update weights themselves, such as running means, use these weights as in mode eval, because a prediction
  /// must not depend on the rows beside it.
  explicit RowPredictor(Run& run, const PredictSamples& samples = {});

  bool is_sampled() const { return samples_.count > 0; }
  /// Whether samples of a row have differed so far.
  bool varies() const { return varies_; }

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
  /// row and label. With samples, the prediction is their mean, and further fields have their deviations. The samples
  /// of a row depend on the seed, on how many rows were predicted before, and on the row.
  Predictions predict(const BatchArrays& rows) const;

 private:
  // int64 [b, t]: the result of the function `tags`, or the indices of the largest logits
  Array tags_of(const Array& tokens) const;
  std::vector<Column> columns() const;  // the columns of a table that the model reads
  std::vector<bool> taken() const;      // for each field of a complete row of a table: whether the model reads it
  char separator(const std::string& first) const;
  BatchArrays field_rows(const std::string& file, const std::vector<FieldRow>& rows) const;
  BatchArrays table_rows(const std::string& file, const std::vector<FieldRow>& rows) const;
  std::string label_name() const;
  /// Appends a label and its probability. NaN inputs have no most likely label.
  static void add_label(const std::string& label, double probability, std::vector<std::string>& fields);
  void add_labels(const Array& logits, std::int64_t rows, Predictions& made) const;
  /// Adds the numbers of results under their names with an ending.
  void add_numbers(const Store& results, std::int64_t rows, Predictions& made, const std::string& ending = "") const;
  using TakeSamples = std::function<void(std::size_t result, const std::string& name, const ArrayView& samples)>;
  /// Plays the samples of a row, and calls `take` with each result, [n, …], of each play.
  void play_samples(const std::string& function, const BatchArrays& rows, std::int64_t row,
                    const TakeSamples& take) const;
  /// Plays the samples of each row. With `probabilities`, samples are the softmax of the results.
  SampledResults sampled(const std::string& function, const BatchArrays& rows, bool probabilities) const;
  void add_samples(const BatchArrays& rows, Predictions& made) const;
  std::vector<std::string> target_names() const;
  std::vector<ArrayInput> wanted() const;
  bool has_columns() const { return !run_.recipe().data.columns.empty(); }
  Run& run_;
  PredictSamples samples_;
  mutable std::optional<Model> sampling_;  // the model of samples, with the weights of the run's model
  bool logits_ = false, predict_ = false;
  mutable std::uint64_t row_ = 0;  // the number of rows for which there are samples
  mutable bool varies_ = false;
};

}  // namespace xtape::train
