/// Files with dynamic dimensions. The graph is written for several sizes. Everything that differs between them is then
/// computed from the shapes of the inputs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "writing.hpp"
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

/// Returns the graph with the dimensions named in `open` dynamic. Throws Error if the graph depends on them in a way
/// that save_onnx does not support.
OpenGraph with_open_sizes(const Names& open, const std::function<WrittenGraph(const NamedSizes&)>& write);

}  // namespace xtape::onnx
