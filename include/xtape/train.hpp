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

/// How a training keeps its rows private. It is then (epsilon, delta)-differentially private for each row of the
/// training split: DP-SGD (Abadi et al., 2016, Deep learning with differential privacy), with epsilon as
/// PrivacyAccountant counts it. Without any of these numbers, the training is not private.
struct PrivacyOptions {
  double clip_norm = 0;         ///< To which the gradient of each row's mean loss is clipped; above 0.
  double noise_multiplier = 0;  ///< The noise on sums of clipped gradients has this times clip_norm as deviation.
  double delta = 0;             ///< Above 0 and below 1; far below 1 / rows.
};

/// The report of an update.
struct StepReport {
  std::int64_t step = 0;    ///< The number of updates, this one included.
  /// The mean over the counted targets of all micro-batches, before the update. NaN if a private update has no row.
  double loss = 0;
  double rate = 0;          ///< The learning rate.
  double norm = 0;          ///< The global norm of the gradient of that mean, before clipping.
  std::int64_t tokens = 0;  ///< Counted targets.
  double seconds = 0;       ///< Wall time of the update.
  double waiting = 0;       ///< The part of these seconds that was spent waiting for other ranks.
};

/// The results of an evaluation.
struct Evaluation {
  std::int64_t step = 0;              ///< Updates made before it.
  double loss = 0;                    ///< The mean over all targets of the split, each counted once, in nats.
  std::int64_t tokens = 0;            ///< The number of these targets.
  std::optional<double> perplexity;   ///< exp of the mean of the function `plain_loss`, if the model has it.
  std::optional<double> accuracy;     ///< The share of targets that are the most likely token, by `accuracy`.
  std::optional<double> exact_match;  ///< The share of greedy answers that are exactly right, if the recipe asks …
  std::int64_t questions = 0;         ///< … and the number of these answers.
  std::optional<double> bleu;         ///< The BLEU of greedy answers, if the recipe asks for it.
  std::optional<double> epsilon;      ///< For all updates so far, if the training is private.
};

/// What a module returns in a play, and the gradient of the mean loss by it; of absolute values. A number that the
/// module has nothing for is empty.
struct ModuleStatistics {
  std::string module;            ///< "h.0.attn".
  double largest = 0, mean = 0;  ///< For the first result of floats.
  double zeros = 0;              ///< The share of its elements that are 0.
  std::optional<double> gradient_largest, gradient_mean, gradient_zeros;
  std::optional<double> saturated;    ///< The share of results of its own tanh and sigmoid beyond 0.99 of the range.
  std::optional<double> masked_rows;  ///< The share of rows of its own softmax in which all is masked.
};
/// A value inside a training step.
struct WatchedValue {
  std::string name;  ///< "h.0.attn.scores", as Model::record names it.
  std::string type;
  Range range;
};

/// How far an update is that consists of several plays: of micro-batches and shards.
struct UpdatePart {
  std::int64_t step = 0;   ///< The number of the update, from 1.
  std::int64_t plays = 0;  ///< So many plays are done, on this rank …
  std::int64_t all = 0;    ///< … of about so many: shards without rows are not played.
};

