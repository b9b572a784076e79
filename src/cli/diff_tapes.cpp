// The first difference of two tapes, or of a play and arrays from elsewhere.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <optional>

#include "compare.hpp"
#include "diff.hpp"
#include "xtape/op.hpp"
#include "xtape/safetensors.hpp"

namespace xtape::cli {

namespace {
/// Compares the elements of parameters, of tapes that are the same otherwise.
bool same_parameters(const SavedTape& first, const SavedTape& second) {
  std::size_t different = 0;
  std::string found;
  for (const auto& [name, var] : first.parameters) {
    const Array &ours = var.node().storage, &theirs = second.parameters.at(name).node().storage;
    if (std::memcmp(ours.data(), theirs.data(), ours.bytes()) == 0) continue;
    if (different++ == 0) found = name;
  }
  if (different == 0) return true;
  std::cout << "the same nodes; " << different << " of " << first.parameters.size()
            << " parameters have other elements, first '" << found << "'\n";
  return false;
}

}  // namespace

bool same_tapes(const SavedTape& first, const SavedTape& second) {
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
  return same_parameters(first, second);
}

SavedTape tape_of_definition(const CLI::App& command, const DiffArguments& arguments, const std::string& path) {
  RecordedOptions options = arguments.recorded;
  options.definition.definition = path;
  options.definition.set = arguments.first.set;
  const auto inputs = [&](const Model& model, Tape& tape) {
    return model.inputs(tape, options.function, sizes_of(arguments.sizes));
  };
  const RecordedTape recorded = recorded_tape(command, options, false, inputs);
  NamedVars parameters;
  for (std::size_t i = 0; i < recorded.tape.size(); ++i)
    if (const Node& node = recorded.tape.node(i); node.op == &parameter_op())
      parameters.add(node.name, recorded.tape.var({static_cast<std::int32_t>(i), 0}));
  return {recorded.tape, recorded.inputs, parameters, recorded.outputs};
}

namespace {
void print(const Mismatch& found) {
  std::printf("'%s' differs: %s, in the reference %s\n", found.name.c_str(), found.type.c_str(),
              found.reference_type.c_str());
  if (found.type == found.reference_type || std::isfinite(found.relative)) {
    std::string index;
    for (const std::int64_t i : found.element) index += (index.empty() ? "" : ", ") + std::to_string(i);
    std::printf("  by %.2e of its size, most at [%s]: %.7g, in the reference %.7g\n", found.relative, index.c_str(),
                found.ours, found.theirs);
  }
  if (found.transposed) std::printf("  the transpose matches\n");
  std::printf("  it is %s%s%s\n", found.node.c_str(), found.site.empty() ? "" : "  at ", found.site.c_str());
  if (!found.calls.empty()) std::printf("  the calls that compute it from values that match:\n");
  for (const std::string& call : found.calls) std::printf("    %s\n", call.c_str());
}
}  // namespace

namespace {
/// The first play of the arguments, and the names of its outputs, if they have any.
SavedPlay named_play(const CLI::App& command, const DiffArguments& arguments) {
  const std::string& first = arguments.first.what;
  const bool function = !arguments.recorded.function.empty();
  if (function || (is_saved_tape(first) && !is_capsule(first) && !is_saved_play(first))) {
    const SavedTape tape = function ? tape_of_definition(command, arguments, first) : Tape::load(first);
    return {play_of(tape, arguments.first), tape.outputs};
  }
  if (!is_saved_play(first)) return {play_of(arguments.first), {}};
  SavedPlay saved = load_play(first);
  set_options(arguments.first, saved.play);
  return saved;
}
}  // namespace

bool same_as_reference(const CLI::App& command, const DiffArguments& arguments) {
  const auto [play, outputs] = named_play(command, arguments);
  const ReferenceComparison found = compare(play, outputs, load_arrays(arguments.second), arguments.tolerance);
  if (found.matched.empty() && found.mismatched.empty())
    throw WrongInput("the tape has no module, weight or output named as an array of '" + arguments.second +
                     "', such as '" + (found.unknown.empty() ? "" : found.unknown[0]) + "'");
  std::printf("%zu arrays match, %zu differ", found.matched.size(), found.mismatched.size());
  if (!found.unknown.empty())
    std::printf(", %zu are not on the tape, such as '%s'", found.unknown.size(), found.unknown[0].c_str());
  std::printf("\n");
  if (!found.mismatched.empty()) print(found.mismatched[0]);
  return found.mismatched.empty();
}

}  // namespace xtape::cli
