/// Training: the trainer, recipes, checkpoints and run directories. docs/recipes.md describes the files.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "xtape/array_batches.hpp"
#include "xtape/communicator.hpp"
#include "xtape/decode.hpp"
#include "xtape/images.hpp"
#include "xtape/inspect.hpp"
#include "xtape/model.hpp"
#include "xtape/optim.hpp"
#include "xtape/owner.hpp"
#include "xtape/profile.hpp"
#include "xtape/text.hpp"
#include "xtape/tokenizers.hpp"

namespace xtape {

/// Options of private training: DP-SGD (Abadi et al., 2016, Deep learning with differential privacy). The training is
/// then (epsilon, delta)-differentially private for each row of the training split. PrivacyAccountant computes epsilon.
/// If all numbers are 0, the training is not private.
struct PrivacyOptions {
  double clip_norm = 0;  ///< The norm to which the gradient of each row's mean loss is clipped. Above 0.
  /// The standard deviation of the noise on sums of clipped gradients is this number times clip_norm.
  double noise_multiplier = 0;
  double delta = 0;  ///< Above 0 and far below 1 / rows.
};

/// The report of an update.
struct StepReport {
  std::int64_t step = 0;  ///< The number of updates, including this one.
  /// The mean loss over the counted targets of all micro-batches, before the update. NaN if a private update has no
  /// row.
  double loss = 0;
  double rate = 0;          ///< The learning rate.
  double norm = 0;          ///< The global norm of the gradient of the mean loss, before clipping.
  std::int64_t tokens = 0;  ///< The number of counted targets.
  double seconds = 0;       ///< Wall time of the update.
  double waiting = 0;       ///< The part of `seconds` spent waiting for other ranks.
};

/// The results of an evaluation.
struct Evaluation {
  std::int64_t step = 0;    ///< The number of updates before the evaluation.
  double loss = 0;          ///< The mean over all targets of the split in nats. Each target counts once.
  std::int64_t tokens = 0;  ///< The number of targets.
  /// The exponential of the mean of the function `plain_loss`, if the model has this function.
  std::optional<double> perplexity;
  /// The share of targets that are the most likely token, according to the function `accuracy`.
  std::optional<double> accuracy;
  std::optional<double> exact_match;  ///< The share of greedy answers that match exactly, if the recipe asks for it.
  std::int64_t questions = 0;         ///< The number of answers in `exact_match`.
  std::optional<double> bleu;         ///< The BLEU of greedy answers, if the recipe asks for it.
  std::optional<double> epsilon;      ///< The epsilon of all updates so far, if the training is private.
};

/// Statistics of the absolute values of a module's results in a play, and of the gradient of the mean loss with respect
/// to these results. A statistic that does not apply to the module is empty.
struct ModuleStatistics {
  std::string module;            ///< "h.0.attn".
  double largest = 0, mean = 0;  ///< Statistics of the first float result.
  double zeros = 0;              ///< The share of elements of the first float result that are 0.
  std::optional<double> gradient_largest, gradient_mean, gradient_zeros;
  /// The share of results of the module's own tanh and sigmoid beyond 0.99 of the range.
  std::optional<double> saturated;
  std::optional<double> masked_rows;  ///< The share of fully masked rows of the module's own softmax.
};
/// A value inside a training step.
struct WatchedValue {
  std::string name;  ///< A name of RecordedLines::values: "h.0.attn.scores".
  std::string type;
  Range range;
};

/// The progress of an update that consists of several plays, for micro-batches and shards.
struct UpdatePart {
  std::int64_t step = 0;   ///< The number of the update, from 1.
  std::int64_t plays = 0;  ///< The number of plays that this rank has finished.
  std::int64_t all = 0;    ///< The approximate number of all plays. Shards without rows are not played.
};

/// Options of a Trainer.
struct TrainerOptions {
  OptimizerOptions optimizer = {};  ///< The optimizer of weights that no group matches.
  ScheduleOptions schedule = {};
  /// Micro-batches per update, 1 to 1,048,576. The update equals an update on all micro-batches at once.
  std::int64_t accumulate = 1;
  /// The number of parts that the rows of a batch are split into. The gradients of the parts are summed in a fixed
  /// order. So the bits of results depend on `shards`, but not on which rank or thread computes a part. Each part draws
  /// its own random numbers.
  std::int64_t shards = 1;
  /// The other processes ("ranks") that train with this one. Null means none. All ranks must make the same calls with
  /// the same model, batches and options, and get the same results. There are at most as many ranks as shards.
  std::shared_ptr<Communicator> communicator = {};
  /// The precision of matrix products in updates. Weights and moments stay float32.
  Precision precision = Precision::float32;
  double clip = 0;  ///< The global norm to which gradients are clipped. 0 means no clipping.
  /// Private training. The batches must be draws of rows (Batches::draws), and each draw must consist of `accumulate`
  /// batches. The loss of an update is then the mean over rows of each row's mean loss. Gradients are divided by the
  /// expected number of rows.
  PrivacyOptions privacy = {};
  std::uint64_t seed = 0;                    ///< Determines the random ops.
  int threads = 0;                           ///< 0 means omp_get_max_threads().
  bool profile = false;                      ///< Whether to measure the time of every op, for Trainer::profile.
  /// The limit of the resident memory of the process in bytes, including everything allocated before. 0 means no limit.
  /// Updates and evaluations recompute values to stay below the limit (PlayerOptions::memory). The bits of results do
  /// not change.
  std::size_t memory = 0;
  /// If not null, Trainer::profile records the updates that it measures in this trace.
  std::shared_ptr<Trace> trace = {};
  /// The folders for diagnostics of a failed update or evaluation: a capsule, and the complete failed play
  /// (inspect.hpp). "" writes none.
  std::string capsule, failed_play;
  /// Patterns of weight names, in which `*` matches anything. Only one of the two lists may be given. Weights that
  /// match `frozen`, or do not match `trainable`, stay unchanged. They have no gradients and no moments.
  std::vector<std::string> frozen = {}, trainable = {};
  /// Groups of weights with settings other than those of `optimizer`. The first group that matches a weight applies.
  /// The rates of groups are factors of the schedule's rate. The global norm covers all weights.
  std::vector<OptimizerGroup> groups = {};
};

/// A training or evaluation that cannot continue, because a number is not finite or an update has no targets.
class TrainingError : public Error {
 public:
  using Error::Error;
};
/// An evaluation with results that are not finite, or in which a call throws. The updates before it are valid.
class EvaluationError : public TrainingError {
 public:
  using TrainingError::TrainingError;
};

/// Trains a model. Plays the gradients of its function `loss`, which returns (sum of losses, count of targets), and
/// updates the weights. Only one thread at a time may use a trainer. No other thread may use the model at the same
/// time.
///
/// If an input of `loss` has the name of a result, it is a carried state. If the rows continue
/// (Batches::training_continues), the state starts with the result of the previous batch, otherwise with zeros. No
/// gradient flows into the previous batch (truncated back-propagation through time: Williams and Peng, 1990).
/// Evaluations carry states in the same way.
class Trainer {
 public:
  /// `model` and `batches` must outlive the trainer. The constructor records and plans the training step for the
  /// largest batch. The trainer plans steps for other shapes when they occur. Throws DefinitionError if `loss` does not
  /// accept the batches' arrays or depends on no trained weight, a state changes its type, or a pattern matches no
  /// weight. Throws Error if an option is out of range. Throws Error if a private training has carried states,
  /// Precision::bf16, or batches that are not suitable draws.
  Trainer(Model& model, const Batches& batches, const TrainerOptions& options);

