/// Reads the entries of a definition from JSON. All functions throw DefinitionError.
#pragma once

#include <memory>
#include <string>

#include "model/definition/definition.hpp"

namespace xtape::model {

// Blocks from files in another format: {"onnx": "backbone.onnx", "outputs": ["features"]}.

/// The location of a block's file. The file is at `path`, or inside a self-contained text, as an entry of "files" that
/// embedded_file wrote.
struct BlockSource {
  std::string path;
  JsonNode embedded = {};
  bool is_embedded = false;
};

/// Reads the block that an entry describes. Throws DefinitionError.
std::unique_ptr<Block> read_file_block(const std::string& name, const JsonNode& entry, const BlockSource& source,
                                       const Definition& home);
/// Returns the entry for the block's file in a self-contained text: the file without the elements of weights, and the
/// shapes of the weights.
Json embedded_file(const Block& block);

/// The entries of a JSON object by name, each with its source location.
using Entries = std::vector<std::pair<std::string, JsonNode>>;

/// Merges the objects `key` of all nodes that have this key. If several entries have the same name, the last entry wins
/// and keeps the position of the first. An entry {"change": {…}} changes parts of the previous entry of the same name.
/// If there is no previous entry, it changes the entry of this name in `inherited`; functions of used files cannot be
/// changed. A null function removes the function; if `inherited` has it, the null stays. An entry of modules or weights
/// with several names, "a, b", becomes several entries. Errors about the entries name `owner`.
Entries merged(const std::vector<JsonNode>& nodes, const std::string& key, const std::string& owner = "",
               const Entries& inherited = {});
/// Returns the functions that a file provides to the models that use it.
Entries shared_functions(const Definition& file);
/// Returns the functions that the files used by a definition provide to its model.
Entries used_functions(const Definition& definition);

/// Returns whether an entry has the form {"change": {…}}.
bool is_change(const JsonNode& entry);
/// Applies `change`, {"change": {…}}, to the entry `base` and returns the result. Both are entries called `name` of the
/// object `key`.
JsonNode changed(const JsonNode& base, const JsonNode& change, const std::string& name, const std::string& key);

/// Returns the list "do" after a change of its lines. Each entry of `change` has names and an expression. If a line of
/// the list assigns these names, the entry replaces this line. Otherwise the entry becomes a new line before the first
/// line that uses one of the names. `last` contains the results and updates, which come after all lines.
JsonNode changed_lines(const std::vector<JsonNode>& list, const JsonNode& change, const std::vector<JsonNode>& last);

/// Parses a string as an expression. A number or flag becomes a literal.
Line read_expression(const JsonNode& node);
/// Returns the parameters that an entry sets, by name or under "pass".
Settings read_settings(const JsonNode& node);
/// Returns the index of each element by name.
template <class Named>
Index index_of(const std::vector<Named>& list) {
  Index index;
  for (std::size_t i = 0; i < list.size(); ++i) index.emplace(list[i].name, i);
  return index;
}
std::vector<Parameter> read_parameters(const Entries& entries);
std::unique_ptr<Block> read_block(const std::string& name, const JsonNode& node, const Definition& home);
/// Reads a block with the modules and weights of the model. The block has no inputs. `nodes` are a file and the files
/// that it extends; their entries "model" are merged. read_functions reads the functions of the model.
std::unique_ptr<const Block> read_model(const std::vector<JsonNode>& nodes, const Definition& home);
std::vector<Function> read_functions(const Entries& entries, const Block& model);

}  // namespace xtape::model
