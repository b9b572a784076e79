#include "train/run/checkpoint.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>

#include "base/files/durable.hpp"
#include "xtape/safetensors.hpp"

namespace xtape::train {

namespace fs = std::filesystem;

namespace {
constexpr const char* carried_file = "/carried.safetensors";
}  // namespace

void write_checkpoint(const std::string& path, const Store& weights,
                      const std::function<void(const std::string& file)>& save_optimizer, const State& state,
                      const Store& carried) {
  write_folder(path, [&](const std::string& beside) {
    save_arrays(beside + "/weights.safetensors", weights);
    save_optimizer(beside + "/optimizer.safetensors");
    if (!carried.empty()) save_arrays(beside + carried_file, carried);
    write_state(beside, state);
  });
}

Store read_carried(const std::string& path, const std::vector<CarriedState>& states) {
  if (states.empty()) return {};
  const std::string file = path + carried_file;
  if (!path_exists(file))
    throw FileError("checkpoint " + path + " has no " + file.substr(path.size() + 1) +
                    ": the next batch continues from carried states, " + to_string(states) +
                    ", and the run that wrote it carried none");
  Store carried = load_arrays(file);
  if (!are_states(carried, states))
    throw FileError(file + " does not hold " + to_string(states) + ": the model or the number of rows is different");
  return carried;
}

std::string checkpoint_name(std::int64_t step) {
  std::string name = std::to_string(step);
  return std::string(name.size() < 8 ? 8 - name.size() : 0, '0') + name;
}

std::int64_t step_of_checkpoint(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  std::int64_t step = -1;
  const auto [rest, failed] = std::from_chars(name.data(), name.data() + name.size(), step);
  return failed == std::errc() && rest == name.data() + name.size() ? step : -1;
}

std::vector<std::string> checkpoints(const std::string& directory) {
  std::vector<std::string> found;
  for (const std::string& name : names_in(directory))
    if (step_of_checkpoint(name) >= 0) found.push_back((fs::path(directory) / name).string());
  std::ranges::sort(
      found, [](const std::string& a, const std::string& b) { return step_of_checkpoint(a) < step_of_checkpoint(b); });
  return found;
}

void remove_old_checkpoints(const std::string& directory, std::int64_t keep, std::int64_t best,
                            const std::function<void(const std::string& sentence)>& warn) {
  const auto report = [&](const std::string& path, const std::string& why) {
    if (!why.empty() && warn)
      warn("cannot remove '" + path + "': " + why + "; the next checkpoint that is written tries again");
  };
  for (const std::string& name : names_in(directory))
    if (is_unfinished(name)) {
      const std::string path = (fs::path(directory) / name).string();
      report(path, try_to_remove(path));
    }
  if (keep == 0) return;
  const std::vector<std::string> found = checkpoints(directory);
  for (std::size_t i = 0; i + static_cast<std::size_t>(keep) < found.size(); ++i) {
    if (best >= 0 && step_of_checkpoint(found[i]) == best) continue;
    // Renames the checkpoint before the removal, so that a partially removed directory does not count as a checkpoint.
    const std::string away = found[i] + unfinished;
    const std::string why = try_to_rename(found[i], away);
    report(why.empty() ? away : found[i], why.empty() ? try_to_remove(away) : why);
  }
}

void set_aside_after(const std::string& directory, std::int64_t step) {
  const std::vector<std::string> found = checkpoints(directory);
  // Goes from the last checkpoint to the first. If the loop is interrupted, the remaining checkpoints have no gap.
  for (auto each = found.rbegin(); each != found.rend() && step_of_checkpoint(*each) > step; ++each) {
    const std::string name = *each + ".set-aside";
    std::string aside = name;
    for (int number = 2; path_exists(aside); ++number) aside = name + "-" + std::to_string(number);
    rename_path(*each, aside);
  }
}

void load_last(const std::vector<std::string>& found, const std::function<void(const std::string&)>& load) {
  try {
    load(found.back());
  } catch (const CommunicationError&) {
    throw;  // the connection failed; the checkpoint may be intact
  } catch (const Error& error) {
    for (auto each = found.rbegin() + 1; each != found.rend(); ++each) {
      try {
        load(*each);
      } catch (const Error&) {
        continue;
      }
      const std::string step = std::to_string(step_of_checkpoint(*each));
      throw FileError(std::string(error.what()) + "; the checkpoint of step " + step + " is intact: --checkpoint " +
                      step + " loads it");
    }
    throw;
  }
}

}  // namespace xtape::train