  std::int64_t step() const;     ///< The number of updates so far.
  const Store& trained() const;  ///< The weights that are not frozen.
  /// The names of the trained weights that never change because the loss does not depend on them differentiably.
  std::vector<std::string> without_gradient() const;
  /// Makes one update. Throws TrainingError if the loss, a carried state or the gradients are not finite; the error
  /// names the first faulty op and its line in the definition. Throws TrainingError if a weight or moment would
  /// overflow, or if no target counts. After an error, weights, moments and states are unchanged.
  StepReport update();
  /// Returns the first play of the next update, for the first micro-batch and shard. Its results are the sum of the
  /// losses, the count of targets, further results and the gradients of the sum.
  RecordedPlay next_play();
  /// Returns statistics of every module that is applied outside scans and checkpoints, in the order of the definition.
  /// The values are those of the first play of the next update. The additional play has no effect on the training.
  std::vector<ModuleStatistics> statistics();
  /// Returns the types and ranges of values in the play of statistics(). `names` are names of RecordedLines::values.
  /// Throws DefinitionError with the nearest name if there is no such value.
  std::vector<WatchedValue> watched(const std::vector<std::string>& names);
  /// Evaluates on the whole validation split, in mode eval. Throws Error if no target counts. Throws EvaluationError if
  /// a loss or carried state is not finite or a call throws; the error names the op and its line as in update(). With
  /// several ranks, all ranks throw it.
  Evaluation evaluate();

