// Finds the first difference between two recipes or runs.
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "base/files/durable.hpp"
#include "base/files/files.hpp"
#include "cli/commands/diff.hpp"
#include "tape/node_text.hpp"
#include "train/run/checkpoint.hpp"
#include "train/run/metrics.hpp"
#include "train/run/run_parts.hpp"
#include "xtape/safetensors.hpp"

namespace xtape::cli {

namespace {
/// Returns the losses of updates by step.
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
  std::printf("the losses of %zu updates are the same", both);
  if (ours.size() > both) std::printf("; the first has %zu more", ours.size() - both);
  if (theirs.size() > both) std::printf("; the second has %zu more", theirs.size() - both);
  std::printf("\n");
  return ours.size() == both && theirs.size() == both;
}

bool is_same(const Array& first, const Array& second) {
  return first.dtype() == second.dtype() && first.shape() == second.shape() &&
         std::memcmp(first.data(), second.data(), first.bytes()) == 0;
}

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
    same = same_losses(arguments.first.what, arguments.second) && same;
    same = same_weights(arguments.first.what, arguments.second) && same;
  }
  return same;
}

}  // namespace xtape::cli
