/// Reads the entries of a definition from JSON. All functions throw DefinitionError.
#pragma once

#include "definition.hpp"

namespace xtape::model {

/// The entries of a JSON object by name, each with its source location.
using Entries = std::vector<std::pair<std::string, JsonNode>>;

/// The key under which a definition of that version lists modules: "modules", in version 1 "parts".
const char* modules_key(int version);

/// Merges the objects `key` of all nodes that have one. Of several entries of one name, the last one wins and keeps the
/// position of the first; an entry {"change": {…}} changes parts of the one before it, or of the one in `inherited`. An
/// entry of modules or weights with several names, "a, b", becomes several. Errors about the entries name `owner`.
Entries merged(const std::vector<JsonNode>& nodes, const std::string& key, const std::string& owner = "",
               const Entries& inherited = {});

/// Whether an entry is {"change": {…}}.
bool is_change(const JsonNode& entry);
/// The entry that `change`, {"change": {…}}, makes of `base`. Both are entries called `name` of the object `key`.
JsonNode changed(const JsonNode& base, const JsonNode& change, const std::string& name, const std::string& key);

/// The list "do" with other lines: an entry whose name is assigned by a line replaces this line, and any other entry is
/// a line in front of the first one that uses it. `last` are the results and updates, which come after all lines.
JsonNode changed_lines(const std::vector<JsonNode>& list, const JsonNode& change, const std::vector<JsonNode>& last);

/// Parses a string as an expression; a number or flag is a literal.
Line read_expression(const JsonNode& node);
/// The parameters that an entry sets, by name or under "pass".
Settings read_settings(const JsonNode& node);
Renamed read_renamed(const Entries& entries);
/// The index of each element by its name.
template <class Named>
Index index_of(const std::vector<Named>& list) {
  Index index;
  for (std::size_t i = 0; i < list.size(); ++i) index.emplace(list[i].name, i);
  return index;
}
std::vector<Parameter> read_parameters(const Entries& entries);
std::unique_ptr<Block> read_block(const std::string& name, const JsonNode& node, const Definition& home);
/// Merges the entries "model" of a file and of those that it extends into a block of modules and weights without
/// inputs. read_functions reads their functions.
std::unique_ptr<const Block> read_model(const std::vector<JsonNode>& nodes, const Definition& home);
std::vector<Function> read_functions(const Entries& entries, const Block& model);

}  // namespace xtape::model
