/// Recipes: the files that describe a training. docs/reference/recipes.md describes their keys.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "xtape/corruption.hpp"
#include "xtape/model.hpp"
#include "xtape/trainer.hpp"

namespace xtape {

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

/// Selects a checkpoint of a run.
struct CheckpointChoice {
  enum class Kind : std::uint8_t {
    last,
    best,     ///< The checkpoint of the best evaluation by Trainer::FitOptions::best.
    average,  ///< The mean of the weights of the last `count` checkpoints.
    step      ///< The checkpoint of step `count`.
  };
  Kind kind = Kind::last;
  std::int64_t count = 1;
  bool ema = false;  ///< Whether to load the moving averages of the weights (EmaOptions) from this checkpoint.
  /// Parses "last", "best", "average:N", the number of a step, "ema", "ema:best" or "ema:STEP". Throws Error for any
  /// other text.
  static CheckpointChoice parse(const std::string& text);
};

/// Weights with which a new run starts. Each pattern has at most one `*`, which stands for the same text in all of
/// them.
struct WeightSource {
  /// A run, a safetensors file, or a folder that has such files, such as a checkpoint or a folder of the Hugging Face
  /// Hub.
  std::string from;
  CheckpointChoice checkpoint = {};  ///< For a run: the checkpoint to read.
  /// Patterns of the names of arrays, and their names in place of them. For each array, the first that matches
  /// applies.
  std::vector<std::pair<std::string, std::string>> rename = {};
  std::string take = "*";  ///< Which arrays are read: "encoder.*".
  std::string into = "*";  ///< The weights that they become: "teacher.*". Each of these weights needs an array.
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
    /// "text", "documents", "chats", "preferences", "pairs", "table", "tags", "images" or "arrays".
    std::string kind;
    Files training, validation, test;
    std::vector<std::pair<std::string, Files>> sets;  ///< Further validation sets by name.
    double split = 0.9;  ///< Without validation files: the share of the training data used for training.
    /// If above 0, this many rows at the end of the training data are held out for validation. `split` then has no
    /// effect.
    std::int64_t held_out = 0;
    /// If above 0, the rows of the training data are divided into this many parts of neighbours. Part `fold`, from 1,
    /// validates, and the others train.
    std::int64_t folds = 0, fold = 1;
    std::int64_t block_size = 64;                     ///< For "text".
    TextOrder order = TextOrder::random;              ///< For "text".
    std::string token_type;                           ///< For "text": see the recipe's key. "": not given.
    std::int64_t skip_bytes = 0;                      ///< For "text": the bytes before the tokens of raw files.
    DocumentEnd separator = DocumentEnd::blank_line;  ///< For "documents".
    std::string prompt_end;                           ///< For "documents": see split_prompt; may be empty.
    /// Files of JSON Lines: the field of each column, such as {"text", "content"}. Empty: other files.
    std::vector<std::pair<std::string, std::string>> fields;
    std::string
        chat_template;  ///< For "chats" and "preferences": a file, or the name of an installed one. May be empty.
    /// For "chats" and "preferences": the roles of the file, and what they are called in templates.
    std::vector<std::pair<std::string, std::string>> roles;
    CorruptionOptions corruption;    ///< For "text" and "documents". The tokens in it are those of the tokenizer.
    std::int64_t pack = 0;           ///< For "documents" and "chats": see packed. 0: not packed.
    std::vector<Column> columns;     ///< For rows of texts. Columns without a name are skipped.
    TableOptions table;              ///< For "table" and "tags".
    ImageOptions images;             ///< For "images".
    ImageResize resize;              ///< For "images".
    std::int64_t channels = 3;       ///< For "images" in folders.
    std::vector<ArrayInput> inputs;  ///< For "arrays". Empty: all arrays of the file.
    CsvOptions csv;                  ///< For "arrays" in CSV files.
    ReadOptions reading;             ///< For all files.
    std::int64_t max_length = 0;     ///< Rows with a longer text (in tokens) are not used for training. 0: no limit.
    /// The most tokens of a row, recorded in the recipe of a run. 0: determined from the data.
    std::int64_t longest_row = 0;
    bool has_pairs() const;
    bool has_tokens() const;  ///< Whether tokenizers make tokens of texts, as for all kinds except images and arrays.
    bool has_rows() const;    ///< Batches are RowBatches, ImageBatches or ArrayBatches. False for "text".
    /// Whether there are reference answers for the model's answers.
    bool has_answers() const { return has_pairs() || !prompt_end.empty(); }
    bool has_epochs() const { return has_rows() || order != TextOrder::random; }
  };
  std::string name;
  std::string about;
  std::string definition;  ///< May be empty with `from`. The config of the folder `from` then names the definition.
  std::string original;    ///< For a run: the file that its definition was copied from. May be empty.
  std::string from;        ///< The Hugging Face folder or GGUF file of the initial model. Empty: a new model.
  std::string adapter;     ///< With `from`: a folder of low-rank adapters for the model. May be empty.
  std::vector<WeightSource> start;      ///< Sources of initial weights, read one after the other.
  std::vector<std::string> initialise;  ///< Patterns of weights that these sources, or `from`, may lack.
  WeightDtypes weights;                 ///< The dtypes in which weights that are not trained are stored.
  std::vector<HyperSetting> hyper;
  Data data;
  TokenizerSettings tokenizer;
  std::int64_t batch_size = 0;    ///< Rows. 0: determined by batch_tokens.
  std::int64_t batch_tokens = 0;  ///< RowBatchesOptions::tokens.
  std::int64_t bucket = 2;        ///< RowBatchesOptions::bucket.
  /// A part of the training. What a stage does not say is 0, and as in the whole recipe.
  struct Stage {
    std::int64_t steps = 0;  ///< The number of updates. 0 in the last stage: the others of the training.
    std::int64_t batch_size = 0, batch_tokens = 0, block_size = 0, max_length = 0;
    std::vector<ScheduleOptions> schedule = {};  ///< One, whose steps count from the beginning of the stage, or none.
  };
  std::vector<Stage> stages;  ///< One after the other. Empty: the whole training is alike.
  TrainerOptions trainer;     ///< Includes the seed and threads of the recipe.
  Trainer::FitOptions fit;
  /// Whether evaluations translate the validation split, or continue its prompts, to measure BLEU.
  bool measure_bleu = false;
  /// Whether evaluations measure the share of these translations or continuations that match the reference exactly.
  bool measure_exact_match = false;
  /// The most batches of a split that an evaluation plays. 0: all.
  std::int64_t evaluate_batches = 0;
  /// Updates between checkpoints. There is always a checkpoint after the last update.
  std::int64_t checkpoint_every = 0;
  bool checkpoint_epochs = false;  ///< Whether to write a checkpoint after every epoch, too.
  /// What the model makes at times of the training, for people to look at.
  struct Samples {
    std::int64_t every = 0;            ///< Updates between samples. 0: at each evaluation.
    std::vector<std::string> prompts;  ///< Texts that the model continues, or translates.
    std::int64_t tokens = 100;         ///< The most tokens of a continuation.
    Sampling sampling = {};            ///< Of continuations, with the seed of the recipe.
    std::string function;              ///< A function of the definition whose results are samples. May be empty.
    std::int64_t rows = 4;             ///< The rows that it reads.
  };
  Samples samples;
  std::int64_t keep = 2;  ///< The number of checkpoints to keep in addition to the best. 0: all.
  SearchOptions search;   ///< The default search options of translations.

  /// Reads the recipe file that find_definition(path, "recipes") finds, and applies `settings`. Throws FileError if
  /// the file cannot be read, DefinitionError if the recipe or a setting is wrong.
  static Recipe load(const std::string& path, const std::vector<Setting>& settings = {});
  /// The recipe as JSON, with the settings applied and every path absolute.
  std::string text;
};

}  // namespace xtape
