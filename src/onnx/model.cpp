#include <algorithm>
#include <filesystem>
#include <map>

#include "files.hpp"
#include "joined.hpp"
#include "operators.hpp"
#include "xtape/onnx.hpp"

namespace xtape {

using onnx::File;
using onnx::NodeCall;
using onnx::Setting;

namespace {
/// Versions that change what an operator means need a new look at the table.
constexpr std::int64_t last_opset = 23;

/// Adds the nodes whose operators xtape lacks, also in the graphs inside nodes.
void find_missing(const onnx::Graph& graph, std::vector<std::string>& missing) {
  for (const onnx::Node& node : graph.nodes) {
    if (!node.domain.empty() || onnx::find_operator(node.op) == nullptr)
      missing.push_back((node.domain.empty() ? "" : node.domain + ".") + node.op + " (node '" + node.shown() + "')");
    for (const auto& [name, attribute] : node.attributes)
      if (attribute.g != nullptr) find_missing(*attribute.g, missing);
  }
}

void check_operators(const File& file) {
  if (file.functions > 0) throw Error("the model has functions of its own, which are not supported");
  std::vector<std::string> missing;
  find_missing(file.graph, missing);
  if (!missing.empty()) throw Error("xtape lacks the operators of these nodes: " + joined(missing));
  if (file.opset < 1 || file.opset > last_opset)
    throw Error("the model uses version " + std::to_string(file.opset) + " of ONNX's operators; xtape reads 1 to " +
                std::to_string(last_opset));
}

OnnxValue checked_value(const onnx::Value& value, const Setting& setting) {
  if (!value.kind.empty()) throw Error("'" + value.name + "' is " + value.kind + "; xtape reads arrays only");
  const Dtype dtype = onnx::dtype_in(value.element, setting, "'" + value.name + "'");
  OnnxValue checked{value.name, dtype, value.sizes.has_value(), {}};
  if (value.sizes) checked.sizes = *value.sizes;
  return checked;
}

/// Whether an input may have this type.
void check_input(const OnnxValue& value, const Var& input) {
  if (input.dtype() != value.dtype)
    throw DtypeError("input '" + value.name + "' is " + name_of(value.dtype) + ", not " + name_of(input.dtype()));
  bool fits = !value.ranked || value.sizes.size() == input.rank();
  for (std::size_t i = 0; fits && value.ranked && i < input.rank(); ++i)
    fits = value.sizes[i] < 0 || value.sizes[i] == input.shape()[i];
  if (fits) return;
  const auto size = [](std::int64_t each) { return each < 0 ? std::string("any") : std::to_string(each); };
  throw ShapeError("input '" + value.name + "' has the shape (" + joined(value.sizes, size) + "), not " +
                   to_string(input.shape()));
}
}  // namespace

using Values = std::map<std::string, Var>;

struct OnnxModel::Data {
  std::string name;  // of the file
  Setting setting;
  std::vector<onnx::Node> nodes;
  std::vector<OnnxValue> inputs, outputs;
  Store weights, constants;

  void record_node(const onnx::Node& node, Tape& tape, Values& values) const {
    const auto scope = std::make_shared<const Scope>(Scope{node.shown(), name + ", " + node.op});
    const Tape::Guard guard = tape.in_scope(scope, 0);
    try {
      Vars inputs;
      for (const std::string& input : node.inputs) {
        const auto found = values.find(input);
        if (found == values.end()) throw Error(node.op + ": there is no value '" + input + "' at this node");
        inputs.push_back(found->second);
      }
      NodeCall call(node, setting, tape, std::move(inputs), [&](const onnx::Graph& graph, const Vars& given) {
        return record_inside(graph, given, tape, values);
      });
      const Vars results = onnx::find_operator(node.op)(call);
      call.finish(results.size());
      for (std::size_t i = 0; i < node.outputs.size(); ++i)
        if (!node.outputs[i].empty() && !values.emplace(node.outputs[i], results[i]).second)
          throw Error(node.op + ": there is a value '" + node.outputs[i] + "' already");
    } catch (Error& error) {
      error.name_location(to_string(Site{scope}));
      throw;
    }
  }

  Vars record_nodes(const std::vector<onnx::Node>& list, const std::vector<std::string>& results, Tape& tape,
                    Values& values) const {
    for (const onnx::Node& node : list) record_node(node, tape, values);
    Vars vars;
    for (const std::string& result : results) {
      const auto found = values.find(result);
      if (found == values.end() || found->second.empty()) throw Error("no node gives the output '" + result + "'");
      vars.push_back(found->second);
    }
    return vars;
  }

