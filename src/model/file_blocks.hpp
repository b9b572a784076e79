/// Blocks from files in another format: {"onnx": "backbone.onnx", "outputs": ["features"]}.
#pragma once

#include <memory>
#include <string>

#include "definition.hpp"

namespace xtape::model {

/// Where the file of a block is: at `path`, or in the text itself, as an entry of "files" that embedded_file made.
struct BlockSource {
  std::string path;
  JsonNode embedded = {};
  bool is_embedded = false;
};

/// Reads the block of this entry. Throws DefinitionError.
std::unique_ptr<Block> read_file_block(const std::string& name, const JsonNode& entry, const BlockSource& source,
                                       const Definition& home);
/// What a text without other files says of the block's file: the file without the elements of weights, and the shapes
/// of the weights.
Json embedded_file(const Block& block);

}  // namespace xtape::model
