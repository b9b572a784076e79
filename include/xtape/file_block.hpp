/// Blocks of definitions that come from a file in another format: what the library of the format provides.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "xtape/tape.hpp"

namespace xtape {

/// What a block says about its file.
struct BlockFile {
  std::string path;                  ///< The path of the file; if `bytes` is not empty, the name for errors.
  std::string bytes;                 ///< Not empty: what FileBlock::without_weights gave, in place of the file.
  Store weights;                     ///< With `bytes`: arrays of the shapes of all weights of the file.
  std::vector<std::string> outputs;  ///< Values of the file by name; empty: its outputs.
};

/// A computation with weights. Modules with this block have their own copies of the weights.
class FileBlock {
 public:
  virtual ~FileBlock() = default;
  virtual const std::vector<std::string>& inputs() const = 0;   ///< Their names, in order.
  virtual const std::vector<std::string>& outputs() const = 0;  ///< Their names, in order.
  virtual const Store& weights() const = 0;  ///< Those that the outputs depend on, with their values in the file.
  /// Records the outputs. `weight(name)` gives a weight on the tape; floats have the dtype `floats`. The sites of nodes
  /// begin with `path`. Throws Error if the inputs do not fit.
  virtual Vars record(Tape tape, const Vars& inputs, const std::function<Var(const std::string&)>& weight, Dtype floats,
                      const std::string& path) const = 0;
  /// The file without the elements of weights: from it and their shapes, the block can be read again.
  virtual std::string without_weights() const = 0;
};

/// Reads a block. Throws Error if the file cannot be read, or lacks one of the outputs.
using BlockReader = std::shared_ptr<const FileBlock> (*)(const BlockFile& file);

/// Lets definitions have blocks {"onnx": "model.onnx"}, in all threads. See read_onnx_blocks (xtape/onnx.hpp).
void set_onnx_block_reader(BlockReader reader);

}  // namespace xtape
