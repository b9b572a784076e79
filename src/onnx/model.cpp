#include <algorithm>
#include <filesystem>
#include <map>

#include "base/messages/wording.hpp"
#include "onnx/graph_recording.hpp"
#include "onnx/messages.hpp"
#include "onnx/operators.hpp"
#include "tape/calls.hpp"

namespace xtape {

using onnx::File;
using onnx::Setting;

namespace {
/// The latest supported version. Before an increase, check the table for operators whose meaning has changed.
constexpr std::int64_t last_opset = 23;

void check_version(std::int64_t opset, const std::string& what) {
  if (opset < 1 || opset > last_opset)
    throw Error(what + " uses version " + std::to_string(opset) + " of ONNX's operators; xtape reads 1 to " +
                std::to_string(last_opset));
}

/// Finds the nodes whose operators xtape lacks. Includes graphs inside nodes and functions that are called.
class Check {
 public:
  explicit Check(const File& file) : file_(file) {
    look_at(file.graph.nodes, 0);
    if (!missing_.empty()) throw Error("xtape lacks the operators of these nodes: " + joined(missing_));
    check_version(file.opset, "the model");
  }

 private:
  void look_at(const std::vector<onnx::Node>& nodes, int depth) {
    for (const onnx::Node& node : nodes) {
      const onnx::LocalFunction* function = onnx::called_function(file_.functions, node);
      if (function != nullptr)
        look_into(*function, depth + 1);
      else if (!node.domain.empty() || onnx::find_operator(node.op) == nullptr)
        missing_.push_back((node.domain.empty() ? "" : node.domain + ".") + node.op + " (node '" + node.shown() + "')");
      for (const auto& [name, attribute] : node.attributes)
        if (attribute.g != nullptr) look_at(attribute.g->nodes, depth);
    }
  }

  /// Visits every function once. The recursion is as deep as the calls of functions are nested.
  void look_into(const onnx::LocalFunction& function, int depth) {
    constexpr int deepest = 32;
    const auto [known, is_new] = heights_.emplace(&function, unfinished);
    if (!is_new && known->second == unfinished) throw Error("function '" + function.name + "' calls itself");
    if (is_new) {
      if (function.opset != 0) check_version(function.opset, "function '" + function.name + "'");
      const int before = highest_;
      highest_ = depth;
      if (depth <= deepest) look_at(function.nodes, depth);
      known->second = highest_ - depth;
      highest_ = std::max(before, highest_);
    }
    highest_ = std::max(highest_, depth + known->second);
    if (highest_ > deepest)
      throw Error("functions call each other more than " + std::to_string(deepest) + " deep, as '" + function.name +
                  "' does");
  }

  static constexpr int unfinished = -1;
  const File& file_;
  std::vector<std::string> missing_;
  std::map<const onnx::LocalFunction*, int> heights_;  // the nesting depth of the calls in each function
  int highest_ = 0;
};

OnnxValue checked_value(const onnx::Value& value, const Setting& setting) {
  if (!value.kind.empty()) throw Error("'" + value.name + "' is " + value.kind + "; xtape reads arrays only");
  const Dtype dtype = onnx::dtype_in(value.element, setting, "'" + value.name + "'");
  OnnxValue checked{value.name, dtype, value.sizes.has_value(), {}, {}};
  if (value.sizes) checked.sizes = *value.sizes, checked.names = value.names;
  return checked;
}

/// For each named size, its value and the name of the first input that has it.
using NamedInputs = std::map<std::string, std::pair<std::int64_t, std::string>>;

/// Checks that dynamic dimensions of the same name are equal.
void check_names(const OnnxValue& value, const Var& input, NamedInputs& known) {
  for (std::size_t i = 0; i < value.names.size(); ++i) {
    if (value.names[i].empty()) continue;
    const auto [found, is_new] = known.emplace(value.names[i], std::pair(input.shape()[i], value.name));
    if (!is_new && found->second.first != input.shape()[i])
      throw ShapeError("input '" + value.name + "' has " + std::to_string(input.shape()[i]) + " for the size '" +
                       value.names[i] + "', but input '" + found->second.second + "' has " +
                       std::to_string(found->second.first));
  }
}

/// Throws unless an input may have this type.
void check_input(const OnnxValue& value, const Var& input, const Setting& with) {
  const Dtype dtype = with.floats && is_floating(value.dtype) ? *with.floats : value.dtype;
  if (input.dtype() != dtype)
    throw DtypeError("input '" + value.name + "' is " + name_of(dtype) + ", not " + name_of(input.dtype()));
  bool fits = !value.ranked || value.sizes.size() == input.rank();
  for (std::size_t i = 0; fits && value.ranked && i < input.rank(); ++i)
    fits = value.sizes[i] < 0 || value.sizes[i] == input.shape()[i];
  if (fits) return;
  std::vector<std::string> sizes;
  for (std::size_t i = 0; i < value.sizes.size(); ++i)
    sizes.push_back(value.sizes[i] >= 0      ? std::to_string(value.sizes[i])
                    : value.names[i].empty() ? "any"
                                             : value.names[i]);
  throw ShapeError("input '" + value.name + "' has the shape (" + joined(sizes) + "), not " + to_string(input.shape()));
}
}  // namespace

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
  std::vector<std::string> results;
  for (const OnnxValue& output : data_->outputs) results.push_back(output.name);
  return record(tape, inputs, results);
}

