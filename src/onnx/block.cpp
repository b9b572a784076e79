// ONNX files as blocks of definitions.
#include <algorithm>
#include <filesystem>
#include <set>

#include "base/messages/wording.hpp"
#include "onnx/graph_recording.hpp"
#include "onnx/messages.hpp"

namespace xtape {

namespace onnx {

namespace {
/// Adds the names of the values that the graphs inside a node read. May add more names, because names inside can hide
/// names outside.
void add_names(const Graph& graph, std::set<std::string>& names) {
  for (const Value& output : graph.outputs) names.insert(output.name);
  for (const Node& node : graph.nodes) {
    names.insert(node.inputs.begin(), node.inputs.end());
    for (const auto& [name, attribute] : node.attributes)
      if (attribute.g != nullptr) add_names(*attribute.g, names);
  }
}

/// Keeps the nodes and weights on which these values depend.
void keep_needed(ModelData& data, const std::vector<std::string>& values) {
  std::set<std::string> needed(values.begin(), values.end());
  std::vector<Node> kept;
  for (auto node = data.nodes.rbegin(); node != data.nodes.rend(); ++node) {
    const auto is_needed = [&](const std::string& output) { return !output.empty() && needed.count(output) != 0; };
    if (std::ranges::none_of(node->outputs, is_needed)) continue;
    needed.insert(node->inputs.begin(), node->inputs.end());
    for (const auto& [name, attribute] : node->attributes)
      if (attribute.g != nullptr) add_names(*attribute.g, needed);
    kept.push_back(std::move(*node));
  }
  data.nodes.assign(std::make_move_iterator(kept.rbegin()), std::make_move_iterator(kept.rend()));
  Store weights;
  for (const Store::Entry& weight : data.weights)
    if (needed.count(weight.name) != 0) weights.add(weight.name, Array(weight.value));
  data.weights = std::move(weights);
}

/// Throws Error if one of `outputs` is not the name of a value.
void check_outputs(const ModelData& data, const std::vector<std::string>& outputs) {
  std::vector<std::string> names = data.weights.names();
  for (const OnnxValue& input : data.inputs) names.push_back(input.name);
  for (const Node& node : data.nodes)
    for (const std::string& output : node.outputs)
      if (!output.empty()) names.push_back(output);
  for (const std::string& output : outputs)
    if (!contains(names, output)) throw Error("there is no value '" + output + "'" + did_you_mean(output, names));
}

class OnnxBlock : public FileBlock {
 public:
  OnnxBlock(ModelData data, std::vector<std::string> outputs, std::string rest)
      : data_(std::move(data)), outputs_(std::move(outputs)), rest_(std::move(rest)) {
    if (outputs_.empty())
      for (const OnnxValue& output : data_.outputs) outputs_.push_back(output.name);
    check_outputs(data_, outputs_);
    keep_needed(data_, outputs_);
    for (const OnnxValue& input : data_.inputs) inputs_.push_back(input.name);
  }

  const std::vector<std::string>& inputs() const override { return inputs_; }
  const std::vector<std::string>& outputs() const override { return outputs_; }
  const Store& weights() const override { return data_.weights; }
  std::string without_weights() const override { return rest_; }
  Vars record(Tape tape, const Vars& inputs, const std::function<Var(const std::string&)>& weight, Dtype floats,
              const std::string& path) const override {
    NamedVars weights;
    for (const Store::Entry& each : data_.weights) weights.add(each.name, weight(each.name));
    return data_.record(tape, inputs, outputs_, weights, {data_.setting.opset, floats},
                        path.empty() ? path : path + "/");
  }

 private:
  ModelData data_;
  std::vector<std::string> inputs_, outputs_;
  std::string rest_;  // the file without weights
};

std::shared_ptr<const FileBlock> block_of(std::string_view bytes, const BlockFile& file, Store weights) {
  const std::filesystem::path place(file.path);
  return std::make_shared<const OnnxBlock>(
      data_of(read_model(bytes, file.path), place.filename().string(), std::nullopt, std::move(weights)), file.outputs,
      onnx::without_weights(bytes, file.path));
}
}  // namespace

}  // namespace onnx

std::shared_ptr<const FileBlock> open_onnx_block(const BlockFile& file) {
  try {
    if (!file.bytes.empty()) {
      Store weights;
      for (const Store::Entry& weight : file.weights) weights.add(weight.name, Array(weight.value));
      return onnx::block_of(file.bytes, file, std::move(weights));
    }
    const Array bytes = onnx::file_bytes(file.path);
    return onnx::block_of({static_cast<const char*>(bytes.data()), bytes.bytes()}, file, {});
  } catch (Error& error) {
    error.name_location(file.path);
    throw;
  }
}

}  // namespace xtape
