/// Files with dynamic dimensions. The graph is written for several sizes of these dimensions. Everything that differs
/// between the written graphs is then computed from the shapes of the inputs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "onnx/writing.hpp"
#include "xtape/attributes.hpp"

namespace xtape::onnx {

/// A graph without its file.
struct WrittenGraph {
  using Types = Named<ValueType>;
  Shared shared;
  std::string nodes;  // fields of the GraphProto
  Types inputs, outputs;
};

/// A graph with ValueInfoProtos for its inputs and outputs.
struct OpenGraph {
  WrittenGraph graph;
  Names inputs, outputs;
};

/// Returns the graph in which the dimensions named in `open` are dynamic. Throws Error if the graph depends on these
/// dimensions in a way that save_onnx does not support.
OpenGraph with_open_sizes(const Names& open, const std::function<WrittenGraph(const NamedSizes&)>& write);

}  // namespace xtape::onnx
