/// The data members of an OnnxModel.
#pragma once

#include <string>
#include <vector>

#include "recording.hpp"
#include "xtape/onnx.hpp"

namespace xtape::onnx {

struct ModelData {
  std::string name;  // of the file
  Setting setting;
  std::vector<Node> nodes;
  Functions functions;
  std::vector<OnnxValue> inputs, outputs;
  Store weights, constants;

  /// As OnnxModel::record, with floats of the dtype of `with.floats`, if it has one. The sites of nodes begin with
  /// `path`.
  Vars record(Tape tape, const Vars& given, const std::vector<std::string>& values, const NamedVars& weights,
              const Setting& with, const std::string& path) const;
};

/// Throws Error if the file has operators that xtape lacks, or of other versions. The file's floating initialisers are
/// its weights; `more` are others, which it may lack.
ModelData data_of(File file, const std::string& name, const std::optional<Dtype>& floats, Store more = {});
/// The bytes of a model without its floating initialisers. External data is in `folder`.
std::string without_weights(std::string_view bytes, const std::string& folder);

}  // namespace xtape::onnx
