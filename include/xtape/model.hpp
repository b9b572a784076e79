/// Models defined in JSON: load a definition, record its functions on tapes, get at its weights by name.
/// docs/definitions.md is the reference of the language.
#pragma once

#if defined(XTAPE_LAYER) && XTAPE_LAYER < 7
#error "this layer of xtape may not see the model layer"
#endif

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "xtape/op.hpp"
#include "xtape/player.hpp"
#include "xtape/tape.hpp"

namespace xtape {

template <>
inline constexpr const char* kind_of_value<Var> = "var";
/// Vars by name, in the order of the definition.
using NamedVars = Named<Var>;
/// What is fed to inputs, by their names.
using NamedArrays = Named<ArrayView>;
/// Feeds to each input the array of its name, which must live until the feeds are played. Throws Error where there is
/// none.
std::vector<Feed> feeds_of(const NamedVars& inputs, const NamedArrays& arrays);

/// How a definition is loaded.
struct ModelOptions {
  /// Hyper-parameters to override, as (name, text): {"n_layer", "6"}. The text is an expression ("4 * 64"), except that
  /// a hyper-parameter whose default is a string takes it as it stands.
  std::vector<std::pair<std::string, std::string>> hyper;
  std::uint64_t seed = 0;        ///< Of the initial weights. Each weight draws by its own name: order does not matter.
  Dtype dtype = Dtype::float32;  ///< Of the weights and of the inputs declared "float": float32 or float64.
  const OpTable* ops =
      nullptr;  ///< The ops that expressions may call; null: builtin_ops(). Must outlive the model and its players.
  bool initialise = true;  ///< False leaves the weights at zero: for those about to load them, or only to look.
  /// How many steps the recording of a function may take, so that a definition whose blocks apply one another without
  /// end is an error before memory is. Each name, literal, operator and call that is looked at is a step, and each
  /// element of a tuple: a recording has at most about as many nodes. (GPT-2 of twelve layers takes some 2000.)
  std::int64_t max_steps = 2'000'000;
};

/// The resolved hyper-parameters of a model.
class Hyper {
 public:
  using Value = std::variant<bool, std::int64_t, double, std::string>;
  bool has(const std::string& name) const { return items_.has(name); }
  /// The value; each throws Error where there is none of that name (with the nearest one) or it is of another kind.
  std::int64_t integer(const std::string& name) const;
  double number(const std::string& name) const;  ///< Takes integers too.
  bool flag(const std::string& name) const;
  const std::string& text(const std::string& name) const;
  const Value& at(const std::string& name) const;
  const Named<Value>& items() const { return items_; }
  void set(const std::string& name, Value value) { items_.set(name, std::move(value)); }

 private:
  Named<Value> items_;
};
std::string to_string(const Hyper::Value& value);  ///< As an expression: strings in quotes.

/// What a function of a model takes.
struct FunctionInput {
  std::string name;
  Dtype dtype = Dtype::float32;   ///< The dtype that Model::inputs gives it: int64 for "int", the model's for "float".
  std::vector<std::string> dims;  ///< Sizes as written: a name to be bound ("b"), a number, an expression over both.
};
struct Signature {
  std::vector<FunctionInput> inputs;
  std::vector<std::string> sizes;  ///< The names that `dims` bind, in order of appearance.
  /// The names that the definition gives the results; empty where it names none, and Model::record calls them after the
  /// function.
  std::vector<std::string> results;
};

/// What tells the recordings of a model's functions apart.
struct FunctionKey {
  std::string function;
  Mode mode = Mode::eval;
  NamedSizes sizes;
  std::string transformation;  ///< What was made of the function; empty where it is played as it is.
};
inline bool operator==(const FunctionKey& a, const FunctionKey& b) {
  return a.mode == b.mode && a.sizes == b.sizes && a.function == b.function && a.transformation == b.transformation;
}

/// A function of a model, recorded on a tape of its own for fixed sizes, with a player for its results.
struct PlayableFunction {
  FunctionKey key;
  Tape tape;
  NamedVars inputs;
  NamedVars results;
  Player player;
};

/// A block of weights and shapes somewhere in a model: what `xtape show` prints.
struct ModuleSummary {
  struct Weight {
    std::string name;  ///< The whole path.
    Shape shape;
    std::string init;  ///< "normal(std=0.02)".
  };
  std::string path;  ///< "h.0.attn"; "" for the model itself.
  std::string block;
  std::string file;             ///< Where the block is defined.
  std::vector<Weight> weights;  ///< Its own, without those of its modules.
  std::int64_t parameters = 0;  ///< Of its own weights and of all its modules.
};

/// A definition with its hyper-parameters resolved and its weights in memory. Recording on two tapes from two threads
/// is safe; `player` is for one thread at a time.
class Model {
 public:
  /// Reads the definition at `path` (see find_definition). Throws FileError where it cannot be read, DefinitionError
  /// where it is wrong.
  static Model load(const std::string& path, const ModelOptions& options = {});
  /// The same, from the text of a definition. `name` stands for the file in errors; `use` looks beside it.
  static Model parse(const std::string& text, const ModelOptions& options = {}, const std::string& name = "definition");
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  const std::string& name() const;
  const std::string& about() const;
  const Hyper& hyper() const;
  Dtype dtype() const;
  /// The weights by path, such as "h.0.attn.c_attn.weight". The arrays are shared: what is written there is what every
  /// tape of this model reads at its next play.
  const Store& weights() const;
  std::int64_t parameter_count() const;
  std::vector<ModuleSummary> modules() const;  ///< In the order of the definition, parents first.

