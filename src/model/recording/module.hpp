/// The modules of a model. Each module is a block with resolved parameters and with its weights in the store.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/definition/definition.hpp"
#include "model/language/value.hpp"
#include "nn/layers.hpp"
#include "xtape/op/op.hpp"

namespace xtape::model {

/// The place of a computation in the file from which its definition was copied.
struct OriginalPlace {
  std::string file;
  std::map<std::int32_t, std::int32_t> lines;  ///< Maps lines of the copy to lines of the original.
  std::map<std::int32_t, std::string> files;   ///< Maps lines of the copy to files, for lines that are in another file.
};

/// The data that all modules of a model share.
struct ModelContext {
  std::shared_ptr<const Definition> definition;
  const OpTable* ops = nullptr;
  Dtype dtype = Dtype::float32;
  std::uint64_t seed = 0;
  bool initialise = true;
  std::vector<std::string> initialised = {};  ///< See ModelOptions.
  std::int64_t max_steps = 0;
  std::map<const Definition*, Values> hyper;                   ///< The resolved hyper-parameters of each file.
  std::map<const Computation*, OriginalPlace> originals = {};  ///< For a copy: see find_original.
  Store store;
  /// The axes of weights that are stored in blocks, in the order in which they are stored, unless that is their own.
  std::map<std::string, Axes> orders = {};
};

struct Weight {
  const WeightSpec* spec = nullptr;
  std::string path;  ///< The name of the weight in the store. Empty if `when` is false.
  Shape shape;
  Initialiser initialiser;
};

/// The instances of one declared module: one, several (`repeat`), or none (`when` is false).
struct ModuleList {
  const ModuleSpec* spec = nullptr;
  bool repeated = false;
  std::vector<std::unique_ptr<Module>> items;
};

/// A module that the user of a block supplies. Its expressions see the names that are visible to the user of the block.
struct GivenModule {
  const ModuleSpec* spec = nullptr;
  const Module* giver = nullptr;  ///< The user: the module whose block declares this one.
  Values locals;                  ///< `index`, if the user repeats the block.
};

/// The scopes of the nodes that a computation records. A block that a file changes has lines from several files.
struct LineScopes {
  std::shared_ptr<const Scope> main;
  std::map<const Line*, std::shared_ptr<const Scope>> others = {};  ///< The scopes of lines in other files.

  const std::shared_ptr<const Scope>& of(const Line& line) const {
    const auto found = others.find(&line);
    return found == others.end() ? main : found->second;
  }
};

struct Module {
  std::string path;  ///< "h.0.attn"; "" for the model itself.
  const Block* block = nullptr;
  Values parameters;
  std::vector<Weight> weights;
  std::vector<ModuleList> modules;
  std::map<std::string, GivenModule> given;
  LineScopes scopes;

  const Weight* find_weight(const std::string& name) const;
  const ModuleList* find_module(const std::string& name) const;
};

/// Resolves the hyper-parameters of `context.definition` and of all files that it uses. `overrides` apply only to the
/// hyper-parameters of `context.definition`. Throws DefinitionError.
void resolve_hyper(ModelContext& context, const std::vector<std::pair<std::string, std::string>>& overrides);

/// Finds the places of all computations in `file`, from which `context.definition` was copied. Does nothing if the text
/// of `file` has changed. Hyper-parameters must be resolved.
void find_original(ModelContext& context, const std::string& file);
/// Returns the scopes of `computation` in the module `path`. The computation is at `location` and belongs to `what`,
/// such as "block 'attention'". The scopes refer to the places in the original file.
LineScopes scopes_of(const ModelContext& context, const std::string& path, const Location& location,
                     const std::string& what, const Computation& computation);

/// Creates all modules of the model, and their weights in the store. Throws DefinitionError, also if a weight or module
/// is unused.
std::unique_ptr<Module> build_modules(ModelContext& context);

}  // namespace xtape::model
