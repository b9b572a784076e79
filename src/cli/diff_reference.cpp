// Finds the first difference between a play and reference arrays.
#include <cmath>
#include <cstdio>
#include <optional>

#include "base/arrays/elements.hpp"
#include "cli/commands/diff.hpp"
#include "xtape/safetensors.hpp"

namespace xtape::cli {

namespace {
/// Translates the name of a weight of PyTorch's nn.RNN, nn.LSTM or nn.GRU: "lstm.weight_ih_l0" becomes
/// "lstm.input.weight". Layers after the first are repeats of the module: "lstm.1.input.weight". Returns `name` itself
/// if `weights` have no weight with the new name.
std::string name_here(const std::string& name, const Store& weights) {
  const std::string before = name.starts_with("grad.") ? "grad." : "";
  const std::string path = name.substr(before.size());
  for (const auto& [theirs, ours] : {std::pair{"weight_ih_l", "input.weight"},
                                     {"bias_ih_l", "input.bias"},
                                     {"weight_hh_l", "recurrent.weight"},
                                     {"bias_hh_l", "recurrent.bias"}}) {
    const std::size_t at = path.rfind(theirs);
    if (at == std::string::npos || weights.has(path)) continue;
    const std::string module = path.substr(0, at), layer = path.substr(at + std::string(theirs).size());
    if (weights.has(module + layer + "." + ours)) return before + module + layer + "." + ours;
    if (layer == "0" && weights.has(module + ours)) return before + module + ours;
  }
  return name;
}

void print(const Mismatch& found) {
  std::printf("'%s' differs: %s, in the reference %s\n", found.name.c_str(), found.type.c_str(),
              found.reference_type.c_str());
  if (found.type == found.reference_type || std::isfinite(found.relative)) {
    std::printf("  by %.2e of its size, most at %s: %.7g, in the reference %.7g\n", found.relative,
                index_text(found.element).c_str(), found.ours, found.theirs);
  }
  if (found.transposed) std::printf("  the transpose matches\n");
  std::printf("  it is %s%s%s\n", found.node.c_str(), found.site.empty() ? "" : "  at ", found.site.c_str());
  if (!found.calls.empty()) std::printf("  the calls that compute it from values that match:\n");
  for (const std::string& call : found.calls) std::printf("    %s\n", call.c_str());
  if (!found.applied.empty()) std::printf("  the lines that apply these modules:\n");
  for (const std::string& line : found.applied) std::printf("    %s\n", line.c_str());
}

/// Returns the arrays with the names that weights have in xtape.
Store named_for(const Store& file, const Store& weights) {
  Store named;
  for (const Store::Entry& entry : file) named.add(name_here(entry.name, weights), Array(entry.value));
  return named;
}

/// Returns the arrays to compare with: all except inputs.
Store reference_in(const Store& file, const SavedTape& tape) {
  Store weights, reference;
  for (const auto& [name, var] : tape.parameters) weights.add(name, Array(var.node().storage));
  for (const Store::Entry& entry : named_for(file, weights))
    if (!tape.inputs.has(entry.name)) reference.add(entry.name, Array(entry.value));
  return reference;
}
}  // namespace

bool same_as_reference(const CLI::App& command, const DiffArguments& arguments) {
  const std::string& first = arguments.first.what;
  const Store file = load_arrays(arguments.second);
  const bool one_file = arguments.first.in.empty() || arguments.first.in == arguments.second;
  std::optional<SavedTape> tape;
  std::optional<SavedPlay> saved;
  RecordedLines lines;
  if (!arguments.recorded.function.empty()) {
    DiffArguments with_file = arguments;  // one file may contain everything: weights, inputs and results of modules
    if (arguments.recorded.weights.empty() || arguments.recorded.weights == arguments.second)
      with_file.recorded.weights_among = [&](const Store& weights) { return named_for(file, weights); };
    const RecordedTape recorded = definition_recorded(command, with_file, first);
    lines = recorded.lines;
    tape = saved_form(recorded);
  } else if (is_saved_play(first)) {
    saved = load_play(first);
    set_options(arguments.first, saved->play);
  } else if (is_tape_file(first) && !is_capsule(first)) {
    PlayArguments with_file = arguments.first;
    if (one_file) with_file.in = arguments.second;
    tape = tape_at(first, with_file);
  }
  const RecordedPlay play = saved      ? saved->play
                            : !tape    ? play_of(arguments.first)
                            : one_file ? play_of(*tape, arguments.first, file)
                                       : play_of(*tape, arguments.first);
  NamedVars names = saved ? saved->outputs : lines.values;
  const Store reference = tape ? reference_in(file, *tape) : file;
  if (tape)
    for (const auto& [name, var] : tape->outputs) names.set(name, var);
  if (reference.empty()) throw WrongInput("'" + arguments.second + "' has no arrays to compare with, only inputs");
  const ReferenceComparison found = compare(play, names, reference, arguments.tolerance, lines.applied);
  if (found.matched.empty() && found.mismatched.empty())
    throw WrongInput("the tape has no module, weight or output named as an array of '" + arguments.second +
                     "', such as '" + found.unknown[0] + "'");
  std::printf("%zu arrays match, %zu differ", found.matched.size(), found.mismatched.size());
  if (!found.unknown.empty())
    std::printf(", %zu are not on the tape, such as '%s'", found.unknown.size(), found.unknown[0].c_str());
  std::printf("\n");
  if (!found.mismatched.empty()) print(found.mismatched[0]);
  return found.mismatched.empty();
}

}  // namespace xtape::cli