Vars OnnxModel::record(Tape tape, const Vars& inputs, const std::vector<std::string>& values) const {
  const Rollback rollback(tape);
  return data_->record(tape, inputs, values, weights(tape), data_->setting, "");
}

Vars onnx::ModelData::record(Tape tape, const Vars& given, const std::vector<std::string>& values,
                             const NamedVars& weights, const Setting& with, const std::string& path) const {
  try {
    if (given.size() != inputs.size())
      throw Error("the model has " + std::to_string(inputs.size()) + " inputs (" + joined(inputs, &OnnxValue::name) +
                  "), not " + std::to_string(given.size()));
    onnx::Values known = {{"", {}}};  // an empty name means no input
    NamedInputs sizes;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      check_input(inputs[i], given[i], with);
      check_names(inputs[i], given[i], sizes);
      known.emplace(inputs[i].name, onnx::Typed{given[i], elements.at(inputs[i].name)});
    }
    for (const auto& [name, var] : weights) known.emplace(name, onnx::Typed{var});
    for (const Store::Entry& constant : constants)
      known.emplace(constant.name, onnx::Typed{tape.constant(constant.value), elements.at(constant.name)});
    return onnx::Recording(name, functions, tape).record(nodes, values, with, known, path);
  } catch (Error& error) {
    error.name_location(name);
    throw;
  }
}

onnx::ModelData onnx::data_of(File file, const std::string& name, const std::optional<Dtype>& floats, Store more) {
  Check{file};
  onnx::ModelData data;
  data.name = name;
  data.setting = {file.opset, floats};
  data.weights = std::move(more);
  for (onnx::Tensor& tensor : file.graph.initialisers) {
    Store& store = is_floating(tensor.array.dtype()) ? data.weights : data.constants;
    if (data.constants.has(tensor.name) || data.weights.has(tensor.name))
      throw FileError("there are two initialisers '" + tensor.name + "'");
    data.elements[tensor.name] = tensor.element;
    store.add(tensor.name, onnx::with_floats(std::move(tensor.array), data.setting));
  }
  // Before version 4 of the format, the inputs include the initialisers.
  for (const onnx::Value& input : file.graph.inputs) {
    if (data.weights.has(input.name) || data.constants.has(input.name)) continue;
    data.inputs.push_back(checked_value(input, data.setting));
    data.elements[input.name] = static_cast<onnx::Element>(input.element);
  }
  for (const onnx::Value& output : file.graph.outputs) data.outputs.push_back(checked_value(output, data.setting));
  data.nodes = std::move(file.graph.nodes);
  data.functions = std::move(file.functions);
  return data;
}

namespace {
/// Returns use(the file at the path). Errors name the path.
template <class Use>
auto with_file(const std::string& path, const Use& use) {
  try {
    File file = [&] {
      const Array bytes = onnx::file_bytes(path);
      return onnx::read_model({static_cast<const char*>(bytes.data()), bytes.bytes()}, path);
    }();
    return use(std::move(file));
  } catch (Error& error) {
    error.name_location(path);
    throw;
  }
}
}  // namespace

OnnxModel open_onnx(const std::string& path, const OnnxOptions& options) {
  if (options.floats && *options.floats != Dtype::float32 && *options.floats != Dtype::float64)
    throw Error("the floats of a model are float32 or float64, not " + std::string(name_of(*options.floats)));
  return with_file(path, [&](File file) {
    return OnnxModel(std::make_shared<const onnx::ModelData>(
        onnx::data_of(std::move(file), std::filesystem::path(path).filename().string(), options.floats)));
  });
}

Store load_onnx_weights(const std::string& path) {
  return with_file(path, [](File file) {
    Store weights;
    for (onnx::Tensor& tensor : file.graph.initialisers) {
      if (!is_floating(tensor.array.dtype())) continue;
      if (weights.has(tensor.name)) throw FileError("there are two initialisers '" + tensor.name + "'");
      weights.add(tensor.name, std::move(tensor.array));
    }
    return weights;
  });
}

std::vector<std::string> onnx_operators() {
  return onnx::operator_names();
}

}  // namespace xtape
