/// Runs: trainings from recipes, with their checkpoints, in directories. docs/reference/recipes.md describes the files.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "xtape/recipe.hpp"

namespace xtape {

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

/// What Run::verify replays, and whom it tells.
struct VerifyOptions {
  /// Changes of the recipe that leave its results alone: the new place of the data, threads, memory.
  std::vector<Setting> settings = {};
  /// Numbers of updates, from 1. Each is replayed from the checkpoint before it, and the updates on the way are
  /// compared too. If there are none, and no sample, the updates that follow the initial weights and each checkpoint
  /// are replayed, up to the first after which the ledger has a digest of the weights.
  std::vector<std::int64_t> updates = {};
  std::int64_t sample = 0;  ///< The number of updates to draw at random.
  /// Called with a sentence about what is the same, or differs. It may be empty, as may the other functions.
  std::function<void(const std::string& sentence)> tell = {};
  std::function<void(const StepReport&)> step = {};  ///< Called after each update. What it throws ends the replay.
  /// Called before each update of `updates` with its first play. On two machines, the digests of its values tell which
  /// op differs.
  std::function<void(const RecordedPlay&)> play = {};
};

/// What Run::verify has found.
struct Verification {
  bool same = true;           ///< Whether files, data, and all updates that were replayed are those of the ledger.
  std::int64_t replayed = 0;  ///< The number of updates compared.
  std::int64_t differs = 0;   ///< The first update that differs. 0: none.
};

/// A training run in a directory. The directory is complete except for the data: definition.json, recipe.json, the
/// tokenizers, metrics.jsonl and ledger.jsonl (a JSON object per line) and checkpoints/. If the run starts from a
/// Hugging Face folder, the directory also contains the initial weights (start.safetensors) and the other files of the
/// folder (hugging_face/). Only one thread at a time may use a run.
class Run {
 public:
  /// Makes the directory with everything except metrics and checkpoints, under a temporary name, then renames and opens
  /// it. Throws FileError if the directory exists or data cannot be read, Error if the tokenizer has more tokens than
  /// the initial model, DefinitionError if recipe, definition and data do not fit together.
  ///
  /// With a `communicator`, several processes ("ranks") work on the run together. All ranks must make the same calls,
  /// and get the same results. Only rank 0 writes. The others read the run's directory and the data from their own file
  /// systems. Throws Error if the ranks differ in version, recipe, definition or data, or in the instruction set unless
  /// the recipe's bits are "same"; the message names the difference and the rank.
  static Run create(const Recipe& recipe, const std::string& directory,
                    const std::shared_ptr<Communicator>& communicator = nullptr);
  /// Opens a run with the weights of the chosen checkpoint, by default the last. Before the first checkpoint, the run
  /// has its initial weights. `settings` change the recipe for this process only, unless it trains. Throws FileError if
  /// there is no such run or checkpoint, DefinitionError if a setting changes a key that a run keeps, such as a
  /// hyper-parameter (docs/reference/recipes.md).
  static Run open(const std::string& directory, const std::vector<Setting>& settings = {},
                  const CheckpointChoice& checkpoint = {}, const std::shared_ptr<Communicator>& communicator = nullptr);
  /// Opens a run to continue its training, and locks it. trainer() continues from the chosen checkpoint and sets aside
  /// the checkpoints of later steps. Throws Error if the choice is an average, FileError if another process holds the
  /// lock, and otherwise what open() throws.
  static Run resume(const std::string& directory, const std::vector<Setting>& settings = {},
                    const CheckpointChoice& checkpoint = {},
                    const std::shared_ptr<Communicator>& communicator = nullptr);

  const std::string& directory() const;
  const Recipe& recipe() const;
  Model& model();
  /// For pairs, the tokenizer of the targets. Throws Error if the run has none: for images, and for arrays
  /// unless the recipe names one.
  const Tokenizer& tokenizer() const;
  const Tokenizer& source_tokenizer() const;  ///< For pairs, the tokenizer of the sources. Otherwise the same.
  const std::vector<std::string>& labels()
      const;                 ///< The names of labels by index, for a table, tags or arrays with labels, or images.
  const Batches& batches();  ///< The first call reads the data.
  std::int64_t columns();    ///< The most tokens of a row, which is the longest context in training.
  std::int32_t end_token() const;  ///< The token that ends rows, or -1.
  /// The tokens that end a generated text: `end_token`, and the tokenizer's `ends`. Empty if rows have no end.
  Tokens end_tokens() const;
  /// Returns the tokens of a text to continue. They begin with the start token if the rows do.
  Tokens prompt(const std::string& text) const;
  /// Returns the trainer. The first call makes it, continuing from the last checkpoint. Locks the run against training
  /// by other processes until train() or the process ends. Throws FileError with the name of the process if another
  /// process holds the lock.
  Trainer& trainer();

  /// Trains to the end of the recipe, and writes metrics and checkpoints. Also writes a checkpoint when it stops.
  /// Before the first update, writes the settings that change the recipe to recipe.json, with the former values.
  /// Returns false if a callback stopped the training earlier. Throws TrainingError if an update fails; the last good
  /// checkpoint remains. Throws EvaluationError if an evaluation fails, after it has written a checkpoint of the
  /// preceding updates. Throws FileError if the run cannot be written, if it was moved or deleted, or if another
  /// process trains it or has continued its training. Throws Error if a callback of this training calls it.
  bool train(const Trainer::Callbacks& callbacks = {});
  /// Compares the run in `directory` with its ledger: first its files, checkpoints and data by their digests, then
  /// updates, which it replays in memory, by the bits of loss, gradient norm and weights. Stops at the first update
  /// that differs. Writes nothing to the run, and takes no lock. Throws FileError if the run has no ledger, or if an
  /// update of the options cannot be replayed because it is not in the ledger, or no checkpoint before it is left.
  static Verification verify(const std::string& directory, const VerifyOptions& options = {});
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
  /// Writes the model like xtape::save_hugging_face, with the other files of the folder that the run started from, and
  /// the run's tokenizer. If the definition has no entry "hugging_face", or another program would not compute the same,
  /// writes a folder with definition.json, which only xtape reads. Leaves out frozen weights that only the losses read,
  /// such as those of a teacher, unless the folder has the definition. Returns sentences about all this.
  std::vector<std::string> save_hugging_face(const std::string& folder,
                                             std::optional<Dtype> weights = std::nullopt) const;
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
