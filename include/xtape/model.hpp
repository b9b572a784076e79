/// Models defined in JSON: load a definition, record its functions on tapes, play them, and access weights by name.
/// docs/definitions.md is the reference of the language.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "xtape/op/op.hpp"
#include "xtape/owner.hpp"
#include "xtape/player.hpp"
#include "xtape/tape.hpp"

namespace xtape {

/// Arrays to feed, by the names of the inputs.
using NamedArrays = Named<ArrayView>;
/// A feed for each of `inputs`: the array of that name, which must live until the feeds are played. Throws Error if one
/// is missing.
std::vector<Feed> feeds_of(const NamedVars& inputs, const NamedArrays& arrays);

/// How a definition is loaded.
struct ModelOptions {
  /// Hyper-parameters to override, as (name, text): {"n_layer", "6"}. The text is an expression ("4 * 64"); if the
  /// default is a string, it is taken literally.
  std::vector<std::pair<std::string, std::string>> hyper;
  std::uint64_t seed = 0;        ///< Determines the initial weights. Each weight draws by its own name.
  Dtype dtype = Dtype::float32;  ///< The dtype of weights and of inputs declared "float": float32 or float64.
  const OpTable* ops =
      nullptr;  ///< The ops that expressions may call; null: builtin_ops(). Must outlive the model, tapes and players.
  bool initialise = true;  ///< False: the weights stay zero, to be loaded or just inspected.
  /// bfloat16, float16 or int8: the weights are stored so (Model::store_weights_as). Files must then hold them as that
  /// dtype, or for halves as any floats in range.
  std::optional<Dtype> weights = std::nullopt;
  /// The most steps of recording a function; more is a DefinitionError, so that blocks that apply one another endlessly
  /// do not exhaust memory. Evaluating a name, literal, operator, call or tuple element is a step (GPT-2 with twelve
  /// layers takes some 2000); a recording has at most about as many nodes.
  std::int64_t max_steps = 2'000'000;
  /// The file that the definition was copied from. While it says the same (Model::definition_text), sites give its
  /// lines; random numbers are those of the copy.
  std::string original = {};
};

/// The resolved hyper-parameters of a model.
class Hyper {
 public:
  using Scalar = std::variant<bool, std::int64_t, double, std::string>;
  using List = std::vector<Scalar>;  ///< A tuple of the definition, such as a word for each layer.
  using Value = std::variant<bool, std::int64_t, double, std::string, List>;
  bool has(const std::string& name) const { return items_.has(name); }
  /// The value. All throw Error if there is no such name (with the nearest one) or the value is of another type.
  std::int64_t integer(const std::string& name) const;
  double number(const std::string& name) const;  ///< Also for an integer.
  bool flag(const std::string& name) const;
  const std::string& text(const std::string& name) const;
  const Value& at(const std::string& name) const;
  const Named<Value>& items() const { return items_; }
  void set(const std::string& name, Value value) { items_.set(name, std::move(value)); }

