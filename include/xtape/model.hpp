/// Models defined in JSON: loads definitions, records their functions on tapes, plays them, and gives access to weights
/// by name. docs/reference/definitions.md is the reference of the language.
#pragma once

#include <cstdint>
#include <functional>
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
/// Returns a feed for each of `inputs` with the array of the same name. The arrays must live until the feeds are
/// played. Throws Error if an array is missing.
std::vector<Feed> feeds_of(const NamedVars& inputs, const NamedArrays& arrays);

/// The dtypes in which weights are stored: rows of a pattern of names (syntax: OptimizerGroup) and a dtype. The first
/// pattern that matches a name decides. A weight that matches none keeps the model's dtype.
class WeightDtypes {
 public:
  WeightDtypes() = default;
  WeightDtypes(Dtype dtype) : rows_{{"*", dtype}} {}  // NOLINT: converts by intent
  WeightDtypes(std::optional<Dtype> dtype) {          // NOLINT: converts by intent
    if (dtype) add("*", *dtype);
  }
  void add(const std::string& pattern, Dtype dtype) { rows_.emplace_back(pattern, dtype); }
  /// Adds a row before all others.
  void put_first(const std::string& pattern, Dtype dtype) { rows_.insert(rows_.begin(), {pattern, dtype}); }
  bool empty() const { return rows_.empty(); }
  const std::vector<std::pair<std::string, Dtype>>& rows() const { return rows_; }
  std::optional<Dtype> of(const std::string& weight) const;

 private:
  std::vector<std::pair<std::string, Dtype>> rows_;
};

/// Options of loading a definition.
struct ModelOptions {
  /// Hyper-parameters to override, as (name, expression): {"n_layer", "6"}, {"n_inner", "4 * 64"}, {"activation",
  /// "gelu"}. A text that is not the name of a block or an initialiser has quotes: {"order", "'i_g_f_o'"}.
  std::vector<std::pair<std::string, std::string>> hyper = {};
  std::uint64_t seed = 0;        ///< Determines the initial weights. The name of a weight selects its random stream.
  Dtype dtype = Dtype::float32;  ///< The dtype of weights and of inputs declared "float": float32 or float64.
  const OpTable* ops =
      nullptr;  ///< The ops that expressions may call; null: builtin_ops(). Must outlive the model, tapes and players.
  bool initialise = true;  ///< If false, the weights stay zero, to be loaded or only inspected.
  /// Patterns of the weights that are initialised (the syntax of OptimizerGroup). The others stay zero, and so take no
  /// memory before they are read from a file.
  std::vector<std::string> initialised = {"*"};
  /// The model stores weights in these dtypes: bfloat16, float16, int8 or block formats (Model::store_weights_as). A
  /// file of weights must then fit: for int8, it must contain int8 weights; for bfloat16, float16 and block formats, it
  /// may contain floats of any dtype, if their values are in range.
  WeightDtypes weights = {};
  /// The most steps of recording a function. Exceeding it is a DefinitionError, so that endless recursion of blocks
  /// does not exhaust memory. Evaluating a name, literal, operator, call or tuple element is a step; GPT-2 with twelve
  /// layers takes about 2000. A recording has at most about as many nodes as steps.
  std::int64_t max_steps = 2'000'000;
  /// The file that the definition was copied from. If its text equals Model::definition_text, source locations refer to
  /// this file. Random streams still depend on the lines of the copy.
  std::string original = {};
};

/// The resolved hyper-parameters of a model.
class Hyper {
 public:
  using Scalar = std::variant<bool, std::int64_t, double, std::string>;
  using List = std::vector<Scalar>;  ///< A tuple of the definition, such as a word for each layer.
  using Value = std::variant<bool, std::int64_t, double, std::string, List>;
  bool has(const std::string& name) const { return items_.has(name); }
  /// Returns the value. These getters throw Error if the name is unknown or the value has another type. The message
  /// suggests the nearest name.
  std::int64_t integer(const std::string& name) const;
  double number(const std::string& name) const;  ///< Accepts an integer, too.
  bool flag(const std::string& name) const;
  const std::string& text(const std::string& name) const;
  const Value& at(const std::string& name) const;
  const Named<Value>& items() const { return items_; }
  void set(const std::string& name, Value value) { items_.set(name, std::move(value)); }

 private:
  Named<Value> items_;
};
/// Writes the value as an expression, with strings quoted and escaped.
std::string to_string(const Hyper::Value& value);

/// A declared input of a function of a model.
struct FunctionInput {
  std::string name;
  /// The dtype that Model::inputs gives the input: int64 for "int", the model's dtype for "float".
  Dtype dtype = Dtype::float32;
  std::vector<std::string> dims;  ///< The sizes as written: each is a name to bind ("b") or an expression.
};
/// The inputs and results of a function of a model.
struct Signature {
  std::vector<FunctionInput> inputs;
  std::vector<std::string> sizes;  ///< The names that `dims` bind, in order of appearance.
  /// The names of the results in the definition. If it does not name them, this list is empty and Model::record names
  /// the results after the function: "logits", or "logits.0", "logits.1" ….
  std::vector<std::string> results;
};

