/// xtape diff: the first difference of two saved tapes, of two files of digests, or of a play and arrays from
/// elsewhere.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <tuple>

#include "checkpoint.hpp"
#include "compare.hpp"
#include "digests.hpp"
#include "durable.hpp"
#include "files.hpp"
#include "json_text.hpp"
#include "metrics.hpp"
#include "new_run.hpp"
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

bool is_run(const std::string& path) {
  return is_plain_file(path + "/recipe.json");
}

/// The losses of updates by step.
std::map<std::int64_t, double> losses_of(const std::string& run) {
  std::map<std::int64_t, double> losses;
  const std::string file = run + "/metrics.jsonl";
  if (!is_plain_file(file)) return losses;
  for (const train::Measured& line : train::read_metrics(file))
    if (const double* loss = line.find("loss")) losses[line.step] = *loss;
  return losses;
}

bool same_losses(const std::string& first, const std::string& second) {
  const std::map<std::int64_t, double> ours = losses_of(first), theirs = losses_of(second);
  std::size_t both = 0;
  for (const auto& [step, loss] : ours) {
    const auto other = theirs.find(step);
    if (other == theirs.end()) continue;
    if (other->second != loss) {
      std::printf("the losses of %zu updates are the same; that of update %lld is %.9g and %.9g\n", both,
                  static_cast<long long>(step), loss, other->second);
      return false;
    }
    ++both;
  }
  std::printf("the losses of %zu updates are the same\n", both);
  return true;
}

/// Compares the weights of the last checkpoint that both runs have.
bool same_weights(const std::string& first, const std::string& second) {
  const auto folder = [](const std::string& run) { return run + "/" + train::checkpoints_folder + "/"; };
  std::string common;
  for (const std::string& path : train::checkpoints(folder(first))) {
    const std::string name = path.substr(path.rfind('/') + 1);
    if (path_exists(folder(second) + name)) common = name;
  }
  if (common.empty()) return true;
  const Store ours = load_arrays(folder(first) + common + "/weights.safetensors"),
              theirs = load_arrays(folder(second) + common + "/weights.safetensors");
  std::size_t different = 0;
  std::string found;
  for (const auto& [name, array] : ours) {
    const Array* other = theirs.find(name);
    const bool same = other != nullptr && other->dtype() == array.dtype() && other->shape() == array.shape() &&
                      std::memcmp(other->data(), array.data(), array.bytes()) == 0;
    if (!same && different++ == 0) found = name;
  }
  if (different == 0)
    std::printf("the weights of checkpoint %s are the same\n", common.c_str());
  else
    std::printf("%zu of %zu weights of checkpoint %s differ, first '%s'\n", different, ours.size(), common.c_str(),
                found.c_str());
  return different == 0;
}

/// Compares the updates that recipes or runs play; of two runs also their losses and weights.
bool same_trainings(const DiffArguments& arguments) {
  PlayArguments second = arguments.first;
  second.what = arguments.second;
  const std::string found = first_difference(play_of(arguments.first).tape, play_of(second).tape);
  std::cout << (found.empty() ? "the tapes of an update are the same" : found) << std::endl;
  bool same = found.empty();
  if (is_run(arguments.first.what) && is_run(arguments.second)) {
    same = same_losses(arguments.first.what, arguments.second) && same;
    same = same_weights(arguments.first.what, arguments.second) && same;
  }
  return same;
}

/// Whether the text is a file of digests, which is JSON, and not of a recipe.
bool is_digests(const std::string& path) {
  if (!is_plain_file(path)) return false;
  const JsonNode root(read_file(path), path, JsonErrors::file);
  return root.has("digests");
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
    if (is_digests(first) || is_digests(second)) return same_digests(load_digests(first), load_digests(second));
    return same_trainings(arguments);
  });
  if (!same) throw WorkFailed("'" + first + "' and '" + second + "' differ");
}

}  // namespace

void add_diff(CLI::App& program) {
  CLI::App* command = program.add_subcommand(
      "diff",
      "Print the first difference of two saved tapes, runs, recipes or files of digests, or of a play and a reference");
  const auto arguments = std::make_shared<DiffArguments>();
  add_play(*command, arguments->first);
  command
      ->add_option("SECOND", arguments->second,
                   "Another of the same kind; or a safetensors file of activations by module, weights and "
                   "outputs by name")
      ->required();
  command->add_option("--tolerance", arguments->tolerance, "The relative difference up to which arrays match")
      ->capture_default_str();
  command->callback([arguments] { diff(*arguments); });
}

}  // namespace xtape::cli
