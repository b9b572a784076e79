/// Records the nodes of a graph on a tape, including graphs inside nodes and calls of the model's functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "onnx/messages.hpp"
#include "onnx/operators.hpp"
#include "xtape/onnx.hpp"

namespace xtape::onnx {

using Values = std::map<std::string, Typed>;  // by name; an empty name means no input
using Functions = std::map<std::string, LocalFunction>;

/// Returns the function that a node calls, or null if the node is an operator.
const LocalFunction* called_function(const Functions& functions, const Node& node);

/// One recording of a model, on one tape.
class Recording {
 public:
  /// `file` is the file name for errors.
  Recording(const std::string& file, const Functions& functions, Tape tape)
      : file_(file), functions_(functions), tape_(std::move(tape)) {}
  /// Records the nodes, adds their outputs to `values`, and returns the values named in `results`. Throws Error if such
  /// a value does not exist. Errors of operators propagate, with the name of the node. The sites of nodes begin with
  /// `path`.
  Vars record(const std::vector<Node>& nodes, const std::vector<std::string>& results, const Setting& setting,
              Values& values, const std::string& path);

 private:
  /// The place of the nodes: the model, or a call of a function with these attributes.
  struct Frame {
    const Setting& setting;
    Values& values;
    const NodeAttributes* attributes = nullptr;
    std::string path;  // the names of the calls, each followed by a slash
  };
  TypedVars record(const std::vector<Node>& nodes, const std::vector<std::string>& results, const Frame& frame);
  void record(const Node& node, const Frame& frame);
  Vars record(const Graph& graph, const Vars& given, const Frame& outside);
  TypedVars call(const LocalFunction& function, const Node& node, const TypedVars& inputs, const Frame& outside);
  TypedVars call(const Operator& known, const Node& node, const TypedVars& inputs, const Frame& frame);

  const std::string& file_;
  const Functions& functions_;
  Tape tape_;
  std::int64_t recorded_ = 0;
};

// The data members of an OnnxModel.

struct ModelData {
  std::string name;  // the name of the file
  Setting setting;
  std::vector<Node> nodes;
  Functions functions;
  std::vector<OnnxValue> inputs, outputs;
  Store weights, constants;
  std::map<std::string, Element> elements;  // the element types of inputs and constants

  /// Like OnnxModel::record. If `with.floats` is set, it is the dtype of all floats. The sites of nodes begin with
  /// `path`.
  Vars record(Tape tape, const Vars& given, const std::vector<std::string>& values, const NamedVars& weights,
              const Setting& with, const std::string& path) const;
};

/// Throws Error if the file has operators that xtape lacks, or operators of unsupported versions. The file's floating
/// initialisers become the weights. `more` contains additional weights that the file may lack.
ModelData data_of(File file, const std::string& name, const std::optional<Dtype>& floats, Store more = {});
/// Returns the bytes of a model without its floating initialisers. `path` is that of its file.
std::string without_weights(std::string_view bytes, const std::string& path);

}  // namespace xtape::onnx
