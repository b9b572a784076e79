// Finds the first difference between two tapes.
#include <cstring>
#include <iostream>

#include "cli/commands/diff.hpp"
#include "tape/node_text.hpp"
#include "xtape/op/op.hpp"

namespace xtape::cli {

namespace {
/// Compares the elements of the parameters of two tapes that are otherwise the same.
bool same_parameters(const Tape& first, const Tape& second) {
  std::size_t parameters = 0, different = 0;
  std::string found;
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (first.node(i).op != &parameter_op()) continue;
    ++parameters;
    const Array &ours = first.node(i).storage, &theirs = second.node(i).storage;
    if (std::memcmp(ours.data(), theirs.data(), ours.bytes()) == 0) continue;
    if (different++ == 0) found = first.node(i).name;
  }
  if (different == 0) return true;
  std::cout << "the same nodes; " << different << " of " << parameters << " parameters have other elements, first '"
            << found << "'\n";
  return false;
}

}  // namespace

bool same_tapes(const TapeOutputs& first, const TapeOutputs& second) {
  if (const std::string found = first_difference(first.tape, second.tape); !found.empty()) {
    std::cout << found << '\n';
    return false;
  }
  for (const auto& [name, var] : first.outputs) {
    const Var* other = second.outputs.find(name);
    if (other != nullptr && other->id() == var.id()) continue;
    std::cout << "output '" << name << "' " << (other == nullptr ? "is only in the first\n" : "is another value\n");
    return false;
  }
  for (const auto& [name, var] : second.outputs)
    if (!first.outputs.has(name)) {
      std::cout << "output '" << name << "' is only in the second\n";
      return false;
    }
  return same_parameters(first.tape, second.tape);
}

RecordedTape definition_recorded(const CLI::App& command, const DiffArguments& arguments, const std::string& path) {
  RecordedOptions options = arguments.recorded;
  options.definition.definition = path;
  options.definition.set = arguments.first.set;
  const auto inputs = [&](const Model& model, Tape& tape) {
    return model.inputs(tape, options.function, sizes_of(arguments.first.with));
  };
  return recorded_tape(command, options, false, inputs);
}

SavedTape saved_form(const RecordedTape& recorded) {
  NamedVars parameters;
  for (std::size_t i = 0; i < recorded.tape.size(); ++i)
    if (const Node& node = recorded.tape.node(i); node.op == &parameter_op())
      parameters.add(node.name, recorded.tape.var({static_cast<std::int32_t>(i), 0}));
  return {recorded.tape, recorded.inputs, parameters, recorded.outputs};
}

}  // namespace xtape::cli
