// Finds the first difference between two recipes, runs or ledgers.
#include <bit>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "base/system/durable.hpp"
#include "cli/commands/diff.hpp"
#include "tape/node_text.hpp"
#include "tape/tape_json.hpp"
#include "train/run/checkpoint.hpp"
#include "train/run/ledger.hpp"
#include "train/run/run_parts.hpp"
#include "xtape/safetensors.hpp"

namespace xtape::cli {

namespace {
/// Of the values of two maps by step, finds the first that differ.
template <class Map>
struct Comparison {
  Comparison(const Map& first, const Map& second) {
    for (const auto& [step, value] : first) {
      const auto other = second.find(step);
      if (other == second.end()) continue;
      if (other->second != value) {
        differs = step;
        return;
      }
      ++same;
      last_same = step;
    }
  }
  std::size_t same = 0;  // of the values before the first that differ
  std::int64_t last_same = -1, differs = -1;
};

void print_numbers(const char* what, std::uint64_t first, std::uint64_t second) {
  std::printf("  %s %.9g and %.9g, bits %s and %s\n", what, std::bit_cast<double>(first), std::bit_cast<double>(second),
              hexadecimal(first).c_str(), hexadecimal(second).c_str());
}

std::string weights_text(std::int64_t step) {
  return step == 0 ? "the initial weights" : "the weights after update " + std::to_string(step);
}
}  // namespace

bool same_ledgers(const std::string& first, const std::string& second) {
  const train::LedgerContent ours = train::read_ledger(first), theirs = train::read_ledger(second);
  const Comparison updates(ours.updates, theirs.updates);
  const Comparison weights(ours.weights, theirs.weights);
  std::printf("the losses and gradient norms of %zu updates are the same", updates.same);
  if (updates.differs > 0) {
    const train::LedgerUpdate &mine = ours.updates.at(updates.differs), &other = theirs.updates.at(updates.differs);
    std::printf("; those of update %lld differ\n", static_cast<long long>(updates.differs));
    print_numbers("loss", mine.loss, other.loss);
    print_numbers("gradient norm", mine.norm, other.norm);
    const bool before = weights.differs >= 0 && weights.differs < updates.differs;
    if (before || weights.last_same >= 0)
      std::printf("  %s %s\n", weights_text(before ? weights.differs : weights.last_same).c_str(),
                  before ? "differ already" : "are the same");
    return false;
  }
  if (ours.updates.size() > updates.same) std::printf("; the first has %zu more", ours.updates.size() - updates.same);
  if (theirs.updates.size() > updates.same)
    std::printf("; the second has %zu more", theirs.updates.size() - updates.same);
  std::printf("\n");
  if (weights.differs >= 0) std::printf("%s differ\n", weights_text(weights.differs).c_str());
  return weights.differs < 0 && ours.updates.size() == updates.same && theirs.updates.size() == updates.same;
}

namespace {
/// Returns the path of a run's checkpoint.
std::string checkpoint_of(const std::string& run, const std::string& name) {
  return run + "/" + train::checkpoints_folder + "/" + name;
}

/// Returns the name of the last checkpoint that both runs have, or "" if there is none.
std::string last_common_checkpoint(const std::string& first, const std::string& second) {
  std::string common;
  for (const std::string& path : train::checkpoints(checkpoint_of(first, ""))) {
    const std::string name = path.substr(path.rfind('/') + 1);
    if (path_exists(checkpoint_of(second, name))) common = name;
  }
  return common;
}

bool same_weights(const std::string& first, const std::string& second) {
  const std::string common = last_common_checkpoint(first, second);
  if (common.empty()) {
    std::printf("they have no checkpoint of the same update\n");
    return false;
  }
  const char* weights = "/weights.safetensors";
  const Store ours = load_arrays(checkpoint_of(first, common) + weights),
              theirs = load_arrays(checkpoint_of(second, common) + weights);
  std::vector<std::string> different;
  for (const auto& [name, array] : ours)
    if (const Array* other = theirs.find(name); other == nullptr || !is_same(array, *other)) different.push_back(name);
  for (const Store::Entry& entry : theirs)
    if (!ours.has(entry.name)) different.push_back(entry.name);
  if (different.empty())
    std::printf("the weights of checkpoint %s are the same\n", common.c_str());
  else
    std::printf("%zu of %zu weights of checkpoint %s differ, first '%s'\n", different.size(), ours.size(),
                common.c_str(), different[0].c_str());
  return different.empty();
}

}  // namespace

bool same_trainings(const DiffArguments& arguments) {
  PlayArguments second = arguments.first;
  second.what = arguments.second;
  const std::string found = first_difference(play_of(arguments.first).tape, play_of(second).tape);
  std::cout << (found.empty() ? "the tapes of an update are the same" : found) << std::endl;
  bool same = found.empty();
  if (kind_of(arguments.first.what) == Kind::run && kind_of(arguments.second) == Kind::run) {
    const auto has_ledger = [](const std::string& run) { return path_exists(path_in(run, train::ledger_file)); };
    if (has_ledger(arguments.first.what) && has_ledger(arguments.second))
      same = same_ledgers(arguments.first.what, arguments.second) && same;
    else
      std::printf("a run has no ledger: the losses are not compared\n");
    same = same_weights(arguments.first.what, arguments.second) && same;
  }
  return same;
}

}  // namespace xtape::cli
