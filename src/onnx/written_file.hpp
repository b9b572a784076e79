/// Files that are written: a model in pieces, so that its arrays are not copied.
#pragma once

#include <string>
#include <vector>

#include "writing.hpp"

namespace xtape::onnx {

/// An array of a file: a TensorProto without its elements, and the elements.
struct WrittenTensor {
  std::string fields;
  Array array;
};
WrittenTensor tensor_of(const Initialiser& initialiser);

/// Writes a ModelProto: the fields of the model but its graph, and those of the graph but its initialisers.
void write_model(const std::string& path, const std::string& model, const std::string& graph,
                 const std::vector<WrittenTensor>& tensors, std::uint64_t largest_file);

}  // namespace xtape::onnx
