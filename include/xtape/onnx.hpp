/// Models from ONNX files: open one, record it on a tape, access its weights by name; and tapes as ONNX files. In the
/// library xtape-onnx, which needs xtape-core only. docs/onnx.md lists what is read and written.
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
  /// float32 or float64: the dtype of all floats of the model, whatever the file says. By default they are as the file
  /// says.
  std::optional<Dtype> floats = std::nullopt;
};

/// An input or output of a model.
struct OnnxValue {
  std::string name;
  Dtype dtype = Dtype::float32;
  bool ranked = false;                   ///< Whether the file gives its number of axes.
  std::vector<std::int64_t> sizes = {};  ///< If so, its sizes; -1 for those that the file leaves open.
  std::vector<std::string> names = {};   ///< For each size the name of one that is open; empty without a name.
};

/// A model that was read from a file. Copies share its weights. Const functions are safe in several threads at once,
/// with different tapes.
class OnnxModel {
 public:
  // Without moves, so that a model is never empty.
  OnnxModel(const OnnxModel&) = default;
  OnnxModel& operator=(const OnnxModel&) = default;
  const std::vector<OnnxValue>& inputs() const;   ///< In the order of `record`, without those that have initial values.
  const std::vector<OnnxValue>& outputs() const;  ///< In the order of the results of `record`.
  std::int64_t opset() const;                     ///< The version of ONNX's operators that the file uses.
  /// The initialisers of floats, by name. Tapes share these arrays: every play reads the present elements.
  const Store& weights() const;
  /// The weights as parameters of the tape, for gradients: those that `record` uses.
  NamedVars weights(Tape& tape) const;
  /// Records the model on the tape of `inputs`, and returns its outputs. The nodes of the tape get the names of the
  /// file's nodes as their sites.
  ///
  /// What decides shapes (axes, sizes, repetitions) must be known while recording: an attribute, an initialiser, or
  /// computed from those and from shapes of other values; else Error. Throws Error also for a wrong number of inputs,
  /// ShapeError and DtypeError for inputs that are not as the file says (open sizes of one name are equal), and what
  /// the ops throw; the error names the node. Then nothing stays recorded.
  Vars record(Tape tape, const Vars& inputs) const;
  /// The same, but returns the values of these names, of any nodes, instead of the outputs: to cut a model, or to look
  /// inside. Throws Error for a name that no node, input or initialiser has.
  Vars record(Tape tape, const Vars& inputs, const std::vector<std::string>& values) const;

 private:
  friend OnnxModel open_onnx(const std::string& path, const OnnxOptions& options);
  explicit OnnxModel(std::shared_ptr<const onnx::ModelData> data) : data_(std::move(data)) {}
  std::shared_ptr<const onnx::ModelData> data_;
};

/// Reads a model. Throws FileError if the file, or one with external data beside it, cannot be read or is damaged;
/// Error, which lists the nodes, if it has operators that xtape lacks; Error or DtypeError for values that are no
/// arrays or of types that xtape lacks, for versions of the operators after 23, and for `floats` of another dtype.
OnnxModel open_onnx(const std::string& path, const OnnxOptions& options = {});

/// The file as a block of definitions: the reader that read_onnx_blocks sets.
std::shared_ptr<const FileBlock> open_onnx_block(const BlockFile& file);

/// Definitions may then have blocks {"onnx": "model.onnx"}. A program that calls it links xtape, too.
inline void read_onnx_blocks() {
  set_onnx_block_reader(open_onnx_block);
}

/// The names of the operators that xtape reads, in alphabetical order.
std::vector<std::string> onnx_operators();

struct OnnxSaveOptions {
  std::int64_t opset = 18;  ///< The version of ONNX's operators, 18 to 23.
  /// The inputs of the file in this order, by name: inputs of the tape, or other values, whose computation is then left
  /// out. Empty: the inputs of the tape that the outputs depend on, by their names.
  NamedVars inputs = {};
  /// A file that would be larger has its large arrays in another file beside it, named PATH.data. At most what protocol
  /// buffers allow, the default.
  std::uint64_t largest_file = (std::uint64_t{1} << 31) - 1;
};

/// Writes what `outputs` compute as an ONNX model for inference: dropout is left out, and so are checks (watch, indices
/// in range). Shapes are those of the tape. Parameters are initialisers under their names, and nodes have the paths of
/// their sites as names. Ops that ONNX lacks are written as their expansions. Each file is replaced atomically, but a
/// model and its PATH.data one after the other: a crash in between leaves an old model beside new data.
///
/// Throws Error, which lists all calls that cannot be written with their places; Error without outputs, for names that
/// are empty or occur twice, for other versions, and for inputs of the tape that `inputs` leaves out; HandleError for
/// vars of several tapes; FileError if a file cannot be written. Then no file is changed.
void save_onnx(const std::string& path, const NamedVars& outputs, const OnnxSaveOptions& options = {});

/// Records what a file computes for given sizes, on a tape of its own, with its inputs and outputs by name.
using OnnxRecord = std::function<SavedTape(const NamedSizes& sizes)>;

/// Writes a model whose sizes of these names are open: the file has names in place of numbers, and takes arrays of any
/// such sizes. `record` records the computation for given sizes; the calls with several different ones show what in the
/// graph depends on them: shapes, bounds of slices, ranges of indices, and whatever else is an integer that is a
/// polynomial of the sizes, with each to the power of 0 or 1. The file computes those from the shapes of its inputs. An
/// input must have each open size as a size of one of its axes. Small sizes that `record` treats in a way of their own
/// stay unseen.
///
/// Throws what the other save_onnx and `record` throw; Error, which names the size and the node, if the graph depends
/// on sizes in another way; for more than 4 open sizes, none, names that occur twice, and if options.inputs is not
/// empty.
void save_onnx(const std::string& path, const std::vector<std::string>& open, const OnnxRecord& record,
               const OnnxSaveOptions& options = {});

/// Writes the model in the file `original` to `path`, with these arrays in place of its initialisers of the same names:
/// a trained model goes back into the file that it came from. All else stays: nodes, metadata, versions. Floats are
/// rounded to the type in the file. `largest_file` is that of OnnxSaveOptions.
///
/// Throws Error, ShapeError or DtypeError if the file has no such initialiser, of this shape and of floats; FileError
/// if a file cannot be read, is damaged, or cannot be written.
void save_onnx_weights(const std::string& path, const std::string& original, const Store& weights,
                       std::uint64_t largest_file = (std::uint64_t{1} << 31) - 1);

/// The ops that are written by ONNX operators of their own, in alphabetical order; others by their expansions.
std::vector<std::string> onnx_written_ops();

}  // namespace xtape