  /// With several ranks, a return value of true from `stop`, `save` or `interrupt` on any rank applies to all ranks.
  struct Callbacks {
    std::function<void(const StepReport&)> step;        ///< After every update.
    std::function<void(const UpdatePart&)> part;        ///< After every play of an update except the last.
    std::function<void(const Evaluation&)> evaluation;  ///< After every evaluation.
    /// Called on rank 0 before updates, as often as FitOptions::statistics_every and watch_every say, with the number
    /// of the update.
    std::function<void(std::int64_t step, const std::vector<ModuleStatistics>&)> statistics;
    std::function<void(std::int64_t step, const std::vector<WatchedValue>&)> watched;
    std::function<bool()> stop;  ///< Called after every update and its evaluation. Returning true ends the training.
    std::function<bool()> save;  ///< Called by Run::train after every update. Returning true writes a checkpoint.
    /// Called between plays, also within updates and evaluations. Returning true ends the training at once. An
    /// unfinished update has no effect. An unfinished evaluation is repeated when the training continues.
    std::function<bool()> interrupt;
    /// Called by Run::train with a sentence about a harmless problem, such as an old checkpoint that cannot be removed.
    std::function<void(const std::string& sentence)> warning;
  };
  struct FitOptions {
    std::int64_t steps = 0;           ///< The most updates in total, including those before a resume. 0: no limit.
    std::int64_t epochs = 0;          ///< The most epochs. 0: no limit.
    /// Updates between evaluations. There is always an evaluation after the last update.
    std::int64_t evaluate_every = 0;
    bool evaluate_epochs = false;     ///< Whether to evaluate after every epoch, too.
    std::int64_t patience = 0;        ///< Ends after this many evaluations in a row without a better loss. 0: never.
    std::int64_t statistics_every = 0;  ///< Updates between statistics, starting with the first update. 0: none.
    std::int64_t watch_every = 1;       ///< Updates between reports of watched values, starting with the first update.
    /// The names of the watched values (see Trainer::watched). Failing updates are observed, too.
    std::vector<std::string> watch = {};
  };
  /// Trains until a limit of the options is reached. Returns false if `stop` or `interrupt` ended the training earlier.
  /// Throws Error if a number is negative, if steps and epochs are both 0, or if epochs are set but the data has none.
  /// Errors of update() and evaluate() propagate.
  bool fit(const FitOptions& options, const Callbacks& callbacks = {});
  std::int64_t epoch() const;  ///< The number of complete epochs. 0 if the data has none.
  /// The step of the evaluation with the lowest perplexity so far, or with the lowest loss if there is no perplexity.
  /// -1 before the first evaluation.
  std::int64_t best_step() const;
  std::int64_t evaluated_step() const;  ///< The step of the last evaluation. -1 before the first.