/// Additional information about a recording.
struct RecordedLines {
  /// The intermediate values, in order of recording. "h.0.attn" is the result of a module, "h.0.attn.1" its second
  /// result. "h.0.attn.scores" is a value that a line of the module assigns, "loss.p" a value that a line of a function
  /// assigns. If a module is applied several times, the last application counts. Values inside scans and checkpoints
  /// are not included.
  NamedVars values;
  /// For each module path, the lines that apply the module.
  std::map<std::string, std::vector<std::string>> applied;
  /// In mode train, the new values of weights that blocks update themselves ("update"), by the paths of the weights.
  NamedVars updates = {};
};

/// Identifies a recording of a function of a model.
struct FunctionKey {
  std::string function;
  Mode mode = Mode::eval;
  NamedSizes sizes;
  std::string transformation;  ///< The derivation from the function ("gradients"). Empty for the function itself.
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
  std::string path;             ///< "h.0.attn"; "" for the model itself.
  std::string block;            ///< The name of its block.
  std::string file;             ///< The file that defines the block.
  std::vector<Weight> weights;  ///< Its own weights, without those of its submodules.
  /// The number of elements of its weights and those of all its submodules. Weights that blocks update themselves do
  /// not count.
  std::int64_t parameters = 0;
};

/// A definition with resolved hyper-parameters and with its weights in memory. Const functions are safe in several
/// threads at once if the tapes differ. Only one thread at a time may call `player`, `play`, `players`,
/// `set_player_options` or load_weights.
class Model {
 public:
  /// Reads the definition that find_definition finds for `path`. Throws FileError if the file cannot be read,
  /// DefinitionError if the definition or a hyper-parameter is wrong, DtypeError if options.dtype is not a float.
  static Model load(const std::string& path, const ModelOptions& options = {});
  /// Reads the text of a definition. Errors use `name` as the file name. Files that the definition uses are relative to
  /// `name`.
  static Model parse(const std::string& text, const ModelOptions& options = {}, const std::string& name = "definition");

  const std::string& name() const;
  const std::string& about() const;
  const Hyper& hyper() const;
  Dtype dtype() const;
  const OpTable* ops() const;  ///< The ops that its expressions may call.
  /// The weights by path, such as "h.0.attn.c_attn.weight". Tapes share these arrays. Every play reads their current
  /// values. An array lives as long as the model, a handle or a tape has it.
  const Store& weights() const;
  /// The weights that blocks update themselves ("update"), such as running means. No gradient trains them.
  std::vector<std::string> updated_weights() const;
  /// The weights of blocks from files in another format, such as ONNX. Their initial values come from these files.
  std::vector<std::string> weights_from_files() const;
  /// Returns the weight of this name. It shares its elements with the model. Errors are those of Store::at.
  Array weight(const std::string& name);
  /// Makes the model use the arrays of `memory`, with their current elements, as the weights of the same names. Tapes
  /// and players made before keep the old arrays. Throws Error, ShapeError or DtypeError if a name or a type does not
  /// match a weight. After an error, no weight has changed.
  void use_weights(const Store& memory);
  /// Converts weights to bfloat16, float16, int8 or a block format. int8 weights have a scale per output channel in
  /// NAME.scale. Only weights that functions use as matmul operands or in `take` are converted. These ops then read
  /// half to an eighth of the bytes. The other weights keep their dtype, as does a weight for which `dtypes` has the
  /// model's own. Numbers are rounded to nearest. Blocks consist of numbers that a product sums. A weight whose sums
  /// are not whole blocks of 256 numbers is stored as Q8_0, and keeps its dtype if they are not whole blocks of 32
  /// either. A weight of which the summed axes are not the last is stored with its axes in another order. Tapes and
  /// players made before keep the old arrays. Weights in blocks of another format become numbers first, which is not
  /// undone by an error. Throws DtypeError if a dtype is unsupported or a weight already has a different reduced dtype.
  /// Throws Error if a weight is not finite (int8, blocks) or out of range (bfloat16, float16, blocks).
  void store_weights_as(const WeightDtypes& dtypes);
  /// The same, but the converted weights become zero, to be read from files.
  void allocate_weights_as(const WeightDtypes& dtypes);
  /// The weights that store_weights_as stores with their axes in another order, and this order.
  const std::map<std::string, Axes>& orders() const;
  /// Returns the weights in the form that other programs expect. The "export" expressions of blocks merge weights, for
  /// example low-rank adapters into their base weights (docs/reference/definitions.md). All other weights share their
  /// arrays with weights(). Throws DefinitionError if an expression fails.
  Store exported_weights() const;
  /// Calls take(name, value) for each of these weights, of which one at a time is in memory.
  void for_each_exported(const std::function<void(const std::string& name, Array value)>& take) const;
  std::int64_t parameter_count() const;        ///< The number of elements of all weights.
  std::vector<ModuleSummary> modules() const;  ///< In the order of the definition, parents first.