/// How a Trainer trains.
struct TrainerOptions {
  OptimizerOptions optimizer;  ///< For weights that no group matches.
  ScheduleOptions schedule;
  /// Micro-batches per update, which equals an update on all of them at once: 1 to 1,048,576.
  std::int64_t accumulate = 1;
  /// Into how many parts the rows of a batch are cut. The parts are summed in one order, so that the bits depend on
  /// `shards` and not on who computes which of them. Each draws its own random numbers.
  std::int64_t shards = 1;
  /// The other processes ("ranks") that train with this one; null: none. All of them make the same calls with the same
  /// model, batches and options, and get the same results. There are at most as many ranks as shards.
  std::shared_ptr<Communicator> communicator;
  Precision precision = Precision::float32;  ///< For products, in updates; weights and moments stay float32.
  double clip = 0;                           ///< The global norm to which gradients are clipped; 0: no clipping.
  /// Needs batches that are draws of rows (Batches::draws), of `accumulate` batches each. Losses of updates are then
  /// means over rows, each with its mean loss, and gradients are divided by the expected number of rows.
  PrivacyOptions privacy = {};
  std::uint64_t seed = 0;                    ///< Determines the random ops.
  int threads = 0;                           ///< 0: omp_get_max_threads().
  bool profile = false;                      ///< Measures the time of every op, for Trainer::profile.
  /// The most bytes that the process may have resident, with everything that it holds already; 0: any number. Updates
  /// and evaluations then compute values again instead of keeping them (PlayerOptions::memory), with the same bits.
  std::size_t memory = 0;
  std::shared_ptr<Trace> trace = {};  ///< Not null: Trainer::profile records the updates that it measures in it.
  /// The folders to which a failed update or evaluation writes a capsule, and the play that fails as a whole
  /// (inspect.hpp); "": none.
  std::string capsule, failed_play;
  /// Patterns of weight names, in which `*` matches anything; at most one of the lists may be given. Weights that match
  /// `frozen`, or do not match `trainable`, stay unchanged: they have no gradients and no moments.
  std::vector<std::string> frozen, trainable;
  /// Weights that are updated in other ways than by `optimizer`: the first group that matches a weight decides. Their
  /// rates are factors of the schedule's. All weights have one global norm.
  std::vector<OptimizerGroup> groups = {};
};

/// A training or evaluation that cannot continue: a number that is not finite, or an update without targets.
class TrainingError : public Error {
 public:
  using Error::Error;
};
/// An evaluation whose results are not finite, or in which a call throws. The updates before it are good.
class EvaluationError : public TrainingError {
 public:
  using TrainingError::TrainingError;
};

/// Trains a model: plays the gradients of its function `loss`, which returns (sum of losses, count of targets), and
/// updates the weights. For one thread at a time; no other thread may use the model meanwhile.
///
/// An input of `loss` whose name is also that of a result is a carried state. It starts with the previous batch's
/// result if the rows continue (Batches::training_continues), else with zeros; no gradient flows into the previous
/// batch (truncated back-propagation through time: Williams and Peng, 1990). The same holds for evaluations.
class Trainer {
 public:
  /// `model` and `batches` must outlive the trainer. Records and plans the training step for the largest batch; steps
  /// for other shapes follow when they occur. Throws DefinitionError if `loss` does not take the batches' arrays or
  /// depends on no trained weight, a state changes its type, or a pattern matches no weight, and Error for options out
  /// of range, also for a private training with carried states, Precision::bf16 or batches that are not such draws.
  Trainer(Model& model, const Batches& batches, const TrainerOptions& options);

  std::int64_t step() const;     ///< The number of updates so far.
  const Store& trained() const;  ///< The weights that are not frozen.
  /// The names of the trained weights that never change, because the loss does not depend on them differentiably.
  std::vector<std::string> without_gradient() const;
  /// Makes one update. Throws TrainingError if the loss, a carried state or the gradients are not finite, which names
  /// the first op at fault and its line in the definition, if a weight or moment would overflow, or if no target
  /// counts; weights, moments and states are then unchanged.
  StepReport update();
  /// The first play of the next update: the sum of the losses, the count of targets, further results and the gradients
  /// of the sum, of the first micro-batch and shard.
  RecordedPlay next_play();
  /// Statistics of every module that is applied outside scans and checkpoints, in the first play of the next update, in
  /// the order of the definition. Plays it once more, without effect on the training.
  std::vector<ModuleStatistics> statistics();
  /// The same for values named as Model::record does. Throws DefinitionError, with the nearest name, if there is no
  /// such value.
  std::vector<WatchedValue> watched(const std::vector<std::string>& names);
  /// Evaluates on the whole validation split, in mode eval. Throws Error if no target counts, and EvaluationError,
  /// which names the op and its line as update() does, if a loss or carried state is not finite or a call throws; with
  /// several ranks, all throw it.
  Evaluation evaluate();

