/// The data members of an OnnxModel.
#pragma once

#include <string>
#include <vector>

#include "onnx/graph_recording.hpp"
#include "xtape/onnx.hpp"

namespace xtape::onnx {

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