  /// On rank 0, writes a checkpoint to the directory `path`: weights.safetensors, optimizer.safetensors and state.json.
  /// If the next batch continues from carried states, the checkpoint also contains carried.safetensors. The files are
  /// written to a new directory and flushed to disk. The new directory then replaces `path`. Throws FileError if a file
  /// cannot be written or the parent directory is missing.
  void save(const std::string& path) const;
  /// Continues from a checkpoint. The following updates are bitwise equal to those of the run that wrote the
  /// checkpoint. If the number of batches per epoch has changed, the current epoch restarts. Throws FileError if `path`
  /// is not a checkpoint, or if its model, optimiser, seed or privacy differ. After an error, nothing has changed.
  void load(const std::string& path);

  /// Makes `updates` updates twice on the same batches: first to plan and warm up, then to measure. Throws Error if
  /// TrainerOptions::profile is false or updates < 1. Errors of update() propagate.
  TrainingProfile profile(std::int64_t updates);
  /// The plan of the training step for the largest shard, including the memory of partial sums. Valid until the next
  /// call.
  const Plan& plan() const;

 private:
  struct Data;
  Owner<Data> data_;
};

/// A change to a recipe: a dotted key ("optimizer.weight_decay", "hyper.n_layer") and the text of its value. The text
/// is read as JSON if possible, otherwise as a string.
struct Setting {
  std::string key;
  std::string value;
  /// Parses "key=value". Throws DefinitionError if the text has another form.
  static Setting parse(const std::string& text);
};

/// A hyper-parameter that a recipe sets, in the form of ModelOptions::hyper.
struct HyperSetting {
  std::string name;
  std::string text;
  bool from_data = false;  ///< Whether `text` refers to properties of the data: "columns + 1".
};

/// The settings of a recipe's tokenizers, which are made from the training split or from files.
struct TokenizerSettings {
  std::string kind = "character";  ///< "character", "words", "sentencepiece", "gpt2" or "saved".
  bool joint = false;              ///< For pairs: one tokenizer for both sides instead of one for each.
  CharacterTokenizer::Unknown unknown = CharacterTokenizer::Unknown::error;
  WordOptions words = {};
  std::string vocabulary = {};  ///< For "words": a file with one word per line, used instead of the training split.
  SentencePieceOptions pieces = {};
  std::string vocab, merges;  ///< For "gpt2": the two files.
  Gpt2Options gpt2 = {};
  std::string path;  ///< For "saved": the argument of load_tokenizer.
};

/// A recipe: a model, data, and training options. Its paths are absolute.
struct Recipe {
  struct Data {
    /// The files of a split, read one after the other. Each entry has one file; for pairs, it can have two parallel
    /// files. Empty if the split has no files.
    using Files = std::vector<std::vector<std::string>>;
    std::string kind;  ///< "text", "documents", "pairs", "table", "tags", "images" or "arrays".
    Files training, validation, test;
    double split = 0.9;  ///< Without validation files: the share of the training data used for training.
    /// If above 0, this many rows at the end of the training data are held out for validation. `split` then has no
    /// effect.
    std::int64_t held_out = 0;
    std::int64_t block_size = 64;  ///< For "text".
    bool consecutive = false;      ///< For "text": see TextBatches.
    DocumentEnd separator = DocumentEnd::blank_line;  ///< For "documents".
    std::string prompt_end;                           ///< For "documents": see split_prompt; may be empty.
    std::vector<Column> columns;                      ///< For "table" and "tags". Columns without a name are skipped.
    TableOptions table;                               ///< For "table" and "tags".
    ImageOptions images;                              ///< For "images".
    ImageResize resize;                               ///< For "images".
    std::int64_t channels = 3;                        ///< For "images" in folders.
    std::vector<ArrayInput> inputs;                   ///< For "arrays". Empty: all arrays of the file.
    CsvOptions csv;                                   ///< For "arrays" in CSV files.
    ReadOptions reading;                              ///< For all files.
    std::int64_t max_length = 0;  ///< Rows with a longer text (in tokens) are not used for training. 0: no limit.
    /// The most tokens of a row, recorded in the recipe of a run. 0: determined from the data.
    std::int64_t longest_row = 0;
    /// If a run has a kind of data that no longer exists, this text is the advice for errors. Otherwise empty.
    std::string no_more;
    /// The key of the training files in a recipe: "text", "table" …. The key of the test split has the prefix "test_".
    std::string files_key() const { return kind == "documents" ? "text" : kind; }
    bool has_pairs() const { return kind == "pairs"; }
    bool has_images() const { return kind == "images"; }
    bool has_arrays() const { return kind == "arrays"; }
    bool has_tokens() const { return !has_images() && !has_arrays(); }
    bool has_rows() const { return kind != "text"; }  ///< Batches are RowBatches, ImageBatches or ArrayBatches.
    /// Whether there are reference answers for the model's answers.
    bool has_answers() const { return has_pairs() || !prompt_end.empty(); }
    bool has_epochs() const { return has_rows() || consecutive; }
  };
  std::string name;
  std::string about;
  std::string definition;  ///< May be empty with `from`. The config of the folder `from` then names the definition.
  std::string original;    ///< For a run: the file that its definition was copied from. May be empty.
  std::string from;        ///< The Hugging Face folder of the initial model. Empty: a new model.
  std::string adapter;     ///< With `from`: a folder of low-rank adapters for the model. May be empty.
  std::vector<std::string> initialise;  ///< Patterns of newly initialised weights, as for open_hugging_face.
  std::vector<HyperSetting> hyper;
  Data data;
  TokenizerSettings tokenizer;
  std::int64_t batch_size = 0;    ///< Rows. 0: determined by batch_tokens.
  std::int64_t batch_tokens = 0;  ///< RowBatchesOptions::tokens.
  std::int64_t bucket = 2;        ///< RowBatchesOptions::bucket.
  TrainerOptions trainer;         ///< Includes the seed and threads of the recipe.
  Trainer::FitOptions fit;
  /// Whether evaluations translate the validation split, or continue its prompts, to measure BLEU.
  bool measure_bleu = false;
  /// Whether evaluations measure the share of these translations or continuations that match the reference exactly.
  bool measure_exact_match = false;
  /// Updates between checkpoints. There is always a checkpoint after the last update.
  std::int64_t checkpoint_every = 0;
  bool checkpoint_epochs = false;  ///< Whether to write a checkpoint after every epoch, too.
  std::int64_t keep = 2;           ///< The number of checkpoints to keep in addition to the best. 0: all.
  SearchOptions search;            ///< The default search options of translations.