  /// With several ranks, true from `stop`, `save` or `interrupt` on one of them counts for all.
  struct Callbacks {
    std::function<void(const StepReport&)> step;        ///< After every update.
    std::function<void(const UpdatePart&)> part;        ///< After every play of an update but the last.
    std::function<void(const Evaluation&)> evaluation;  ///< After every evaluation.
    /// Before updates, on rank 0: what FitOptions::statistics_every and watch_every ask for, with the update's number.
    std::function<void(std::int64_t step, const std::vector<ModuleStatistics>&)> statistics;
    std::function<void(std::int64_t step, const std::vector<WatchedValue>&)> watched;
    std::function<bool()> stop;  ///< Called after every update and its evaluation; returning true ends the training.
    std::function<bool()> save;  ///< For Run::train: called after every update; returning true writes a checkpoint.
    /// Also called within updates and evaluations, between plays; returning true ends the training at once. An
    /// unfinished update has no effect; an unfinished evaluation is made again when the training continues.
    std::function<bool()> interrupt;
    /// For Run::train: called with a sentence about something that went wrong and does no harm, such as an old
    /// checkpoint that cannot be removed.
    std::function<void(const std::string& sentence)> warning;
  };
  struct FitOptions {
    std::int64_t steps = 0;           ///< The most updates in total, also counting those before a resume. 0: no limit.
    std::int64_t epochs = 0;          ///< The most epochs. 0: no limit.
    std::int64_t evaluate_every = 0;  ///< Updates between evaluations. There is always one after the last update.
    bool evaluate_epochs = false;     ///< Also evaluate after every epoch.
    std::int64_t patience = 0;        ///< Stop after so many evaluations in a row without a better loss. 0: never.
    std::int64_t statistics_every = 0;    ///< Updates between statistics, from the first on. 0: none.
    std::int64_t watch_every = 1;         ///< Updates between reports of watched values, from the first on.
    std::vector<std::string> watch = {};  ///< Their names, as for `watched`. An update that fails is observed too.
  };
  /// Trains until a limit of the options is reached. Returns false if `stop` or `interrupt` ended it before that.
  /// Throws Error if a number is negative, steps and epochs are both 0, or epochs are asked for and the data has none;
  /// and as update() and evaluate().
  bool fit(const FitOptions& options, const Callbacks& callbacks = {});
  std::int64_t epoch() const;  ///< The number of complete epochs; 0 if the data has none.
  /// The step of the evaluation with the lowest perplexity (without one: loss) so far; -1 before the first.
  std::int64_t best_step() const;
  std::int64_t evaluated_step() const;  ///< The step of the last evaluation; -1 before the first.

  /// On rank 0 writes a checkpoint to the directory `path`: weights.safetensors, optimizer.safetensors, state.json and,
  /// if the next batch continues from carried states, carried.safetensors. They are written to a new directory, flushed
  /// to disk, and renamed, replacing what is there. Throws FileError, also if the parent directory is missing.
  void save(const std::string& path) const;
  /// Continues from a checkpoint: the following updates are bit for bit those of the run that wrote it. If the number
  /// of batches per epoch has changed, the current epoch starts again. Throws FileError if it is not a checkpoint, or
  /// one of another model, optimiser or seed, or of updates with another privacy; then nothing has changed.
  void load(const std::string& path);

  /// Makes `updates` updates twice on the same batches, first to plan and warm up, then to measure. Throws Error if
  /// TrainerOptions::profile is not set or updates < 1, and as update().
  TrainingProfile profile(std::int64_t updates);
  /// The plan of the training step for the largest shard, with the memory of partial sums. Valid until the next call.
  const Plan& plan() const;

 private:
  struct Data;
  Owner<Data> data_;
};

/// A change to a recipe: a dotted key ("optimizer.weight_decay", "hyper.n_layer") and the text of its value, read as
/// JSON if possible, else as a string.
struct Setting {
  std::string key;
  std::string value;
  /// From "key=value". Throws DefinitionError for other forms.
  static Setting parse(const std::string& text);
};

/// A hyper-parameter that a recipe sets, as ModelOptions::hyper.
struct HyperSetting {
  std::string name;
  std::string text;
  bool from_data = false;  ///< Whether `text` is over properties of the data: "columns + 1".
};

/// How the tokenizers of a recipe are made, from the training split or from files.
struct TokenizerSettings {
  std::string kind = "character";  ///< "character", "words", "sentencepiece", "gpt2" or "saved".
  bool joint = false;              ///< For pairs: one tokenizer for both sides, not one each.
  CharacterTokenizer::Unknown unknown = CharacterTokenizer::Unknown::error;
  WordOptions words;
  std::string vocabulary;  ///< For "words": a file of them, one per line, instead of the training split.
  SentencePieceOptions pieces;
  std::string vocab, merges;  ///< For "gpt2": its two files.
  Gpt2Options gpt2;
  std::string path;  ///< For "saved": the argument of load_tokenizer.
};

