/// Records the nodes of a graph on a tape, with graphs inside nodes and calls of the model's functions.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "messages.hpp"
#include "node_call.hpp"

namespace xtape::onnx {

using Values = std::map<std::string, Var>;  // by name; an empty name means no input
using Functions = std::map<std::string, LocalFunction>;

/// The function that a node calls; null if it is an operator.
const LocalFunction* called_function(const Functions& functions, const Node& node);

/// One recording of a model, on one tape.
class Recording {
 public:
  /// `file` is the name for errors.
  Recording(const std::string& file, const Functions& functions, Tape tape)
      : file_(file), functions_(functions), tape_(std::move(tape)) {}
  /// Records the nodes, adds their outputs to `values`, and returns the values of these names. Throws Error for one
  /// that there is not, and what operators throw; the error names the node. The sites of nodes begin with `path`.
  Vars record(const std::vector<Node>& nodes, const std::vector<std::string>& results, const Setting& setting,
              Values& values, const std::string& path);

 private:
  /// Where nodes are: in the model, or in a call of a function with these attributes.
  struct Frame {
    const Setting& setting;
    Values& values;
    const NodeAttributes* attributes = nullptr;
    std::string path;  // the names of the calls, each with a slash
  };
  Vars record(const std::vector<Node>& nodes, const std::vector<std::string>& results, const Frame& frame);
  void record(const Node& node, const Frame& frame);
  Vars record(const Graph& graph, const Vars& given, const Frame& outside);
  Vars call(const LocalFunction& function, const Node& node, const Vars& inputs, const Frame& outside);

  const std::string& file_;
  const Functions& functions_;
  Tape tape_;
  std::int64_t recorded_ = 0;
};

}  // namespace xtape::onnx
