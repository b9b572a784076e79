/// Training: recipes, the trainer, checkpoints, and run directories. docs/recipes.md describes the files.
#pragma once

#if defined(XTAPE_LAYER) && XTAPE_LAYER < 9
#error "this layer of xtape may not see the train layer"
#endif

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "xtape/decode.hpp"
#include "xtape/model.hpp"
#include "xtape/optim.hpp"
#include "xtape/text.hpp"
#include "xtape/tokenizers.hpp"

namespace xtape {

/// What happened in one update.
struct StepReport {
  std::int64_t step = 0;    ///< Updates made so far, this one included.
  double loss = 0;          ///< Mean over the counted targets of all its micro-batches, before the update.
  double rate = 0;          ///< The learning rate.
  double norm = 0;          ///< The global norm of the gradients, before clipping.
  std::int64_t tokens = 0;  ///< Counted targets.
  double seconds = 0;       ///< Wall time of the update.
};

/// What an evaluation found.
struct Evaluation {
  std::int64_t step = 0;
  double loss = 0;                    ///< Mean over every target of the validation split, each counted once.
  std::int64_t tokens = 0;            ///< How many those are.
  std::optional<double> perplexity;   ///< exp of the mean of `plain_loss`, where the model has that function.
  std::optional<double> accuracy;     ///< The share of targets that are the most likely token, by `accuracy`.
  std::optional<double> exact_match;  ///< The share of greedy answers that are exactly right, where the recipe asks …
  std::int64_t questions = 0;         ///< … and how many answers those are.
  std::optional<double> bleu;         ///< Of greedy answers, where the recipe asks for it.
};

struct TrainerOptions {
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  std::int64_t accumulate = 1;  ///< Micro-batches an update; it equals one update on all of them together.
  double clip = 0;              ///< The global norm that gradients are cut down to; 0: never.
  std::uint64_t seed = 0;       ///< Of the random ops.
  int threads = 0;              ///< 0: as many as OpenMP would take.
  bool profile = false;         ///< Measures every op: see Trainer::profile.
  /// Patterns of weights, of which at most one list is given; `*` stands for anything. The weights that match `frozen`,
  /// or do not match `trainable`, stay as they are: they have no gradients and no moments, and nothing is computed for
  /// them.
  std::vector<std::string> frozen, trainable;
};

/// Where the time of updates went.
struct TrainingProfile {
  /// What a step of a plan did in all its plays.
  struct Step {
    std::string
        op;  ///< Fused elementwise ops with "+" between them; "copy": elements were moved, and nothing was computed.
    std::string
        module;  ///< The path of the module that it belongs to, or whose gradient it belongs to; "" outside modules.
    std::int64_t calls = 0;
    double seconds = 0;
    double flops = 0;  ///< As Plan::Step has them, of all calls; so are the bytes.
    double bytes = 0;
  };
  std::vector<Step> steps;
  std::vector<Plan::Fusion> fusions;  ///< The rules of the plan that was played most.
  std::int64_t updates = 0;
  double seconds = 0;            ///< Wall time of all updates; of these …
  double batch_seconds = 0;      ///< … making batches, and …
  double optimizer_seconds = 0;  ///< … changing the weights, clipping included.
};

/// A training that cannot go on: a loss or gradient that is not finite, an update without targets.
class TrainingError : public Error {
 public:
  using Error::Error;
};

/// Trains a model: plays the gradients of its function `loss`, which must give (sum, count), and updates its weights.
///
/// An input of `loss` that is also a result, by name, is a carried state. It begins with what the batch before left in
/// it where the data says that the rows go on (Batches::training_continues), else with zeros; no gradient goes back
/// into the batch before (truncated back-propagation through time: Williams and Peng, 1990). Evaluations do the same.
class Trainer {
 public:
  /// Both must outlive the trainer. Records and plans the training step for the largest batch, those for other shapes
  /// when they come; throws DefinitionError where the model's `loss` does not take the batches' arrays, or a
  /// state does not keep its type.
  Trainer(Model& model, const Batches& batches, const TrainerOptions& options);
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;
  ~Trainer();

  std::int64_t step() const;     ///< Updates made so far.
  const Store& trained() const;  ///< The weights that are not frozen.
  /// Makes one update. Throws TrainingError, and leaves weights, moments and states as they were, where the loss or the
  /// gradients are not finite; the message names the first op at fault and its line in the definition.
  StepReport update();
  /// The loss over the whole validation split, in mode eval.
  Evaluation evaluate();
  /// The mean loss over `count` batches of random validation rows: what papers often report.
  double sampled_loss(std::int64_t count);

