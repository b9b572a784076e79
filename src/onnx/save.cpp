// Tapes as ONNX files.
#include <algorithm>
#include <filesystem>
#include <protozero/pbf_writer.hpp>

#include "graph.hpp"
#include "joined.hpp"
#include "written_file.hpp"
#include "xtape/onnx.hpp"

namespace xtape {

using onnx::GraphWriter;
using onnx::Names;
using onnx::Shared;
using protozero::pbf_writer;

namespace {
constexpr std::int64_t first_written = 18, last_written = 23;

/// The fields of the ModelProto before its graph. The version of the format is that of the version of the operators.
std::string model_fields(std::int64_t opset) {
  std::string bytes, version;
  pbf_writer(version).add_int64(2, opset);
  pbf_writer to(bytes);
  to.add_int64(1, opset < 19 ? 8 : opset < 21 ? 9 : opset < 23 ? 10 : 11);
  to.add_string(2, "xtape");
  to.add_message(8, version);
  return bytes;
}

/// The inputs of the tape that the outputs depend on, by their names.
NamedVars needed_inputs(const Tape& tape, const NamedVars& outputs) {
  std::vector<ValueId> values;
  for (const auto& output : outputs) values.push_back(output.value.id());
  const std::vector<bool> needed = needed_by(tape, values);
  NamedVars inputs;
  for (const ValueId id : tape.inputs())
    if (const auto node = static_cast<std::size_t>(id.node); node < needed.size() && needed[node])
      inputs.add(tape.node(static_cast<std::size_t>(id.node)).name, tape.var(id));
  return inputs;
}

/// Reserves the names of inputs and outputs, which the file keeps.
void take(Shared& shared, const NamedVars& vars, const Tape& tape) {
  for (const auto& [name, var] : vars) {
    if (var.tape() != tape) throw HandleError("'" + name + "' is a var of another tape than the first output");
    if (name.empty()) throw Error("an input or output has an empty name");
    if (shared.fresh(name) != name) throw Error("two inputs or outputs are named '" + name + "'");
  }
}

void save(const std::string& path, const NamedVars& outputs, const OnnxSaveOptions& options) {
  if (outputs.empty()) throw Error("there must be an output");
  if (options.opset < first_written || options.opset > last_written)
    throw Error("opset must be " + std::to_string(first_written) + " to " + std::to_string(last_written) + ", got " +
                std::to_string(options.opset));
  const Tape tape = outputs[0].value.tape();
  const NamedVars inputs = options.inputs.empty() ? needed_inputs(tape, outputs) : options.inputs;
  Shared shared(options.opset);
  take(shared, inputs, tape);
  take(shared, outputs, tape);
  onnx::ValueNames names;
  Names inputs_bytes, outputs_bytes;
  for (const auto& [name, var] : inputs) {
    names[var.id()] = name;
    inputs_bytes.push_back(onnx::value_bytes(name, var.type()));
  }
  std::vector<ValueId> results;
  for (const auto& [name, var] : outputs) {
    results.push_back(var.id());
    outputs_bytes.push_back(onnx::value_bytes(name, var.type()));
  }
  GraphWriter graph(shared);
  graph.write(tape, results, names);
  if (!shared.missing.empty()) throw Error("these calls cannot be written: " + joined(shared.missing));
  for (const auto& [name, var] : outputs) graph.rename(names.at(var.id()), name);
  std::vector<onnx::WrittenTensor> tensors;
  for (const onnx::Initialiser& each : shared.initialisers) tensors.push_back(tensor_of(each));
  onnx::write_model(
      path, model_fields(options.opset),
      shared.constants + graph.bytes(std::filesystem::path(path).stem().string(), inputs_bytes, outputs_bytes), tensors,
      options.largest_file);
}
}  // namespace

void save_onnx(const std::string& path, const NamedVars& outputs, const OnnxSaveOptions& options) {
  try {
    save(path, outputs, options);
  } catch (Error& error) {
    error.name_location(path);
    throw;
  }
}

std::vector<std::string> onnx_written_ops() {
  return onnx::written_ops();
}

}  // namespace xtape
