/// A parsed definition: blocks, modules, weights and lines. Expressions are syntax trees that are not evaluated yet.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/json/json_text.hpp"
#include "model/language/syntax.hpp"
#include "xtape/array.hpp"
#include "xtape/file_block.hpp"

namespace xtape {
class OpTable;
}

namespace xtape::model {

struct Definition;
struct HuggingFaceMapping;

/// An input of a block or function: "x", "*others", or an input with a type such as "float [b, t, d]".
struct Input {
  std::string name;
  Location location;
  bool many = false;         ///< Whether the input takes all remaining arguments as a tuple.
  std::string kind = "any";  ///< "any", "int", "float", or the name of a dtype.
  bool optional = false;     ///< Whether the input may be none.
  bool has_dims = false;
  std::vector<Line> dims;  ///< The sizes, one per axis. An ellipsis matches any number of axes.
};

/// The lines to record in order, and the results.
struct Computation {
  std::vector<Line> lines;
  /// The results and their names. Unnamed results form one line named "".
  std::vector<std::pair<std::string, Line>> results;
};

/// A parameter of a block, or a hyper-parameter of a file.
struct Parameter {
  std::string name;
  Location location;
  std::optional<Line> initial;  ///< The default. The parameter is required if there is no default.
};

struct WeightSpec {
  std::string name;
  Location location;
  std::vector<Line> shape;
  Line init;  ///< The value is the name of an initialiser.
  /// The settings of the initialiser. If `init` is not the name of one, they may be settings of any initialiser.
  std::vector<std::pair<std::string, Line>> settings;
  std::optional<Line> when;    ///< If its value is false, the model does not have the weight.
  std::optional<Array> value;  ///< The initial value, for a block from a file.
};

/// Expressions by name.
using Settings = std::vector<std::pair<std::string, Line>>;

/// The declaration of a module: the block that it instantiates, and its settings.
struct ModuleSpec {
  std::string name;
  Location location;
  const Json* identity = nullptr;    ///< The JSON value of its entry, which identifies the module.
  const Definition* home = nullptr;  ///< The file in which `block` is looked up.
  bool given = false;                ///< Whether the entry is null, so that the user of the block supplies the module.
  Line block;                        ///< The value is the name of a block.
  std::optional<Line> repeat, when;
  bool checkpoint = false;
  Settings settings;                ///< Values of the block's parameters.
  std::vector<ModuleSpec> modules;  ///< Modules supplied for the block's modules that are declared as null.
};

/// Maps names to indices in a list. Lookup must be fast, because a file may contain very many entries.
using Index = std::map<std::string, std::size_t>;

struct Block {
  std::string name;  ///< "" for the model itself.
  JsonNode node;     ///< The entry of the block, with the changes that other files make.
  Location location;
  const Definition* home = nullptr;
  std::vector<Parameter> parameters;
  std::vector<WeightSpec> weights;
  std::vector<ModuleSpec> modules;
  Index parameter_index, weight_index, module_index;
  std::vector<Input> inputs;
  Computation computation;
  std::vector<std::pair<std::string, Line>> exports;  ///< Exported weights, by the names that other programs use.
  std::vector<std::pair<std::string, Line>> updates;  ///< New values of weights in training, by name.
  std::shared_ptr<const FileBlock> from_file;         ///< Records the block. Null for a block that lines describe.
  std::string file;                                   ///< The file of `from_file`, as the definition names it.

  bool updated(const std::string& weight) const {
    return std::ranges::any_of(updates, [&](const auto& update) { return update.first == weight; });
  }
};

struct Function {
  std::string name;
  Location location;
  std::vector<Input> inputs;
  Computation computation;
};

/// The version of the format of definitions and recipes.
inline constexpr int format_version = 2;

/// One file, merged with the files that it extends.
struct Definition {
  std::string file;
  JsonNode node;
  /// The files that this file extends, directly or indirectly. The base file comes first.
  std::vector<JsonNode> extended;
  std::string name, about;
  /// A file that this file uses, and its name in the entry "use".
  struct Used {
    std::string name;
    std::shared_ptr<const Definition> file;
  };
  std::vector<Used> used;
  std::vector<Parameter> hyper;
  Index hyper_index;
  /// Values of block parameters by name. They apply to modules of this file that do not set the parameter.
  std::map<std::string, Line> defaults;
  std::shared_ptr<const HuggingFaceMapping> hugging_face;  ///< Null if the entry is missing.
  std::vector<std::unique_ptr<Block>> blocks;
  std::map<std::string, const Block*> block_index;  ///< The blocks by name.
  /// The blocks of used files that this file changes, each with its changed form, which the used files get, too.
  std::map<const Block*, const Block*> changed;
  std::set<std::string> reachable;     ///< The blocks of this file and of all files that it uses, directly or not.
  std::unique_ptr<const Block> model;  ///< Null in a file that only defines blocks and functions.
  std::vector<Function> functions;
  Index function_index;
  std::set<std::string> removed;  ///< Functions whose last entry is null.

  /// Returns a block of this file or of a file that it uses directly. Returns null if no block has this name.
  const Block* find_block(const std::string& name) const;
  /// Returns the block that a model of this file has in place of `block`.
  const Block* in_place_of(const Block* block) const;
  /// Returns null if the model has no function of this name.
  const Function* find_function(const std::string& name) const;
  std::vector<std::string> block_names() const;
};

/// The end of the name of a definition that adds adapters to another definition: "gpt2_lora".
inline constexpr const char* adapter_suffix = "_lora";
/// If `path` is not a file but the path of another definition with adapter_suffix, returns the path of the other one:
/// "llama.json" for "llama_lora.json". Otherwise returns "".
std::string adapted_definition(const std::string& path);

/// Reads a definition and all files that it uses or extends. If adapted_definition gives the path of a definition,
/// reads this definition with the changes of models/changes/lora.json. Throws FileError or DefinitionError.
std::shared_ptr<const Definition> read_definition(const std::string& path);
/// Like read_definition, but reads from `text`. Errors call the text `file`. Paths of other files are relative to the
/// directory of `file`.
std::shared_ptr<const Definition> parse_definition(const std::string& text, const std::string& file);

/// Checks that every name in the lines of every block and function is known, and that calls of ops have known keywords.
/// Throws DefinitionError. The check needs no values of hyper-parameters, so it also covers blocks that the model does
/// not use. Returns the hyper-parameters of the definition that have an effect: a line, a program or the mapping to
/// folders mentions them. Those that a file sets for a file that it extends must have an effect; if `strict`, those of
/// all files must. Appends to `warnings` the names of modules, weights, parameters and used blocks that others hide.
std::set<std::string> check_names(const Definition& definition, const OpTable& ops, bool strict = false,
                                  std::vector<std::string>* warnings = nullptr);

}  // namespace xtape::model