  struct Callbacks {
    std::function<void(const StepReport&)> step;        ///< After every update.
    std::function<void(const Evaluation&)> evaluation;  ///< After every evaluation.
    std::function<bool()> stop;  ///< Asked after every update and its evaluation: true ends it early.
    /// Asked within updates and evaluations too, between what they play: true ends it at once. The update that was
    /// begun is as if it never was; an evaluation is made when the training goes on.
    std::function<bool()> interrupt;
  };
  struct FitOptions {
    std::int64_t steps = 0;           ///< The most updates in all, those before a resume included. 0: no limit …
    std::int64_t epochs = 0;          ///< … but this many times through the training split. 0: no limit.
    std::int64_t evaluate_every = 0;  ///< Updates between evaluations; one more comes after the last. 0: only that one.
    bool evaluate_epochs = false;     ///< An evaluation after every epoch.
    std::int64_t patience = 0;        ///< Evaluations in a row without a better loss that end the training. 0: none do.
  };
  /// Updates until the options say that it is enough. Returns whether it got there: false where `stop` or `interrupt`
  /// ended it.
  bool fit(const FitOptions& options, const Callbacks& callbacks = {});
  std::int64_t epoch() const;  ///< How often the training split has been gone through.
  /// The step of the evaluation with the lowest loss (perplexity, where there is one) so far; -1 before the first.
  std::int64_t best_step() const;
  std::int64_t evaluated_step() const;  ///< The step of the last evaluation; -1 before the first.

  /// Writes a checkpoint to the directory `path`: weights.safetensors, optimizer.safetensors, state.json and, where the
  /// next batch goes on from carried states, carried.safetensors; written beside it, flushed to the disk, then renamed
  /// to it. Throws FileError where the folder above is missing.
  void save(const std::string& path) const;
  /// Continues from a checkpoint: the updates that follow are, to the bit, those of the run that wrote it. Where an
  /// epoch has another number of batches now, the one that was begun starts again. Throws FileError where it is not one
  /// or not of this model, and then nothing has changed.
  void load(const std::string& path);

  /// Makes `updates` updates twice on the same batches, the first time to plan and to warm up, and says where the time
  /// of the second went. Throws Error where TrainerOptions::profile was not set, and what update() throws.
  TrainingProfile profile(std::int64_t updates);
  /// What the training step on the largest batch will hold in memory. The reference is good until the next update.
  const Plan& plan() const;

 private:
  struct Data;
  std::unique_ptr<Data> data_;
};

/// A change to a recipe: a dotted key ("optimizer.weight_decay", "hyper.n_layer") and the text of its value, read as
/// JSON where it is JSON, else as a string.
struct Setting {
  std::string key;
  std::string value;
  /// From "key=value"; throws DefinitionError where it is not of that form.
  static Setting parse(const std::string& text);
};

/// A hyper-parameter that a recipe sets: the text of an expression, as ModelOptions takes it.
struct HyperSetting {
  std::string name;
  std::string text;
  bool from_data = false;  ///< The expression is over what the data says: "vocabulary", "columns + 1".
};

/// How a recipe's tokenizers are made, from the training split alone or from files.
struct TokenizerSettings {
  std::string kind = "character";  ///< "character", "words", "sentencepiece", "gpt2" or "saved".
  bool joint = false;              ///< Of pairs: one for both sides. Else one a side.
  CharacterTokenizer::Unknown unknown = CharacterTokenizer::Unknown::error;
  WordOptions words;
  std::string vocabulary;  ///< Of words: a file to take them from, one a line, in place of the training split.
  SentencePieceOptions pieces;
  std::string vocab, merges;  ///< Of gpt2: its two files.
  Gpt2Options gpt2;
  std::string path;  ///< Of "saved": what load_tokenizer reads.
};

/// A recipe: how to train. Paths are absolute once it is loaded.
struct Recipe {
  struct Data {
    /// The files of a part: one, or of pairs two parallel ones. Of a part that has none, empty.
    using Files = std::vector<std::string>;
    std::string kind;  ///< "text", "documents", "pairs" or "table".
    Files training, validation, test;
    double split = 0.9;            ///< Without validation files: the first so many of the training ones train …
    std::int64_t held_out = 0;     ///< … or, above 0, all but so many last rows.
    std::int64_t block_size = 64;  ///< Of "text".
    bool consecutive = false;      ///< Of "text": rows go on from batch to batch. See TextBatches.
    DocumentEnd separator = DocumentEnd::blank_line;  ///< Of "documents".
    std::string prompt_end;                           ///< Of "documents": see split_prompt; empty: all are targets.
    std::vector<Column> columns;                      ///< Of "table"; those without a name are not read.
    TableOptions table;                               ///< Of "table".
    std::int64_t max_length = 0;                      ///< Rows with more tokens (in a text) do not train; 0: all do.
    /// The most tokens of a row, where a run's recipe says so; 0: to be seen in the data.
    std::int64_t longest_row = 0;
    /// The kind that is no more, of runs whose data the program made itself, and how to go on; else empty.
    std::string no_more;
    bool has_pairs() const { return kind == "pairs"; }
    bool has_rows() const { return kind != "text"; }                         ///< See RowBatches.
    bool has_answers() const { return has_pairs() || !prompt_end.empty(); }  ///< That a model's can be compared with.
    bool has_epochs() const { return has_rows() || consecutive; }
  };
  std::string name;
  std::string about;
  std::string definition;  ///< May be empty with `from`: then the folder's config says which.
  std::string from;        ///< A folder whose model the run starts from (xtape/hugging_face.hpp); empty: a new model.
  std::vector<std::string>
      initialise;  ///< Patterns of weights that the folder may lack: they begin as the definition says.
  std::vector<HyperSetting> hyper;
  Data data;
  TokenizerSettings tokenizer;
  std::int64_t batch_size = 0;    ///< Rows; 0 where `batch_tokens` says how many.
  std::int64_t batch_tokens = 0;  ///< Of rows: tokens (of a text) in a batch, padding included.
  std::int64_t bucket = 2;        ///< Of rows: see RowBatchesOptions.
  TrainerOptions trainer;         ///< The seed and threads of the recipe are in here.
  Trainer::FitOptions fit;
  bool measure_bleu = false;          ///< Evaluations translate the validation split, or go on from its prompts …
  bool measure_exact_match = false;   ///< … and measure BLEU, or how many answers are just the right ones.
  std::int64_t checkpoint_every = 0;  ///< Updates between checkpoints; one more after the last. 0: only after the last.
  bool checkpoint_epochs = false;     ///< A checkpoint after every epoch.
  std::int64_t keep = 2;              ///< Checkpoints that are kept, besides the best; 0: all.
  SearchOptions search;               ///< How translations are searched for, unless the caller says otherwise.

