/// Reads the pieces of a definition from JSON.
#pragma once

#include "definition.hpp"

namespace xtape::model {

/// A string holds an expression; a number or flag stands for itself.
Line read_expression(const JsonNode& node);
std::vector<Parameter> read_parameters(const JsonNode& node);
std::unique_ptr<Block> read_block(const std::string& name, const JsonNode& node, const Definition& home);
/// The "model" entry: parts and weights without inputs. Its functions are read apart.
std::unique_ptr<const Block> read_model(const JsonNode& node, const Definition& home);
std::vector<Function> read_functions(const JsonNode& node, const Block& model);

}  // namespace xtape::model