 private:
  Named<Value> items_;
};
std::string to_string(const Hyper::Value& value);  ///< As an expression: strings are quoted and escaped.

/// A declared input of a function of a model.
struct FunctionInput {
  std::string name;
  Dtype dtype = Dtype::float32;   ///< The dtype that Model::inputs gives it: int64 for "int", the model's for "float".
  std::vector<std::string> dims;  ///< Sizes as written: a name to bind ("b"), or an expression.
};
/// The inputs and results of a function of a model.
struct Signature {
  std::vector<FunctionInput> inputs;
  std::vector<std::string> sizes;  ///< The names that `dims` bind, in order of appearance.
  /// The names of the results in the definition. Empty if it does not name them; then Model::record names them after
  /// the function: "logits", or "logits.0", "logits.1" ….
  std::vector<std::string> results;
};

/// What a recording tells beside its results.
struct RecordedLines {
  /// The arrays inside, in the order of recording: "h.0.attn" is what the module returns ("h.0.attn.1" the second of
  /// several results), "h.0.attn.scores" what one of its lines assigns, "loss.p" what a line of a function assigns, each
  /// in the last application. Values inside scans and checkpoints are not among them.
  NamedVars values;
  /// The lines that applied a module, by its path.
  std::map<std::string, std::vector<std::string>> applied;
  /// In mode train, the new values of weights that blocks update themselves ("update"), by the paths of the weights.
  NamedVars updates = {};
};

/// Identifies a recording of a function of a model.
struct FunctionKey {
  std::string function;
  Mode mode = Mode::eval;
  NamedSizes sizes;
  std::string transformation;  ///< What was derived from the function ("gradients"); empty: the function itself.
};
inline bool operator==(const FunctionKey& a, const FunctionKey& b) {
  return a.mode == b.mode && a.sizes == b.sizes && a.function == b.function && a.transformation == b.transformation;
}

/// A function of a model, recorded on its own tape for given sizes, with a player for its results.
struct PlayableFunction {
  FunctionKey key;
  Tape tape;
  NamedVars inputs;
  NamedVars results;
  Player player;
};

/// A module of a model, as `xtape show` prints it.
struct ModuleSummary {
  struct Weight {
    std::string name;  ///< The full path.
    Shape shape;
    std::string init;  ///< "normal(std=0.02)".
  };
  std::string path;  ///< "h.0.attn"; "" for the model itself.
  std::string block;            ///< The name of its block.
  std::string file;             ///< Where the block is defined.
  std::vector<Weight> weights;  ///< Its own, without those of its submodules.
  /// Elements of its weights and of all its submodules', without those that blocks update themselves.
  std::int64_t parameters = 0;
};

/// A definition with its hyper-parameters resolved and its weights in memory. Const functions are safe in several
/// threads at once, with different tapes. `player`, `play`, `players`, `set_player_options` and load_weights are for
/// one thread at a time.
class Model {
 public:
  /// Reads the definition that find_definition finds for `path`. Throws FileError if it cannot be read, DefinitionError
  /// if it or a hyper-parameter is wrong, DtypeError if options.dtype is not a float.
  static Model load(const std::string& path, const ModelOptions& options = {});
  /// The same from the text of a definition. Errors give `name` as the file; files that the definition uses are found
  /// relative to it.
  static Model parse(const std::string& text, const ModelOptions& options = {}, const std::string& name = "definition");

  const std::string& name() const;
  const std::string& about() const;
  const Hyper& hyper() const;
  Dtype dtype() const;
  const OpTable* ops() const;  ///< The ops that its expressions may call.
  /// The weights by path, such as "h.0.attn.c_attn.weight". Tapes share these arrays: every play reads the present
  /// elements. The arrays outlive the model as long as a handle or tape has them.
  const Store& weights() const;
  /// The weights that blocks update themselves ("update"), such as running means: no gradient trains them.
  std::vector<std::string> updated_weights() const;
  /// The weights of blocks from files in another format, such as ONNX: their initial values are those of the files.
  std::vector<std::string> weights_from_files() const;
  /// The weight of this name, which shares its elements with the model. Throws as Store::at does.
  Array weight(const std::string& name);
  /// Makes the model use the arrays of `memory` for the weights of these names, with the elements that they have. Tapes
  /// and players that were made before keep the old arrays. Throws Error, ShapeError or DtypeError, and changes
  /// nothing, if a name or a type is not that of a weight.
  void use_weights(const Store& memory);
  /// Stores weights as bfloat16 or float16, or as int8 with a scale for each output channel (the array NAME.scale), for
  /// inference: those that all functions use only as factors of products and in `take`, which then read half or a
  /// quarter of the bytes. The others keep their dtype. Numbers are rounded to nearest; with the model's own dtype
  /// nothing happens. Tapes and players that were made before keep the old arrays. Throws DtypeError for another dtype,
  /// or if the weights are stored as another of these; Error if a weight that becomes int8 is not finite, or a number
  /// of a weight is beyond the range of the half.
  void store_weights_as(Dtype dtype);
  /// The weights as programs know them that have no such blocks: "export" of a block gives those of its modules by
  /// expressions, which merge others into them, such as low-rank adapters (docs/definitions.md). All others are shared
  /// with weights(). Throws DefinitionError if an expression fails.
  Store exported_weights() const;
  std::int64_t parameter_count() const;        ///< Elements of all weights.
  std::vector<ModuleSummary> modules() const;  ///< In the order of the definition, parents first.

