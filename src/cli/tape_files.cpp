#include <cstring>
#include <vector>

#include "base/messages/wording.hpp"
#include "cli/recorded.hpp"
#if defined(XTAPE_WITH_ONNX)
#include "xtape/onnx.hpp"
#endif

namespace xtape::cli {

bool is_onnx(const std::string& path) {
  return path.ends_with(".onnx");
}

bool is_tape_file(const std::string& path) {
  return is_onnx(path) || is_saved_tape(path);
}

#if defined(XTAPE_WITH_ONNX)
namespace {
Shape shape_for(const OnnxValue& input, const InputSizes& sizes) {
  if (const Array* array = sizes.arrays.find(input.name)) return array->shape();
  if (!input.ranked)
    throw WrongInput("the model gives no shape for input '" + input.name + "': --in FILE names a file with an array");
  Shape shape(input.sizes.begin(), input.sizes.end());
  std::vector<std::string> open;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] >= 0) continue;
    const std::int64_t* named = sizes.named.find(input.names[i]);
    if (named != nullptr)
      shape[i] = *named;
    else
      open.push_back(input.names[i].empty() ? "axis " + std::to_string(i) : input.names[i]);
  }
  if (!open.empty())
    throw WrongInput("input '" + input.name + "' has open sizes (" + joined(open) +
                     "): --with NAME=SIZE gives those that have names, and --in FILE arrays for inputs");
  return shape;
}

/// Throws WrongInput if one of the names is not the name of a dynamic dimension of any input. The name is then probably
/// mistyped.
void check_names(const OnnxModel& model, const NamedSizes& named) {
  std::vector<std::string> known;
  for (const OnnxValue& input : model.inputs())
    for (const std::string& name : input.names)
      if (!name.empty()) known.push_back(name);
  for (const auto& [name, size] : named)
    if (!contains(known, name))
      throw WrongInput("--with: no input has a size '" + name + "'" + did_you_mean(name, known));
}

void replace_weights(const OnnxModel& model, const Store& weights) {
  std::vector<std::string> known;
  for (const Store::Entry& entry : model.weights()) known.push_back(entry.name);
  for (const auto& [name, given] : weights) {
    const Array* weight = model.weights().find(name);
    if (weight == nullptr) throw WrongInput("the model has no weight '" + name + "'" + did_you_mean(name, known));
    if (weight->shape() != given.shape() || !is_floating(given.dtype()))
      throw WrongInput("weight '" + name + "' is " + to_string(ValueType{weight->dtype(), weight->shape()}) + ", not " +
                       to_string(ValueType{given.dtype(), given.shape()}));
    Array shared(*weight);
    std::memcpy(shared.data(), as_dtype(given, weight->dtype()).data(), shared.bytes());
  }
}

SavedTape onnx_tape(const std::string& path, const InputSizes& sizes, const Store& weights) {
  const OnnxModel model = open_onnx(path);
  check_names(model, sizes.named);
  replace_weights(model, weights);
  SavedTape made{Tape(), {}, {}, {}};
  Vars inputs;
  for (const OnnxValue& input : model.inputs()) {
    inputs.push_back(made.tape.input(input.name, shape_for(input, sizes), input.dtype));
    made.inputs.add(input.name, inputs.back());
  }
  const Vars outputs = model.record(made.tape, inputs);
  for (std::size_t i = 0; i < outputs.size(); ++i) made.outputs.add(model.outputs()[i].name, outputs[i]);
  made.parameters = model.weights(made.tape);
  return made;
}
}  // namespace
#else
static SavedTape onnx_tape(const std::string& path, const InputSizes&, const Store&) {
  throw WrongInput("'" + path + "' cannot be read: " + built_without_onnx);
}
#endif

SavedTape load_tape(const std::string& path, const InputSizes& sizes, const Store& weights) {
  return is_onnx(path) ? onnx_tape(path, sizes, weights) : Tape::load(path, weights);
}

}  // namespace xtape::cli
