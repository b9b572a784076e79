/// Writes files piece by piece, so that the arrays of a model are not copied.
#pragma once

#include <string>
#include <vector>

#include "onnx/writing.hpp"

namespace xtape::onnx {

/// An array to write: a TensorProto without its elements, and the elements.
struct WrittenTensor {
  std::string fields;
  Array array;
};
WrittenTensor tensor_of(const Initialiser& initialiser);

/// Writes a ModelProto. `model` contains the fields of the ModelProto except the graph. `graph` contains the fields of
/// the graph except the initialisers. If the file would be larger than `largest_file` bytes, writes the elements of
/// large arrays to a second file beside it.
void write_model(const std::string& path, const std::string& model, const std::string& graph,
                 const std::vector<WrittenTensor>& tensors, std::uint64_t largest_file);

}  // namespace xtape::onnx
