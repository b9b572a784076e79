/// Reads ONNX files as models: opens a file, records it on a tape, gives access to its weights by name. Also exports
/// tapes to ONNX files. The library xtape-onnx contains these functions. It needs only xtape-core. docs/how_to/onnx.md
/// lists the supported operators.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "xtape/file_block.hpp"
#include "xtape/tape.hpp"

namespace xtape {

namespace onnx {
struct ModelData;
}

struct OnnxOptions {
  /// The dtype of all floats of the model: float32 or float64. By default, the file determines the dtypes.
  std::optional<Dtype> floats = std::nullopt;
};

/// An input or output of a model.
struct OnnxValue {
  std::string name;
  Dtype dtype = Dtype::float32;
  bool ranked = false;                   ///< Whether the file gives the number of axes.
  std::vector<std::int64_t> sizes = {};  ///< If `ranked`, the sizes; -1 for a dynamic dimension.
  /// For each size, its name if it is dynamic. Empty if it is fixed or has no name.
  std::vector<std::string> names = {};
};

/// A model read from a file. Copies share its weights. Const functions are safe in several threads at once if the tapes
/// differ.
class OnnxModel {
 public:
  // No moves, so that a model is never empty.
  OnnxModel(const OnnxModel&) = default;
  OnnxModel& operator=(const OnnxModel&) = default;
  /// In the order of `record`. Inputs with initial values are not included.
  const std::vector<OnnxValue>& inputs() const;
  const std::vector<OnnxValue>& outputs() const;  ///< In the order of the results of `record`.
  std::int64_t opset() const;                     ///< The version of the ONNX operators that the file uses.
  /// The float initialisers, by name. Tapes share these arrays. Every play reads their current values.
  const Store& weights() const;
  /// Returns the tape parameters of the weights. `record` uses the same parameters, so gradients with respect to them
  /// are available.
  NamedVars weights(Tape& tape) const;
  /// Records the model on the tape of `inputs`, and returns its outputs. The sites of the tape's nodes contain the
  /// names of the nodes in the file.
  ///
  /// Some inputs of nodes determine shapes (axes, sizes, repetitions). They must be constant at record time:
  /// attributes, initialisers, or values computed from these and from shapes. Otherwise, `record` throws Error. Throws
  /// Error if the number of inputs is wrong. Throws ShapeError or DtypeError if an input does not match the file;
  /// dynamic dimensions of the same name must be equal. Errors of ops propagate, with the name of the node. After an
  /// error, nothing stays recorded.
  Vars record(Tape tape, const Vars& inputs) const;
  /// Records the model and returns the named intermediate values instead of its outputs. Use it to truncate or inspect
  /// a model. Throws Error if a name belongs to no node, input or initialiser.
  Vars record(Tape tape, const Vars& inputs, const std::vector<std::string>& values) const;

 private:
  friend OnnxModel open_onnx(const std::string& path, const OnnxOptions& options);
  explicit OnnxModel(std::shared_ptr<const onnx::ModelData> data) : data_(std::move(data)) {}
  std::shared_ptr<const onnx::ModelData> data_;
};

/// Reads a model. Throws FileError if the file or its external data is unreadable or damaged. Throws Error with a list
/// of nodes if an operator is unsupported. Throws Error or DtypeError if a value is not an array or has an unsupported
/// type, if the opset is later than 23, or if `floats` is neither float32 nor float64.
OnnxModel open_onnx(const std::string& path, const OnnxOptions& options = {});

/// Opens an ONNX file as a block of a definition. read_onnx_blocks() registers this function as the reader.
std::shared_ptr<const FileBlock> open_onnx_block(const BlockFile& file);

/// Returns the float initialisers of an ONNX file by name, whatever its operators are. Throws FileError or DtypeError
/// as open_onnx does.
Store load_onnx_weights(const std::string& path);

/// Registers the ONNX readers. After this call, definitions can contain blocks {"onnx": "model.onnx"}, and trainings
/// can start with the weights of such files. A program that calls this function must link xtape, too.
inline void read_onnx_blocks() {
  set_onnx_block_reader(open_onnx_block);
  set_weight_reader(".onnx", load_onnx_weights);
}

/// Returns the names of the ONNX operators that xtape reads, in alphabetical order.
std::vector<std::string> onnx_operators();

struct OnnxSaveOptions {
  std::int64_t opset = 18;  ///< The version of the ONNX operators, 18 to 23.
  /// The graph inputs to write, in this order. Each is an input of the tape or an intermediate value. save_onnx omits
  /// the computation of such an intermediate value. If empty, save_onnx writes the inputs of the tape that the outputs
  /// depend on, under their own names.
  NamedVars inputs = {};
  /// If the file would be larger, save_onnx writes the large arrays to a second file named PATH.data. The default is
  /// the limit of protocol buffers, which is also the maximum.
  std::uint64_t largest_file = (std::uint64_t{1} << 31) - 1;
};

/// Writes the computation of `outputs` as an ONNX model for inference. The model contains no dropout and no checks
/// (watch, indices in range). The shapes are those of the tape. Parameters become initialisers under their names. The
/// paths of the sites become the names of nodes. Ops that ONNX lacks are written as their expansions. Each file is
/// replaced atomically, but a model and its PATH.data are replaced one after the other. A crash in between leaves an
/// old model beside new data.
///
/// Throws Error if a call cannot be exported; the message lists all such calls with their source locations. Throws
/// Error if there are no outputs, a name is empty or occurs twice, the opset is unsupported, or the outputs need an
/// input that `inputs` lacks. Throws HandleError if the vars belong to several tapes, FileError if a file cannot be
/// written. After an error, all files are as before.
void save_onnx(const std::string& path, const NamedVars& outputs, const OnnxSaveOptions& options = {});

/// Records the computation to export for the given sizes on a new tape. Returns the tape with its named inputs and
/// outputs.
using OnnxRecord = std::function<SavedTape(const NamedSizes& sizes)>;

/// Exports a model with dynamic axes. The dimensions named in `open` are symbolic in the file, so the model accepts any
/// value of them. save_onnx calls `record` with several sets of sizes and compares the graphs. It finds each integer
/// (shape, slice bound, index range) that is a multilinear polynomial of the sizes. The file computes these integers
/// from the shapes of its inputs. For each dynamic dimension, at least one input must have an axis of exactly this
/// size. save_onnx does not detect special cases in `record` for small sizes.
///
/// Errors of the other save_onnx and of `record` propagate. Throws Error with the size and the node if the graph
/// depends on a size in another way. Throws Error if there are no or more than 4 dynamic dimensions, a name occurs
/// twice, `record` is empty, or options.inputs is not empty.
void save_onnx(const std::string& path, const std::vector<std::string>& open, const OnnxRecord& record,
               const OnnxSaveOptions& options = {});

/// Copies the ONNX file `original` to `path` and replaces the initialisers named in `weights`. Use it to export trained
/// weights with the original graph. Nodes, metadata and versions stay unchanged. Floats are rounded to the type in the
/// file. `largest_file` is that of OnnxSaveOptions.
///
/// Throws Error if the file has no initialiser of a name, ShapeError if its shape differs, DtypeError if it is not a
/// float. Throws FileError if a file is unreadable, damaged or cannot be written.
void save_onnx_weights(const std::string& path, const std::string& original, const Store& weights,
                       std::uint64_t largest_file = (std::uint64_t{1} << 31) - 1);

/// Returns the ops that have an equivalent ONNX operator, in alphabetical order. save_onnx writes other ops as their
/// expansions.
std::vector<std::string> onnx_written_ops();

}  // namespace xtape