  /// Reads the recipe file that find_definition(path, "recipes") finds, and applies `settings`. Throws FileError if the
  /// file cannot be read, DefinitionError if the recipe or a setting is wrong.
  static Recipe load(const std::string& path, const std::vector<Setting>& settings = {});
  /// The recipe as JSON, with the settings applied and every path absolute.
  std::string text;
};

/// Selects a checkpoint of a run.
struct CheckpointChoice {
  enum class Kind : std::uint8_t {
    last,
    best,     ///< The checkpoint with the lowest perplexity (or loss) on the validation split.
    average,  ///< The mean of the weights of the last `count` checkpoints.
    step      ///< The checkpoint of step `count`.
  };
  Kind kind = Kind::last;
  std::int64_t count = 1;
  /// Parses "last", "best", "average:N" or the number of a step. Throws Error for any other text.
  static CheckpointChoice parse(const std::string& text);
};

/// The translations of a line.
struct Translation {
  struct Candidate {
    std::string text;
    Tokens tokens;     ///< Includes the end token, unless the text was cut at the maximum length.
    double score = 0;  ///< See Hypothesis.
    double log_probability = 0;
  };
  std::vector<Candidate> candidates;  ///< The best first. Empty if the line is empty or there is a problem.
  std::string problem;                ///< The reason if the line was not translated, otherwise empty.
};

/// The attention weights of every layer and head, with the tokens of both axes.
struct Attention {
  struct Side {
    std::string text;                 ///< "source", "target" or, in runs on single texts, "text".
    std::vector<std::string> tokens;  ///< In the form of Tokenizer::pieces.
  };
  std::string name;  ///< The name of the result of the function `attention`.
  Array weights;     ///< float32 [layers, heads, queries, keys].
  /// The tokens of the queries and keys. If queries of the target attend to the source, Side::tokens of the queries are
  /// the tokens that the model produces at these positions. Otherwise, tokens of the target are the tokens that the
  /// model reads, beginning with the start token.
  Side queries, keys;
};

/// A training run in a directory. The directory is complete except for the data: definition.json, recipe.json, the
/// tokenizers, metrics.jsonl (a JSON object per line) and checkpoints/. If the run starts from a Hugging Face folder,
/// the directory also contains the initial weights (start.safetensors) and the other files of the folder
/// (hugging_face/). Only one thread at a time may use a run.
class Run {
 public:
  /// Makes the directory with everything except metrics and checkpoints, under a temporary name, then renames and opens
  /// it. Throws FileError if the directory exists or data cannot be read, Error if the tokenizer has more tokens than
  /// the initial model, DefinitionError if recipe, definition and data do not fit together.
  ///
  /// With a `communicator`, several processes ("ranks") work on the run together. All ranks must make the same calls,
  /// and get the same results. Only rank 0 writes. The others read the run's directory and the data from their own file
  /// systems. Throws Error if the ranks differ in version, instruction set, recipe, definition or data; the message
  /// names the difference and the rank.
  static Run create(const Recipe& recipe, const std::string& directory,
                    const std::shared_ptr<Communicator>& communicator = nullptr);
  /// Opens a run with the weights of the chosen checkpoint, by default the last. Before the first checkpoint, the run
  /// has its initial weights. `settings` change the recipe for this process only. Throws FileError if there is no such
  /// run or checkpoint.
  static Run open(const std::string& directory, const std::vector<Setting>& settings = {},
                  const CheckpointChoice& checkpoint = {}, const std::shared_ptr<Communicator>& communicator = nullptr);
  /// Opens a run to continue its training, and locks it. trainer() continues from the chosen checkpoint and sets aside
  /// the checkpoints of later steps. Throws Error if the choice is an average, FileError if another process holds the
  /// lock.
  static Run resume(const std::string& directory, const std::vector<Setting>& settings = {},
                    const CheckpointChoice& checkpoint = {},
                    const std::shared_ptr<Communicator>& communicator = nullptr);