  std::vector<std::string> functions() const;
  /// Returns the signature of a function. Throws Error with the nearest name if there is no such function. The
  /// reference is valid as long as the model.
  const Signature& signature(const std::string& function) const;

  /// Makes the inputs of `function` on `tape` for named sizes: inputs(tape, "loss", {{"b", 4}, {"t", 64}}). Sets the
  /// tape's default dtype and ops to those of the model, like `record`. If the tape already has an input of the same
  /// name and type, this is the input. Throws Error if a size is missing, unknown or negative, or the tape has an input
  /// of the same name and another type.
  NamedVars inputs(Tape& tape, const std::string& function, const NamedSizes& sizes) const;
  /// Records `function` on `tape`, in the tape's mode, and returns its results by name. `inputs` are any vars of the
  /// tape, one for each declared input. If `lines` is not null, record fills it with the intermediate values. Throws
  /// Error if the inputs do not fit the signature. Throws DefinitionError with file, block and line if a line of the
  /// definition fails for these shapes. After an error, nothing stays recorded.
  NamedVars record(Tape& tape, const std::string& function, const NamedVars& inputs,
                   RecordedLines* lines = nullptr) const;
  /// Returns the var of a weight on `tape`. Recorded functions use the same var, so gradients with respect to it are
  /// available. Throws Error with the nearest name if there is no such weight.
  Var weight(Tape& tape, const std::string& name) const;
  NamedVars weights(Tape& tape) const;  ///< The vars of all weights, in the order of weights().

  /// Returns `function`, recorded and planned for these sizes. The first call records it. Later calls use a cache that
  /// drops the least recently used function. The pointer stays valid. The players share an arena, so only one player
  /// may play at a time. Their results are separate. Errors of `inputs`, `record` and Player propagate.
  std::shared_ptr<PlayableFunction> player(const std::string& function, Mode mode, const NamedSizes& sizes);
  /// Plays `function` on arrays given by the names of its inputs: play("logits", {{"tokens", token_array({prompt})}}).
  /// The shapes of the arrays determine the sizes. Returns copies of the results. Ignores arrays of other names. Uses
  /// `player`, with random step 0. Throws Error if an input is missing, and DtypeError or ShapeError if an array has
  /// the wrong type.
  Store play(const std::string& function, const NamedArrays& arrays, Mode mode = Mode::eval);
  /// Returns the values of the named sizes in the signature of `function`, given the shapes of `arrays`. Inputs in
  /// `missing` need no array. Throws the same errors as `play` if an input is missing or has the wrong dtype or rank.
  NamedSizes sizes(const std::string& function, const NamedArrays& arrays,
                   const std::vector<std::string>& missing = {}) const;
  /// The players in the cache, starting with the most recently used.
  std::vector<std::shared_ptr<const PlayableFunction>> players() const;
  /// Sets the capacity of the cache (at least 1, initially 16) and the options of its players. If `options` has no
  /// arena, the players share a new arena. Empties the cache.
  void set_player_options(std::size_t capacity, const PlayerOptions& options);
  const PlayerOptions& player_options() const;

  /// Writes the weights like save_arrays. Throws FileError.
  void save_weights(const std::string& path) const;
  /// Reads weights from a safetensors file into the arrays that tapes share, converting float dtypes. Throws FileError
  /// if weights are missing, unexpected or of the wrong shape or dtype; the message lists all of them. Throws FileError
  /// if the file is damaged; the message names the damage. After an error, no weight has changed. Weights that the file
  /// lacks are read from the file `others` if it is not "".
  void load_weights(const std::string& path, const std::string& others = "");

  /// The definition as one JSON text with resolved hyper-parameters. The text needs no other file.
  const std::string& definition_text() const;

 private:
  struct Data;
  void narrow_weights(const WeightDtypes& dtypes, bool convert);
  explicit Model(std::unique_ptr<Data> data);
  Owner<Data> data_;
};

/// Returns the path of the definition `name`. If `name` is the path of a file, returns this path. Otherwise, a name
/// without a directory refers to a file in models_directory() or in its subfolder `folder`. `name` may omit ".json".
/// Throws FileError with the nearest name if there is no such file.
std::string find_definition(const std::string& name, const std::string& folder = "");
/// Returns the directory of the shared definitions. The environment variable XTAPE_MODELS comes first, then the install
/// prefix of the running program (also after a move), then the install prefix of the library.
std::string models_directory();

}  // namespace xtape