  /// Reads a recipe file (found as definitions are, in the sub-folder "recipes"), with `settings` applied to it. Throws
  /// FileError where it cannot be read and DefinitionError where it is wrong.
  static Recipe load(const std::string& path, const std::vector<Setting>& settings = {});
  /// The recipe as JSON, with the settings applied and every path absolute.
  std::string text;
};

/// Which of a run's checkpoints is meant.
struct CheckpointChoice {
  enum class Kind : std::uint8_t {
    last,
    best,     ///< Of the lowest perplexity (or loss) on the validation split.
    average,  ///< The mean of the weights of the last `count`.
    step      ///< Of step `count`.
  };
  Kind kind = Kind::last;
  std::int64_t count = 1;
  /// From "last", "best", "average:N" or the number of a step; throws Error for anything else.
  static CheckpointChoice parse(const std::string& text);
};

/// What became of a line that was to be translated.
struct Translation {
  struct Candidate {
    std::string text;
    Tokens tokens;     ///< As they were produced: the end token too, unless the greatest length cut it off.
    double score = 0;  ///< See Hypothesis.
    double log_probability = 0;
  };
  std::vector<Candidate> candidates;  ///< The best first. None for an empty line, and where there is a problem.
  std::string problem;                ///< Why the line was not translated; empty where it was.
};

/// Attention weights of every layer and head, and the tokens that they stand between.
struct Attention {
  struct Side {
    std::string text;                 ///< Whose tokens: "source" or "target"; of a run on one text, "text".
    std::vector<std::string> tokens;  ///< As they are written, the special ones by their names.
  };
  std::string name;  ///< Which attention: the name of the result.
  Array weights;     ///< Float [layers, heads, queries, keys].
  /// Those that attend, and those attended to. Queries on the target that attend to the source have the tokens that are
  /// produced there; wherever else the target stands, it has the tokens that are read, the start token first.
  Side queries, keys;
};

/// A training run in a directory that needs nothing else but the data: definition.json, recipe.json, its tokenizers,
/// metrics.jsonl (one JSON object a line) and checkpoints/; where it starts from another folder's model, also its first
/// weights, start.safetensors, and the words of that folder, hugging_face/.
class Run {
 public:
  /// Makes the directory, and in it all but metrics and checkpoints: beside its place, from which it is renamed once it
  /// is whole. Throws FileError where it exists, and Error where the tokenizer has more tokens than the model it starts
  /// from.
  static Run create(const Recipe& recipe, const std::string& directory);
  /// Opens a run with its last checkpoint's weights (or, before the first, those it starts from), or with the chosen
  /// ones. `settings` change its recipe for this process alone. Throws FileError where the run has not that checkpoint.
  static Run open(const std::string& directory, const std::vector<Setting>& settings = {},
                  const CheckpointChoice& checkpoint = {});
  /// The same of a run that is to be trained on: trainer() continues from the checkpoint chosen (which is no average),
  /// and sets aside those of later steps. Locks the run.
  static Run resume(const std::string& directory, const std::vector<Setting>& settings = {},
                    const CheckpointChoice& checkpoint = {});
  Run(Run&&) noexcept;
  Run& operator=(Run&&) noexcept;
  ~Run();