  const std::string& directory() const;
  const Recipe& recipe() const;
  Model& model();
  /// For pairs, the tokenizer of the targets. Throws Error for images and arrays, which have no tokenizer.
  const Tokenizer& tokenizer() const;
  const Tokenizer& source_tokenizer() const;  ///< For pairs, the tokenizer of the sources. Otherwise the same.
  const std::vector<std::string>& labels()
      const;                 ///< The names of labels by index, for a table, tags or arrays with labels, or images.
  const Batches& batches();  ///< The first call reads the data.
  std::int64_t columns();    ///< The most tokens of a row, which is the longest context in training.
  std::int32_t end_token() const;  ///< The token that ends rows, or -1.
  /// Returns the tokens of a text to continue. They begin with the start token if the rows do.
  Tokens prompt(const std::string& text) const;
  /// Returns the trainer. The first call makes it, continuing from the last checkpoint. Locks the run against training
  /// by other processes until train() or the process ends. Throws FileError with the name of the process if another
  /// process holds the lock.
  Trainer& trainer();

  /// Trains to the end of the recipe, and writes metrics and checkpoints. Also writes a checkpoint when it stops.
  /// Returns false if a callback stopped the training earlier. Throws TrainingError if an update fails; the last good
  /// checkpoint remains. Throws EvaluationError if an evaluation fails, after it has written a checkpoint of the
  /// preceding updates. Throws FileError if the run cannot be written, if it was moved or deleted, or if another
  /// process trains it or has continued its training.
  bool train(const Trainer::Callbacks& callbacks = {});
  /// Evaluates on the validation or test split like Trainer::evaluate, with the additional measures of the recipe. Does
  /// not plan a training step. Throws Error if there is no test split.
  Evaluation evaluate(bool on_test = false);
  /// Evaluates on other pairs, with one source and target per line. Throws Error if the run's data is not pairs, the
  /// numbers of lines differ, or no pair has text on both sides.
  Evaluation evaluate(const std::vector<std::string>& source, const std::vector<std::string>& target);
  /// Translates lines with `options`, the run's special tokens and at most the model's number of positions. Throws
  /// Error if the run's data is not pairs.
  std::vector<Translation> translate(const std::vector<std::string>& lines, const SearchOptions& options);
  /// Returns the attention weights while the model reads `source` and produces `target`. Without a target, the target
  /// is the model's translation with the recipe's search. In runs on single texts, the model only reads `source`. There
  /// is one entry per result of the model's function attention(source, tokens) or attention(tokens), float32 [layers,
  /// b, heads, queries, keys]. Throws Error if there is no such function, a result has another form, or the text is
  /// empty.
  std::vector<Attention> attention(const std::string& source, const std::optional<std::string>& target = {});
  /// Writes the model like xtape::save_hugging_face, with the other files of the folder that the run started from.
  void save_hugging_face(const std::string& folder, std::optional<Dtype> weights = std::nullopt) const;
  /// Writes the run's adapters like xtape::save_adapter. The default of `base` is the folder that the run started from.
  /// Reads the adapters back on top of this folder. Returns false if the folder no longer exists. The adapters are then
  /// not read back. Throws FileError if a file cannot be written, if the run did not start from a folder, or if the
  /// run's model has other weights or hyper-parameters than the model of the folder.
  bool save_adapter(const std::string& folder, const std::string& base = "") const;

