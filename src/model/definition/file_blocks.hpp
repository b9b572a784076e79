/// Blocks from files in another format: {"onnx": "backbone.onnx", "outputs": ["features"]}.
#pragma once

#include <memory>
#include <string>

#include "model/definition/definition.hpp"

namespace xtape::model {

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

}  // namespace xtape::model
