// Finds the first difference between two saved plays.
#include <cstring>
#include <iostream>
#include <map>
#include <tuple>

#include "cli/commands/diff.hpp"
#include "cli/recorded.hpp"

namespace xtape::cli {

bool same_plays(const std::string& first_path, const std::string& second_path) {
  const SavedPlay one = load_play(first_path), other = load_play(second_path);
  const RecordedPlay &first = one.play, &second = other.play;
  if (!same_tapes({first.tape, one.outputs}, {second.tape, other.outputs})) return false;
  for (const auto& [name, ours] : first.inputs) {
    const Array& theirs = second.inputs.at(name);  // exists, because the tapes are the same
    if (std::memcmp(ours.data(), theirs.data(), ours.bytes()) == 0) continue;
    std::cout << "the same tapes; input '" << name << "' has other elements\n";
    return false;
  }
  if (first.options.precision != second.options.precision) {
    std::cout << "the same tapes and inputs; the precision of products is " << name_of(first.options.precision)
              << ", and " << name_of(second.options.precision) << '\n';
    return false;
  }
  if (first.options.seed == second.options.seed && first.step == second.step) return true;
  std::cout << "the same tapes and inputs; the random numbers differ: seed " << first.options.seed << ", step "
            << first.step << ", and seed " << second.options.seed << ", step " << second.step << '\n';
  return false;
}

}  // namespace xtape::cli

// Finds the first difference between two files of digests.
namespace xtape::cli {

namespace {
/// The key contains the number of the node on its tape. Digests of the same tape are therefore aligned even if the
/// passes differ. The last element counts the steps of a node that is played in several steps.
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

}  // namespace

bool same_digests(const std::string& first_file, const std::string& second_file) {
  const DigestFile first = load_digests(first_file), second = load_digests(second_file);
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

}  // namespace xtape::cli