  /// A graph inside a node, which also sees the values outside. Its own names hide theirs.
  Vars record_inside(const onnx::Graph& graph, const Vars& given, Tape& tape, Values values) const {
    if (given.size() != graph.inputs.size())
      throw Error("the graph inside has " + std::to_string(graph.inputs.size()) + " inputs, not " +
                  std::to_string(given.size()));
    for (std::size_t i = 0; i < given.size(); ++i) values[graph.inputs[i].name] = given[i];
    for (const onnx::Tensor& tensor : graph.initialisers)
      values[tensor.name] = tape.constant(onnx::with_floats(Array(tensor.array), setting));
    for (const onnx::Node& node : graph.nodes)
      for (const std::string& output : node.outputs) values.erase(output);
    values[""] = Var();
    std::vector<std::string> results;
    for (const onnx::Value& output : graph.outputs) results.push_back(output.name);
    return record_nodes(graph.nodes, results, tape, values);
  }
};

const std::vector<OnnxValue>& OnnxModel::inputs() const {
  return data_->inputs;
}
const std::vector<OnnxValue>& OnnxModel::outputs() const {
  return data_->outputs;
}
std::int64_t OnnxModel::opset() const {
  return data_->setting.opset;
}
const Store& OnnxModel::weights() const {
  return data_->weights;
}

NamedVars OnnxModel::weights(Tape& tape) const {
  NamedVars vars;
  for (const Store::Entry& weight : data_->weights) vars.add(weight.name, tape.parameter(data_->weights, weight.name));
  return vars;
}

Vars OnnxModel::record(Tape tape, const Vars& inputs) const {
  const std::size_t size = tape.size();
  try {
    if (inputs.size() != data_->inputs.size())
      throw Error("the model has " + std::to_string(data_->inputs.size()) + " inputs (" +
                  joined(data_->inputs, &OnnxValue::name) + "), not " + std::to_string(inputs.size()));
    Values values = {{"", Var()}};  // an empty name means no input
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      check_input(data_->inputs[i], inputs[i]);
      values.emplace(data_->inputs[i].name, inputs[i]);
    }
    for (const auto& [name, var] : weights(tape)) values.emplace(name, var);
    for (const Store::Entry& constant : data_->constants) values.emplace(constant.name, tape.constant(constant.value));
    std::vector<std::string> results;
    for (const OnnxValue& output : data_->outputs) results.push_back(output.name);
    return data_->record_nodes(data_->nodes, results, tape, values);
  } catch (Error& error) {
    tape.truncate(size);
    error.name_location(data_->name);
    throw;
  } catch (...) {
    tape.truncate(size);
    throw;
  }
}

OnnxModel open_onnx(const std::string& path, const OnnxOptions& options) {
  if (options.floats && *options.floats != Dtype::float32 && *options.floats != Dtype::float64)
    throw Error("the floats of a model are float32 or float64, not " + std::string(name_of(*options.floats)));
  const std::filesystem::path place(path);
  try {
    File file = onnx::read_model(read_file(path), place.parent_path().string());
    check_operators(file);
    OnnxModel::Data data;
    data.name = place.filename().string();
    data.setting = {file.opset, options.floats};
    for (onnx::Tensor& tensor : file.graph.initialisers) {
      Store& store = is_floating(tensor.array.dtype()) ? data.weights : data.constants;
      if (data.constants.has(tensor.name) || data.weights.has(tensor.name))
        throw FileError("there are two initialisers '" + tensor.name + "'");
      store.add(tensor.name, onnx::with_floats(std::move(tensor.array), data.setting));
    }
    // Before version 4 of the format, initialisers are among the inputs too.
    for (const onnx::Value& input : file.graph.inputs)
      if (!data.weights.has(input.name) && !data.constants.has(input.name))
        data.inputs.push_back(checked_value(input, data.setting));
    for (const onnx::Value& output : file.graph.outputs) data.outputs.push_back(checked_value(output, data.setting));
    data.nodes = std::move(file.graph.nodes);
    return OnnxModel(std::make_shared<const OnnxModel::Data>(std::move(data)));
  } catch (Error& error) {
    error.name_location(path);
    throw;
  }
}

std::vector<std::string> onnx_operators() {
  return onnx::operator_names();
}

}  // namespace xtape
