/// Records the nodes of a graph on a tape, including graphs inside nodes and calls of the model's functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "onnx/messages.hpp"
#include "onnx/node_call.hpp"
#include "onnx/operators.hpp"

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

}  // namespace xtape::onnx