  std::vector<std::string> functions() const;
  /// Throws Error, with the nearest name, where there is no such function.
  const Signature& signature(const std::string& function) const;

  /// Makes the inputs of `function` on `tape`, for sizes given by name: inputs(tape, "loss", {{"b", 4}, {"t", 64}}).
  /// The tape's default dtype becomes the model's, here and in `record`.
  NamedVars inputs(Tape& tape, const std::string& function, const NamedSizes& sizes) const;
  /// Records `function` on `tape`, whose mode it follows, and returns its results by name. `inputs` are any vars of
  /// that tape, one for each declared input; dtypes and sizes are checked. Throws DefinitionError with file, block and
  /// line where a line of the definition does not fit these shapes.
  NamedVars record(Tape& tape, const std::string& function, const NamedVars& inputs) const;
  /// The var of a weight on `tape`, as its functions use it: what to differentiate by.
  Var weight(Tape& tape, const std::string& name) const;
  NamedVars weights(Tape& tape) const;  ///< All of them, in the order of weights().

  /// `function` recorded and planned for these sizes: made when first asked for, then kept, the least recently used
  /// falling out beyond the capacity. All play in one arena, so that results are valid until the next play of any.
  std::shared_ptr<PlayableFunction> player(const std::string& function, Mode mode, const NamedSizes& sizes);
  /// The results of `function`, by name, on arrays given by the names of its inputs (others are not looked at); their
  /// shapes say the sizes: play("logits", {{"tokens", token_array({prompt})}}). Plays a player of the above. Throws
  /// Error where an input is not given, or has another dtype or shape.
  Store play(const std::string& function, const NamedArrays& arrays, Mode mode = Mode::eval);
  /// The sizes that the shapes of `arrays` give the names in the signature of `function`. Inputs named in `missing`
  /// need no array. Throws as `play` does where an input is not given, or has another dtype or rank.
  NamedSizes sizes(const std::string& function, const NamedArrays& arrays,
                   const std::vector<std::string>& missing = {}) const;
  /// What the cache of players holds, the most recently used first.
  std::vector<std::shared_ptr<const PlayableFunction>> players() const;
  /// How many players are kept (16 at first), and how they are made. Drops those there are.
  void set_player_options(std::size_t capacity, const PlayerOptions& options);
  const PlayerOptions& player_options() const;

  /// Writes the weights as safetensors, beside the file and then renamed.
  void save_weights(const std::string& path) const;
  /// Reads weights from a safetensors file into the arrays that tapes already share. Floating dtypes are converted.
  /// Throws FileError that lists every name that is missing, unexpected or of the wrong shape; then no weight has
  /// changed.
  void load_weights(const std::string& path);

  /// One JSON definition that needs no other file: what it uses is inside, hyper-parameters have their resolved values.
  const std::string& definition_text() const;

 private:
  struct Data;
  explicit Model(std::unique_ptr<Data> data);
  std::unique_ptr<Data> data_;
};

/// The file that `name` means: the path itself where there is such a file, else (for a name without a directory) that
/// file of the installed `models` directory or of its sub-folder `folder`; ".json" may be left out. Throws FileError
/// with the nearest name.
std::string find_definition(const std::string& name, const std::string& folder = "");
/// Where the shared definitions are: the environment's XTAPE_MODELS, or where they were installed.
std::string models_directory();

}  // namespace xtape
