// Writes tapes as ONNX files.
#include <filesystem>
#include <protozero/pbf_writer.hpp>

#include "base/messages/wording.hpp"
#include "onnx/writing.hpp"
#include "tape/graph.hpp"
#include "xtape/onnx.hpp"

namespace xtape {

using onnx::GraphWriter;
using onnx::Names;
using onnx::Shared;
using onnx::WrittenGraph;
using protozero::pbf_writer;

namespace {
constexpr std::int64_t first_written = 18, last_written = 23;

/// Returns the fields of the ModelProto before its graph. The version of the operators determines the version of the
/// format.
std::string model_fields(std::int64_t opset) {
  std::string bytes, version;
  pbf_writer(version).add_int64(2, opset);
  pbf_writer to(bytes);
  to.add_int64(1, opset < 19 ? 8 : opset < 21 ? 9 : opset < 23 ? 10 : 11);
  to.add_string(2, "xtape");
  to.add_message(8, version);
  return bytes;
}

/// Returns the inputs of the tape on which the outputs depend, by name.
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

/// Reserves the names of inputs and outputs, so that the file keeps them. Throws DtypeError if ONNX has no such values.
void take(Shared& shared, const NamedVars& vars, const Tape& tape) {
  for (const auto& [name, var] : vars) {
    if (var.tape() != tape) throw HandleError("'" + name + "' is a var of another tape than the first output");
    if (name.empty()) throw Error("an input or output has an empty name");
    if (is_block(var.dtype()))
      throw DtypeError("'" + name + "' is " + to_string(var.type()) +
                       ", and values of ONNX files have no blocks: record caches as float32, and dequantize others");
    if (shared.fresh(name) != name) throw Error("two inputs or outputs are named '" + name + "'");
  }
}

void check(const NamedVars& outputs, const OnnxSaveOptions& options) {
  if (outputs.empty()) throw Error("there must be an output");
  if (options.opset < first_written || options.opset > last_written)
    throw Error("opset must be " + std::to_string(first_written) + " to " + std::to_string(last_written) + ", got " +
                std::to_string(options.opset));
}

WrittenGraph written(const NamedVars& outputs, const OnnxSaveOptions& options, bool open = false) {
  check(outputs, options);
  const Tape tape = outputs[0].value.tape();
  const NamedVars inputs = options.inputs.empty() ? needed_inputs(tape, outputs) : options.inputs;
  WrittenGraph made{Shared(options.opset, open), {}, {}, {}, {}};
  take(made.shared, inputs, tape);
  take(made.shared, outputs, tape);
  onnx::ValueNames names;
  for (const auto& [name, var] : inputs) {
    names[var.id()] = name;
    made.inputs.add(name, var.type());
  }
  std::vector<ValueId> results;
  for (const auto& [name, var] : outputs) {
    results.push_back(var.id());
    made.outputs.add(name, var.type());
  }
  GraphWriter graph(made.shared);
  graph.write(tape, results, names);
  if (!made.shared.missing.empty()) throw Error("these calls cannot be written: " + joined(made.shared.missing));
  for (const auto& [name, var] : outputs) graph.rename(names.at(var.id()), name);
  made.nodes = graph.nodes();
  made.values = graph.types();
  return made;
}

Names values_bytes(const onnx::Types& values) {
  Names bytes;
  for (const auto& [name, type] : values) bytes.push_back(onnx::value_bytes(name, type));
  return bytes;
}

void write_file(const std::string& path, const onnx::OpenGraph& open, const OnnxSaveOptions& options) {
  const auto& [graph, inputs, outputs, values] = open;
  std::vector<onnx::WrittenTensor> tensors;
  for (const onnx::Initialiser& each : graph.shared.initialisers) tensors.push_back(tensor_of(each));
  const std::string name = std::filesystem::path(path).stem().string();
  onnx::write_model(path, model_fields(options.opset),
                    graph.shared.constants + onnx::graph_bytes(graph.nodes, name, inputs, outputs, values), tensors,
                    options.largest_file);
}

template <class Save>
void with_path(const std::string& path, const Save& save) {
  try {
    save();
  } catch (Error& error) {
    error.name_location(path);
    throw;
  }
}
}  // namespace

void save_onnx(const std::string& path, const NamedVars& outputs, const OnnxSaveOptions& options) {
  with_path(path, [&] {
    const WrittenGraph graph = written(outputs, options);
    write_file(path, {graph, values_bytes(graph.inputs), values_bytes(graph.outputs), values_bytes(graph.values)},
               options);
  });
}

void save_onnx(const std::string& path, const std::vector<std::string>& open, const OnnxRecord& record,
               const OnnxSaveOptions& options) {
  with_path(path, [&] {
    if (!record) throw Error("the function that records the computation is empty");
    if (!options.inputs.empty()) throw Error("with open sizes, the inputs of the file are those that `record` returns");
    const onnx::OpenGraph graph = onnx::with_open_sizes(open, [&](const NamedSizes& sizes) {
      const SavedTape recorded = record(sizes);
      OnnxSaveOptions with = options;
      with.inputs = recorded.inputs;
      return written(recorded.outputs, with, true);
    });
    write_file(path, graph, options);
  });
}

std::vector<std::string> onnx_written_ops() {
  return onnx::written_ops();
}

}  // namespace xtape