/// A recipe: a model, data, and how to train. Its paths are absolute.
struct Recipe {
  struct Data {
    /// The files of a split, read one after the other: each entry has one file, or for pairs one or two parallel ones.
    /// Empty if the split has none.
    using Files = std::vector<std::vector<std::string>>;
    std::string kind;  ///< "text", "documents", "pairs", "table", "tags", "images" or "arrays".
    Files training, validation, test;
    double split = 0.9;            ///< Without validation files: the share of the training data that trains …
    std::int64_t held_out = 0;     ///< … or, if above 0, the number of last rows that do not.
    std::int64_t block_size = 64;  ///< For "text".
    bool consecutive = false;      ///< For "text": see TextBatches.
    DocumentEnd separator = DocumentEnd::blank_line;  ///< For "documents".
    std::string prompt_end;                           ///< For "documents": see split_prompt; may be empty.
    std::vector<Column> columns;                      ///< For "table" and "tags"; those without a name are skipped.
    TableOptions table;                               ///< For "table" and "tags".
    ImageOptions images;                              ///< For "images".
    ImageResize resize;                               ///< For "images".
    std::int64_t channels = 3;                        ///< For "images" in folders.
    std::vector<ArrayInput> inputs;                   ///< For "arrays"; empty: all arrays of the file.
    CsvOptions csv;                                   ///< For "arrays" in files of comma-separated values.
    ReadOptions reading;                              ///< For all files.
    std::int64_t max_length = 0;                      ///< Rows with a text of more tokens do not train; 0: all do.
    /// The most tokens of a row, recorded in a run's recipe; 0: found in the data.
    std::int64_t longest_row = 0;
    /// For runs with a kind of data that no longer exists: what to do instead, for errors. Else empty.
    std::string no_more;
    /// The key of the training files: "text", "table" …; "test_" before it is that of the test split.
    std::string files_key() const { return kind == "documents" ? "text" : kind; }
    bool has_pairs() const { return kind == "pairs"; }
    bool has_images() const { return kind == "images"; }
    bool has_arrays() const { return kind == "arrays"; }
    bool has_tokens() const { return !has_images() && !has_arrays(); }
    bool has_rows() const { return kind != "text"; }  ///< Batches are RowBatches, ImageBatches or ArrayBatches.
    bool has_answers() const { return has_pairs() || !prompt_end.empty(); }  ///< To compare a model's answers with.
    bool has_epochs() const { return has_rows() || consecutive; }
  };
  std::string name;
  std::string about;
  std::string definition;               ///< May be empty with `from`: then the folder's config names it.
  std::string original;                 ///< For a run: the file that its definition was copied from; may be empty.
  std::string from;                     ///< A Hugging Face folder whose model the run starts from; empty: a new model.
  std::string adapter;                  ///< With `from`: a folder of low-rank adapters for it; may be empty.
  std::vector<std::string> initialise;  ///< Patterns of weights that are new, as for open_hugging_face.
  std::vector<HyperSetting> hyper;
  Data data;
  TokenizerSettings tokenizer;
  std::int64_t batch_size = 0;    ///< Rows; 0: by batch_tokens.
  std::int64_t batch_tokens = 0;  ///< RowBatchesOptions::tokens.
  std::int64_t bucket = 2;        ///< RowBatchesOptions::bucket.
  TrainerOptions trainer;         ///< Includes the seed and threads of the recipe.
  Trainer::FitOptions fit;
  bool measure_bleu = false;          ///< Evaluations translate the validation split, or continue its prompts …
  bool measure_exact_match = false;   ///< … to measure BLEU, or the share of exactly right answers.
  std::int64_t checkpoint_every = 0;  ///< Updates between checkpoints. There is always one after the last update.
  bool checkpoint_epochs = false;     ///< Also a checkpoint after every epoch.
  std::int64_t keep = 2;              ///< Checkpoints to keep in addition to the best; 0: all.
  SearchOptions search;               ///< How translations are searched for by default.

  /// Reads a recipe file, found by find_definition(path, "recipes"), and applies `settings`. Throws FileError if it
  /// cannot be read, DefinitionError if it or a setting is wrong.
  static Recipe load(const std::string& path, const std::vector<Setting>& settings = {});
  /// The recipe as JSON, with the settings applied and every path absolute.
  std::string text;
};