  std::vector<std::string> functions() const;
  /// Throws Error, with the nearest name, if there is no such function. Valid as long as the model.
  const Signature& signature(const std::string& function) const;

  /// Makes the inputs of `function` on `tape`, for sizes given by name: inputs(tape, "loss", {{"b", 4}, {"t", 64}}).
  /// Sets the tape's default dtype and ops to the model's, as `record` does. Throws Error if a size is missing, unknown
  /// or negative, or the tape has an input of that name.
  NamedVars inputs(Tape& tape, const std::string& function, const NamedSizes& sizes) const;
  /// Records `function` on `tape`, in the tape's mode, and returns its results by name. `inputs` are any vars of the
  /// tape, one for each declared input. Throws Error if they do not fit the signature, and DefinitionError, with file,
  /// block and line, if a line of the definition fails for these shapes; then nothing stays recorded.
  /// `lines`, unless null, becomes what is known of the inside.
  NamedVars record(Tape& tape, const std::string& function, const NamedVars& inputs,
                   RecordedLines* lines = nullptr) const;
  /// The var of a weight on `tape`, the same that recorded functions use: for gradients with respect to it. Throws
  /// Error, with the nearest name, if there is no such weight.
  Var weight(Tape& tape, const std::string& name) const;
  NamedVars weights(Tape& tape) const;  ///< All of them, in the order of weights().

  /// `function`, recorded and planned for these sizes: made by the first call, and kept in a cache that drops the least
  /// recently used. The pointer stays valid. The players share an arena, so only one may play at a time; their results
  /// are separate. Throws as `inputs`, `record` and Player.
  std::shared_ptr<PlayableFunction> player(const std::string& function, Mode mode, const NamedSizes& sizes);
  /// Plays `function` on arrays given by the names of its inputs, whose shapes determine the sizes, and returns copies
  /// of the results: play("logits", {{"tokens", token_array({prompt})}}). Other arrays are ignored. Uses `player`, with
  /// random step 0. Throws Error if an input is missing, and DtypeError or ShapeError if an array's type is wrong.
  Store play(const std::string& function, const NamedArrays& arrays, Mode mode = Mode::eval);
  /// The sizes that the shapes of `arrays` give to the names in the signature of `function`; inputs in `missing` need
  /// no array. Throws as `play` does for missing inputs and wrong dtypes or ranks.
  NamedSizes sizes(const std::string& function, const NamedArrays& arrays,
                   const std::vector<std::string>& missing = {}) const;
  /// The players in the cache, the most recently used first.
  std::vector<std::shared_ptr<const PlayableFunction>> players() const;
  /// Sets how many players are kept (at least 1; initially 16) and how they are made; without an arena in `options`
  /// they share a new one. Empties the cache.
  void set_player_options(std::size_t capacity, const PlayerOptions& options);
  const PlayerOptions& player_options() const;

  /// Writes the weights as save_arrays does. Throws FileError.
  void save_weights(const std::string& path) const;
  /// Reads weights from a safetensors file into the arrays that tapes share, converting float dtypes. Throws FileError,
  /// which lists all weights that are missing, unexpected or of the wrong shape or dtype, or names what is damaged;
  /// then no weight has changed.
  void load_weights(const std::string& path);

  /// The definition as one JSON text that needs no other file; its hyper-parameters have their resolved values.
  const std::string& definition_text() const;

 private:
  struct Data;
  void narrow_weights(Dtype dtype, bool convert);
  explicit Model(std::unique_ptr<Data> data);
  Owner<Data> data_;
};

/// The path of the definition `name`: the file of that path if there is one, else (for a name without a directory) the
/// file in models_directory() or in its subfolder `folder`. ".json" may be left out. Throws FileError, with the nearest
/// name.
std::string find_definition(const std::string& name, const std::string& folder = "");
/// The directory of the shared definitions: the environment variable XTAPE_MODELS; else that of the tree that the running
/// program is installed in, wherever it was moved; else where the library was installed.
std::string models_directory();

}  // namespace xtape
