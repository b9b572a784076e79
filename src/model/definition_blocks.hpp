/// Reads the pieces of a definition from JSON.
#pragma once

#include "definition.hpp"

namespace xtape::model {

/// Entries of objects by name, each with its place.
using Entries = std::vector<std::pair<std::string, JsonNode>>;

/// The key under which a definition of that version lists modules.
const char* modules_key(int version);

/// The entries of the object `key` of all nodes that have one: of one name, the last, where the first one stands. In
/// errors they belong to `owner`.
Entries merged(const std::vector<JsonNode>& nodes, const std::string& key, const std::string& owner = "");

/// A string holds an expression; a number or flag stands for itself.
Line read_expression(const JsonNode& node);
Renamed read_renamed(const Entries& entries);
/// Where each of the parameters is.
std::map<std::string, std::size_t> index_of(const std::vector<Parameter>& parameters);
std::vector<Parameter> read_parameters(const Entries& entries);
std::unique_ptr<Block> read_block(const std::string& name, const JsonNode& node, const Definition& home);
/// The "model" entries of a file and of those that it extends: modules and weights without inputs. Their functions are
/// read apart.
std::unique_ptr<const Block> read_model(const std::vector<JsonNode>& nodes, const Definition& home);
std::vector<Function> read_functions(const Entries& entries, const Block& model);

}  // namespace xtape::model
