/// Files with open sizes: a graph that is written for several sizes, and computes from the shapes of its inputs what
/// differs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "writing.hpp"
#include "xtape/attributes.hpp"

namespace xtape::onnx {

/// A graph without the file around it.
struct WrittenGraph {
  using Types = Named<ValueType>;
  Shared shared;
  std::string nodes;  // fields of the GraphProto
  Types inputs, outputs;
};

/// The same with ValueInfoProtos for inputs and outputs.
struct OpenGraph {
  WrittenGraph graph;
  Names inputs, outputs;
};

/// The graph whose sizes of these names are open. Throws Error if it depends on them in other ways than save_onnx says.
OpenGraph with_open_sizes(const Names& open, const std::function<WrittenGraph(const NamedSizes&)>& write);

}  // namespace xtape::onnx
