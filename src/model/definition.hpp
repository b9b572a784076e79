/// A definition as its files give it: blocks, modules, weights and lines, parsed and checked, with nothing resolved
/// yet.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hugging_face_mapping.hpp"
#include "json_text.hpp"
#include "syntax.hpp"
#include "xtape/array.hpp"

namespace xtape {
class OpTable;
}

namespace xtape::model {

struct Definition;

/// An input of a block or function: "x", "*others", or with a type: "float [b, t, d]".
struct Input {
  std::string name;
  Place place;
  bool many = false;         ///< Takes all remaining arguments, as a tuple.
  std::string kind = "any";  ///< "any", "int", "float", or the name of a dtype.
  bool has_dims = false;
  std::vector<Line> dims;  ///< One an axis; a form of ellipsis stands for any number of axes.
};

/// Lines to record in turn, then the results.
struct Computation {
  std::vector<Line> lines;
  std::vector<std::pair<std::string, Line>> results;  ///< One, under "", unless results are named.
};

/// A parameter of a block, or a hyper-parameter of a file.
struct Parameter {
  std::string name;
  Place place;
  std::optional<Line> initial;  ///< Without one it must be given.
};

struct WeightSpec {
  std::string name;
  Place place;
  std::vector<Line> shape;
  std::string init;
  std::optional<Line> choice;                          ///< Instead of `init`: an expression whose value is its name.
  std::vector<std::pair<std::string, Line>> settings;  ///< Of the initialiser; of all of them, where one is chosen.
  std::optional<Line> when;                            ///< False leaves the weight out.
};

/// How a block becomes a module of another.
struct ModuleSpec {
  std::string name;
  Place place;
  const Json* identity = nullptr;    ///< Where it is described.
  const Definition* home = nullptr;  ///< Whose blocks `block` names.
  bool given = false;                ///< Declared as null: whoever uses the block gives the module.
  std::string block;
  std::optional<Line> choice;  ///< Instead of `block`: an expression whose value is the block's name.
  std::optional<Line> repeat, when;
  bool checkpoint = false;
  std::vector<std::pair<std::string, Line>> settings;  ///< Of the block's parameters.
  std::vector<ModuleSpec> modules;                     ///< For the block's modules that are declared as null.
};

/// What is no longer called so, and what to write now.
using Renamed = std::map<std::string, std::string>;

/// For an error about `name`: what `renamed` says of it, else the nearest of `names`, else nothing.
std::string now_called(const std::string& name, const Renamed& renamed, const std::vector<std::string>& names);

struct Block {
  std::string name;  ///< "" for the model itself.
  Place place;
  const Definition* home = nullptr;
  std::vector<Parameter> parameters;
  std::map<std::string, std::size_t> parameter_index;  ///< By name.
  std::vector<WeightSpec> weights;
  std::vector<ModuleSpec> modules;
  std::vector<Input> inputs;
  Computation computation;
  Renamed renamed;  ///< Its parameters.
};

struct Function {
  std::string name;
  Place place;
  std::vector<Input> inputs;
  Computation computation;
};

/// The latest version of the format, and the oldest that is read.
inline constexpr int latest_version = 2, oldest_version = 1;

/// One file, with what it extends.
struct Definition {
  std::string file;
  JsonNode node;
  std::vector<JsonNode> extended;  ///< The files that this one extends, the first before those that extend it.
  int version = latest_version;
  std::string name, about;
  /// A file that this one uses, and the name that it uses it by.
  struct Used {
    std::string name;
    std::shared_ptr<const Definition> file;
  };
  std::vector<Used> used;
  std::vector<Parameter> hyper;
  std::map<std::string, std::size_t> hyper_index;  ///< By name: files may have very many.
  std::optional<HuggingFaceMapping> hugging_face;
  std::vector<std::unique_ptr<Block>> blocks;
  std::unique_ptr<const Block> model;  ///< Null in a file of blocks.
  std::vector<Function> functions;
  Renamed renamed;  ///< Its hyper-parameters and blocks.

  /// A block of this file or of one that it uses directly; null where there is none.
  const Block* find_block(const std::string& name) const;
  /// Null where the model has no function of that name.
  const Function* find_function(const std::string& name) const;
  std::vector<std::string> block_names() const;
  /// Of a block that there is none of: what to write instead, for an error.
  std::string instead_of_block(const std::string& name) const;
};

/// Reads a definition and all it uses. Throws FileError or DefinitionError.
std::shared_ptr<const Definition> read_definition(const std::string& path);
/// The same from a text; `file` stands for it in errors, and `use` looks beside it.
std::shared_ptr<const Definition> parse_definition(const std::string& text, const std::string& file);

/// Checks every name in the lines of every block and function: that it is known, that what is called can be called with
/// these keywords. Needs no hyper-parameters, so that it covers blocks that no model uses.
void check_names(const Definition& definition, const OpTable& ops);

}  // namespace xtape::model