 private:
  struct Data;
  explicit Run(std::unique_ptr<Data> data);
  Owner<Data> data_;
};

/// Runs Trainer::profile on a new model of the recipe. Writes no run. If `trace` is not null, records the updates in
/// it.
TrainingProfile profile(const Recipe& recipe, std::int64_t updates, const std::shared_ptr<Trace>& trace = nullptr);
/// Runs Trainer::next_play on a new model of the recipe. Writes no run.
RecordedPlay first_play(const Recipe& recipe);

/// Evaluates `model` on the whole validation split of `batches`. Throws Error if no target counts. Throws
/// EvaluationError if a loss or carried state is not finite or a call throws; the error names the op and its line.
Evaluation evaluate(Model& model, const Batches& batches);

/// Cuts a text that is longer than the model's context into windows of `context` >= 2 tokens. Each window starts
/// `stride` tokens (1 to context) after the previous one. Predictions after the first window then have at least context
/// - stride tokens of context. (In Hugging Face's documentation: perplexity of fixed-length models.)
struct TextWindows {
  std::int64_t context = 1024;
  std::int64_t stride = 512;
};
struct TextEvaluation {
  std::int64_t tokens = 0;  ///< Each token except the first is a target, in the first window that predicts it.
  double loss = 0;  ///< The mean negative log-likelihood of the targets in nats. Its exponential is the perplexity.
};
/// Measures how well a language model predicts `tokens`. Uses the function `plain_loss`(tokens, targets) of the model,
/// or `loss` if there is no `plain_loss`. If stride = context, the first token of each window is neither predicted nor
/// counted. The ranks of `communicator` divide the windows. All ranks return the same result as one process. Throws
/// Error if an option is out of range or there are fewer than 2 tokens.
TextEvaluation evaluate_text(Model& model, const Tokens& tokens, const TextWindows& options,
                             const std::shared_ptr<Communicator>& communicator = nullptr);

/// Returns the mean loss of `model` over `count` batches of random validation rows, a measure that papers often report.
/// Throws Error if count < 1.
double sampled_loss(Model& model, const Batches& batches, std::int64_t count);

}  // namespace xtape