/// Selects a checkpoint of a run.
struct CheckpointChoice {
  enum class Kind : std::uint8_t {
    last,
    best,     ///< With the lowest perplexity (or loss) on the validation split.
    average,  ///< The mean of the weights of the last `count` checkpoints.
    step      ///< That of step `count`.
  };
  Kind kind = Kind::last;
  std::int64_t count = 1;
  /// From "last", "best", "average:N" or the number of a step. Throws Error for anything else.
  static CheckpointChoice parse(const std::string& text);
};

/// The translations of a line.
struct Translation {
  struct Candidate {
    std::string text;
    Tokens tokens;     ///< With the end token, unless it was cut at the maximum length.
    double score = 0;  ///< See Hypothesis.
    double log_probability = 0;
  };
  std::vector<Candidate> candidates;  ///< The best first; none for an empty line or if there is a problem.
  std::string problem;                ///< Why the line was not translated; else empty.
};

/// The attention weights of every layer and head, with the tokens of both axes.
struct Attention {
  struct Side {
    std::string text;                 ///< "source", "target" or, in runs on single texts, "text".
    std::vector<std::string> tokens;  ///< As Tokenizer::pieces.
  };
  std::string name;  ///< The name of the result of the function `attention`.
  Array weights;     ///< float32 [layers, heads, queries, keys].
  /// The tokens that attend, and those attended to. Target queries that attend to the source are labelled with the
  /// tokens that the model produces there; elsewhere, the target has the tokens that it reads, the start token first.
  Side queries, keys;
};

/// A training run in a directory that is complete except for the data: definition.json, recipe.json, the tokenizers,
/// metrics.jsonl (a JSON object per line) and checkpoints/; if it starts from a Hugging Face folder, also the initial
/// weights, start.safetensors, and the folder's other files, hugging_face/. For one thread at a time.
class Run {
 public:
  /// With a `communicator`, several processes ("ranks") work on the run together: all of them make the same calls, and
  /// all results are the same on every rank. Rank 0 alone writes. The others read the run's directory and the data from
  /// their own file systems. Throws Error, which says what differs and where, unless all ranks have the same version,
  /// instruction set, recipe, definition and data.
  ///
  /// Makes the directory and everything in it except metrics and checkpoints, under a temporary name, then renames and
  /// opens it. Throws FileError if it exists or data cannot be read, Error if the tokenizer has more tokens than the
  /// model that it starts from, DefinitionError if recipe, definition and data do not fit together.
  static Run create(const Recipe& recipe, const std::string& directory,
                    const std::shared_ptr<Communicator>& communicator = nullptr);
  /// Opens a run with the weights of its last checkpoint (before the first, the initial weights) or of the chosen one.
  /// `settings` change its recipe for this process only. Throws FileError if there is no such run or checkpoint.
  static Run open(const std::string& directory, const std::vector<Setting>& settings = {},
                  const CheckpointChoice& checkpoint = {}, const std::shared_ptr<Communicator>& communicator = nullptr);
  /// The same, to train the run further: locks it, and trainer() continues from the chosen checkpoint and sets aside
  /// those of later steps. Throws Error for an average, and FileError if another process holds the lock.
  static Run resume(const std::string& directory, const std::vector<Setting>& settings = {},
                    const CheckpointChoice& checkpoint = {},
                    const std::shared_ptr<Communicator>& communicator = nullptr);

  const std::string& directory() const;
  const Recipe& recipe() const;
  Model& model();
  /// For pairs, that of targets. Throws Error for images and arrays, which have none.
  const Tokenizer& tokenizer() const;
  const Tokenizer& source_tokenizer() const;       ///< For pairs, that of sources; else the same.
  const std::vector<std::string>& labels()
      const;  ///< For a table, tags or arrays with labels, or images: their names by index.
  const Batches& batches();                        ///< Read from the data at the first call.
  std::int64_t columns();          ///< The most tokens of a row: the most that the model has seen at once.
  std::int32_t end_token() const;  ///< The token that ends rows, or -1.
  /// The tokens of a text to continue, after the start token if rows begin with one.
  Tokens prompt(const std::string& text) const;
  /// The trainer, made at the first call, continuing from the last checkpoint. Locks the run against training by other
  /// processes until train() or the process ends. Throws FileError, which names the process, if another one holds the
  /// lock.
  Trainer& trainer();

