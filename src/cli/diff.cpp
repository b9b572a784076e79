/// xtape diff: the first difference of two saved tapes, or of two files of digests.
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <tuple>

#include "commands.hpp"
#include "compare.hpp"
#include "digests.hpp"
#include "durable.hpp"

namespace xtape::cli {
namespace {

struct DiffArguments {
  std::string first, second;
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

void diff(const DiffArguments& arguments) {
  const bool tapes = as_wrong_input([&] { return is_saved_tape(arguments.first) && is_saved_tape(arguments.second); });
  const bool files = is_plain_file(arguments.first) && is_plain_file(arguments.second);
  if (!tapes && !files) throw WrongInput("diff compares two saved tapes, or two files of digests");
  const bool same = tapes ? same_tapes(Tape::load(arguments.first), Tape::load(arguments.second))
                          : same_digests(load_digests(arguments.first), load_digests(arguments.second));
  if (!same) throw WorkFailed("'" + arguments.first + "' and '" + arguments.second + "' differ");
}

}  // namespace

void add_diff(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("diff", "Print the first difference of two saved tapes or files of digests");
  const auto arguments = std::make_shared<DiffArguments>();
  command->add_option("FIRST", arguments->first, "A saved tape, or a file of `run --digests`")->required();
  command->add_option("SECOND", arguments->second, "Another of the same kind")->required();
  command->callback([arguments] { diff(*arguments); });
}

}  // namespace xtape::cli