  const std::string& directory() const;
  const Recipe& recipe() const;
  Model& model();
  const Tokenizer& tokenizer() const;              ///< Of pairs, the target's.
  const Tokenizer& source_tokenizer() const;       ///< Of pairs; else the same.
  const std::vector<std::string>& labels() const;  ///< Of a table with labels: their names, by number.
  const Batches& batches();                        ///< Made from the recipe's data at the first call.
  std::int64_t columns();          ///< Tokens in a row of a batch: the most that the model has seen at once.
  std::int32_t end_token() const;  ///< What ends a row, or -1.
  /// The tokens of a text that is to be continued: behind the start token, where rows begin with one.
  Tokens prompt(const std::string& text) const;
  /// Made at the first call, and continued from the last checkpoint. Locks the run, so that one process at a time
  /// trains it: until train() ends, or the process does. Throws FileError, which says who it is, where another one has
  /// it.
  Trainer& trainer();

  /// Trains to the recipe's end, with metrics and checkpoints, the last one when it stops. Where an update fails (a
  /// loss that is not finite) the last good checkpoint is what stays. Returns whether it got to the end. Throws
  /// FileError where the run cannot be written, has been moved or deleted, or another process trains it or has trained
  /// it on.
  bool train(const Trainer::Callbacks& callbacks = {});
  /// As Trainer::evaluate, without planning a training step, and with what else the recipe measures; on the validation
  /// part or on the test split. Throws Error where there is no test split.
  Evaluation evaluate(bool on_test = false);
  /// The same on other pairs, a source and a target a line. Throws Error where the data is of another kind, or no pair
  /// has words on both sides.
  Evaluation evaluate(const std::vector<std::string>& source, const std::vector<std::string>& target);
  double sampled_loss(std::int64_t count);
  /// Translates lines as `options` says, with the run's special tokens. Throws Error where the run's data is no
  /// sentence pairs.
  std::vector<Translation> translate(const std::vector<std::string>& lines, const SearchOptions& options);
  /// What the model attends to as it reads `source` and produces `target`, or, without one, its own translation by the
  /// recipe's search; of a run on text, as it reads `source`. One for each result of its function `attention`(source,
  /// tokens), or (tokens), which are [layers, b, heads, queries, keys]. Throws Error where there is no such function, a
  /// result is of another form, or there is nothing to read.
  std::vector<Attention> attention(const std::string& source, const std::optional<std::string>& target = {});
  /// Writes the model to `folder` as xtape::save_hugging_face does, with the words of the folder it started from.
  void save_hugging_face(const std::string& folder) const;

 private:
  struct Data;
  explicit Run(std::unique_ptr<Data> data);
  std::unique_ptr<Data> data_;
};

/// Trainer::profile of a fresh model by the recipe; writes no run.
TrainingProfile profile(const Recipe& recipe, std::int64_t updates);

/// The loss of `model` over the whole validation split of `batches`.
Evaluation evaluate(Model& model, const Batches& batches);

/// How a text that is longer than what a model sees at once is cut: windows of `context` tokens, each beginning
/// `stride` tokens behind the one before, so that what is predicted has at least context - stride tokens before it.
/// (Hugging Face's documentation calls this the perplexity of fixed-length models.)
struct TextWindows {
  std::int64_t context = 1024;
  std::int64_t stride = 512;
};
struct TextEvaluation {
  std::int64_t tokens = 0;  ///< Targets: each token but the first, once, in the first window that predicts it.
  double loss = 0;          ///< Their mean negative log-likelihood, in nats; the perplexity is exp of it.
};
/// How well a model of texts predicts `tokens`: by its function `plain_loss`, or else `loss`, of (tokens, targets).
/// With a stride as long as the context, the first token of each window is not predicted and not counted. Throws Error
/// where a size is out of its range or there is nothing to predict.
TextEvaluation evaluate_text(Model& model, const Tokens& tokens, const TextWindows& options);

/// The mean loss over `count` batches of random validation rows.
double sampled_loss(Model& model, const Batches& batches, std::int64_t count);

}  // namespace xtape
