// The first difference of two recipes or runs.
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>

#include "checkpoint.hpp"
#include "compare.hpp"
#include "diff.hpp"
#include "durable.hpp"
#include "files.hpp"
#include "metrics.hpp"
#include "new_run.hpp"
#include "xtape/safetensors.hpp"

namespace xtape::cli {

namespace {
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

}  // namespace

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

}  // namespace xtape::cli
