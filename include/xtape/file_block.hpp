/// Blocks of definitions and initial weights that come from files in other formats. The library of a format implements
/// these interfaces.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "xtape/tape.hpp"

namespace xtape {

/// The file of a block.
struct BlockFile {
  std::string path;   ///< The path of the file. If `bytes` is not empty, only errors use this path.
  std::string bytes;  ///< If not empty, the result of FileBlock::without_weights, which replaces the file.
  Store weights;      ///< With `bytes`: arrays with the shapes of all weights of the file.
  std::vector<std::string> outputs;  ///< The names of the values to return. Empty: the outputs of the file.
};

/// A computation with weights. Each module with this block has its own copies of the weights.
class FileBlock {
 public:
  virtual ~FileBlock() = default;
  virtual const std::vector<std::string>& inputs() const = 0;   ///< The names of the inputs, in order.
  virtual const std::vector<std::string>& outputs() const = 0;  ///< The names of the outputs, in order.
  virtual const Store& weights() const = 0;  ///< The weights that the outputs depend on, with their values in the file.
  /// Records the outputs. `weight(name)` returns a weight on the tape. Floats have the dtype `floats`. The sites of
  /// nodes begin with `path`. Throws Error if the inputs do not fit.
  virtual Vars record(Tape tape, const Vars& inputs, const std::function<Var(const std::string&)>& weight, Dtype floats,
                      const std::string& path) const = 0;
  /// Returns the file without the elements of weights. The result and the shapes of the weights are enough to read the
  /// block again.
  virtual std::string without_weights() const = 0;
};

/// Reads a block. Throws Error if the file cannot be read or lacks an output.
using BlockReader = std::shared_ptr<const FileBlock> (*)(const BlockFile& file);

/// Enables blocks {"onnx": "model.onnx"} in definitions, in all threads. See read_onnx_blocks (xtape/onnx.hpp).
void set_onnx_block_reader(BlockReader reader);

/// Returns the arrays of a file by their names. Throws Error if the file cannot be read.
using WeightReader = Store (*)(const std::string& path);

/// Lets trainings start with the weights of files whose names end with `ending`, such as ".onnx", in all threads.
void set_weight_reader(const std::string& ending, WeightReader reader);

}  // namespace xtape
