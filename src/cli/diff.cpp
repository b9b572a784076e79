/// xtape diff: the first difference of two saved tapes, of two files of digests, or of a play and arrays from
/// elsewhere.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <tuple>

#include "compare.hpp"
#include "digests.hpp"
#include "durable.hpp"
#include "play_of.hpp"
#include "xtape/safetensors.hpp"

namespace xtape::cli {
namespace {

struct DiffArguments {
  PlayArguments first;
  std::string second;
  double tolerance = 1e-4;
};

/// The number of a node on its tape is part of its name, so that digests of one tape are aligned also if it was played
/// with other passes. Nodes that are played as several steps are counted.
using DigestKey = std::tuple<std::string, std::string, int, int>;
std::vector<DigestKey> keys_of(const std::vector<Digest>& digests) {
  std::map<DigestKey, int> counts;
  std::vector<DigestKey> keys;
  for (const Digest& each : digests) {
    DigestKey key{each.node, each.op, each.output, 0};
    std::get<3>(key) = counts[key]++;
    keys.push_back(key);
  }
  return keys;
}

bool same_digests(const DigestFile& first, const DigestFile& second) {
  for (const auto& [name, value] : first.play)
    for (const auto& [other, theirs] : second.play)
      if (name == other && value != theirs) std::cout << name << ": " << value << " and " << theirs << '\n';
  std::map<DigestKey, const Digest*> theirs;
  const std::vector<DigestKey> keys = keys_of(first.digests), their_keys = keys_of(second.digests);
  for (std::size_t i = 0; i < their_keys.size(); ++i) theirs[their_keys[i]] = &second.digests[i];
  const Digest* found = nullptr;
  std::size_t both = 0, different = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto other = theirs.find(keys[i]);
    if (other == theirs.end()) continue;
    ++both;
    if (first.digests[i].hash == other->second->hash && first.digests[i].type == other->second->type) continue;
    ++different;
    if (found == nullptr) found = &first.digests[i];
  }
  std::cout << both << " values in both, of which " << different << " differ; " << keys.size() - both
            << " only in the first, " << their_keys.size() - both << " only in the second\n";
  if (found == nullptr) return both == keys.size() && both == their_keys.size();
  std::cout << "first: " << found->node;
  if (found->node.substr(found->node.find(' ') + 1) != found->op) std::cout << " (" << found->op << ")";
  std::cout << " -> " << found->type << (found->site.empty() ? "" : "  at " + found->site) << '\n';
  return false;
}

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

void print(const Mismatch& found) {
  std::printf("'%s' differs: %s, in the reference %s\n", found.name.c_str(), found.type.c_str(),
              found.reference_type.c_str());
  if (std::isfinite(found.relative)) {
    std::string index;
    for (const std::int64_t i : found.element) index += (index.empty() ? "" : ", ") + std::to_string(i);
    std::printf("  by %.2e of its size, most by %.3g at [%s]\n", found.relative, found.largest, index.c_str());
  }
  if (found.transposed) std::printf("  the transpose matches\n");
  std::printf("  it is %s%s%s\n", found.node.c_str(), found.site.empty() ? "" : "  at ", found.site.c_str());
  if (!found.calls.empty()) std::printf("  the calls that compute it from values that match:\n");
  for (const std::string& call : found.calls) std::printf("    %s\n", call.c_str());
}

bool same_as_reference(const DiffArguments& arguments) {
  const RecordedPlay play = play_of(arguments.first);
  NamedVars outputs;
  if (is_saved_tape(arguments.first.what)) {
    const SavedTape saved = Tape::load(arguments.first.what);
    for (const auto& [name, var] : saved.outputs) outputs.add(name, play.tape.var(var.id()));
  }
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

/// Whether a file holds arrays: digests are JSON.
bool is_safetensors(const std::string& path) {
  const std::string end = ".safetensors";
  return path.size() > end.size() && path.compare(path.size() - end.size(), end.size(), end) == 0;
}

void diff(const DiffArguments& arguments) {
  const std::string &first = arguments.first.what, &second = arguments.second;
  const bool same = as_wrong_input([&] {
    if (is_safetensors(second)) return same_as_reference(arguments);
    if (is_saved_tape(first) && is_saved_tape(second)) return same_tapes(Tape::load(first), Tape::load(second));
    if (!is_plain_file(first) || !is_plain_file(second))
      throw WrongInput("diff compares two saved tapes, two files of digests, or a play and a safetensors file");
    return same_digests(load_digests(first), load_digests(second));
  });
  if (!same) throw WorkFailed("'" + first + "' and '" + second + "' differ");
}

}  // namespace

void add_diff(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "diff", "Print the first difference of two saved tapes, two files of digests, or a play and a reference");
  const auto arguments = std::make_shared<DiffArguments>();
  add_play(*command, arguments->first);
  command
      ->add_option("SECOND", arguments->second,
                   "Another saved tape or file of digests; or a safetensors file of activations by module, weights and "
                   "outputs by name")
      ->required();
  command->add_option("--tolerance", arguments->tolerance, "The relative difference up to which arrays match")
      ->capture_default_str();
  command->callback([arguments] { diff(*arguments); });
}

}  // namespace xtape::cli