  /// Trains to the end of the recipe, writing metrics and checkpoints, the last one when it stops. Returns false if a
  /// callback stopped it before. Throws TrainingError if an update fails; the last good checkpoint remains. Throws
  /// EvaluationError if an evaluation fails, after writing a checkpoint of the updates before it. Throws FileError if
  /// the run cannot be written, has been moved or deleted, or another process trains it or has trained it further.
  bool train(const Trainer::Callbacks& callbacks = {});
  /// As Trainer::evaluate, with the recipe's other measures and without planning a training step, on the validation or
  /// the test split. Throws Error if there is no test split.
  Evaluation evaluate(bool on_test = false);
  /// The same on other pairs, one source and target per line. Throws Error if the run's data is not pairs, the numbers
  /// of lines differ, or no pair has text on both sides.
  Evaluation evaluate(const std::vector<std::string>& source, const std::vector<std::string>& target);
  /// Translates lines by `options`, with the run's special tokens and at most the model's positions. Throws Error if
  /// the run's data is not pairs.
  std::vector<Translation> translate(const std::vector<std::string>& lines, const SearchOptions& options);
  /// The attention weights while the model reads `source` and produces `target`; without a target, its own translation
  /// by the recipe's search; in runs on single texts, while it reads `source`. One for each result of the model's
  /// function attention(source, tokens) or attention(tokens), float32 [layers, b, heads, queries, keys]. Throws Error
  /// if there is no such function, a result has another form, or the text is empty.
  std::vector<Attention> attention(const std::string& source, const std::optional<std::string>& target = {});
  /// Writes the model as xtape::save_hugging_face does, with the other files of the folder that the run started from.
  void save_hugging_face(const std::string& folder, std::optional<Dtype> weights = std::nullopt) const;
  /// Writes the run's adapters as xtape::save_adapter does; without `base`, it is the folder that the run started from.
  /// Throws also FileError if the run did not start from a folder or has changed other weights of it.
  void save_adapter(const std::string& folder, const std::string& base = "") const;

 private:
  struct Data;
  explicit Run(std::unique_ptr<Data> data);
  Owner<Data> data_;
};

/// Trainer::profile of a new model of the recipe; writes no run. Records the updates in `trace`, unless it is null.
TrainingProfile profile(const Recipe& recipe, std::int64_t updates, const std::shared_ptr<Trace>& trace = nullptr);
/// Trainer::next_play of a new model of the recipe; writes no run.
RecordedPlay first_play(const Recipe& recipe);

/// Evaluates `model` on the whole validation split of `batches`. Throws Error if no target counts, and
/// EvaluationError, which names the op and its line, if a loss or carried state is not finite or a call throws.
Evaluation evaluate(Model& model, const Batches& batches);

/// How to cut a text that is longer than a model's context: windows of `context` >= 2 tokens, each starting `stride`
/// tokens (1 to context) after the previous one, so that predictions after the first window have at least context -
/// stride tokens before them. (In Hugging Face's documentation: perplexity of fixed-length models.)
struct TextWindows {
  std::int64_t context = 1024;
  std::int64_t stride = 512;
};
struct TextEvaluation {
  std::int64_t tokens = 0;  ///< Targets: each token except the first, in the first window that predicts it.
  double loss = 0;          ///< Their mean negative log-likelihood in nats; exp of it is the perplexity.
};
/// Measures how well a language model predicts `tokens`, by its function `plain_loss`, or else `loss`, of (tokens,
/// targets). If stride = context, the first token of each window is neither predicted nor counted. Throws Error if an
/// option is out of range or there are fewer than 2 tokens. The ranks of `communicator` share the windows, and all get
/// the result of one process.
TextEvaluation evaluate_text(Model& model, const Tokens& tokens, const TextWindows& options,
                             const std::shared_ptr<Communicator>& communicator = nullptr);

/// The mean loss of `model` over `count` batches of random validation rows, as papers often report it. Throws Error if
/// count < 1.
double sampled_loss(Model& model, const Batches& batches, std::int64_t count);

}  // namespace xtape
