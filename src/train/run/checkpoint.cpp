#include "train/run/checkpoint.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/json/json_text.hpp"
#include "base/messages/wording.hpp"
#include "base/system/durable.hpp"
#include "base/system/files.hpp"
#include "model/weights/stored_weights.hpp"
#include "xtape/safetensors.hpp"

namespace xtape::train {

namespace fs = std::filesystem;

namespace {
constexpr const char* carried_file = "/carried.safetensors";
}  // namespace

void write_checkpoint(const std::string& path, const Store& weights,
                      const std::function<void(const std::string& file)>& save_optimizer, const State& state,
                      const Store& carried, const Store& averages,
                      const std::function<void(const std::string& folder)>& complete,
                      const std::map<std::string, Axes>& orders) {
  write_folder(path, [&](const std::string& beside) {
    const bool keeps_blocks = start_of(path).empty();
    Store changing;
    for (const Store::Entry& entry : weights)
      if (!is_block(entry.value.dtype()) || keeps_blocks) changing.add(entry.name, Array(entry.value));
    save_arrays(beside + "/weights.safetensors", changing,
                keeps_blocks ? model::order_metadata(orders) : std::vector<std::pair<std::string, std::string>>());
    save_optimizer(beside + "/optimizer.safetensors");
    if (!carried.empty()) save_arrays(beside + carried_file, carried);
    if (!averages.empty()) save_arrays(beside + averages_file, averages);
    write_state(beside, state);
    if (complete) complete(beside);
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

std::string start_of(const std::string& checkpoint) {
  const std::string file = path_in(folder_of(folder_of(checkpoint)), first_weights_file);
  return path_exists(file) ? file : "";
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

// Reads and writes state.json.

namespace {
constexpr const char* state_file = "/state.json";
constexpr std::int64_t most = std::int64_t{1} << 62;  // a limit, so that further counting does not overflow
}  // namespace

void write_state(const std::string& path, const State& state) {
  Json json = {{"xtape", 1}, {"step", state.step}, {"cursor", state.cursor}, {"seed", state.seed}};
  if (state.epoch_batches > 0) json["epoch_batches"] = state.epoch_batches;
  if (state.order > 0) json["order"] = state.order;
  if (state.evaluated >= 0) {
    json["evaluated"] = state.evaluated;
    json["evaluations_since"] = state.stale;
  }
  if (state.best_step >= 0) {
    json["best_step"] = state.best_step;
    json["best"] = state.best;
  }
  if (state.privacy.rate > 0)
    json["privacy"] = {{"noise_multiplier", state.privacy.noise_multiplier}, {"rate", state.privacy.rate}};
  if (state.evaluation_due) json["evaluation_due"] = true;
  write_file(path + state_file, json.dump(2) + "\n");
}

State read_state(const std::string& path) {
  const std::string file = path + state_file;
  const JsonNode json(read_file(file), file + " is not a checkpoint's state", JsonErrors::file);
  const auto whole = [&](const char* key, std::int64_t otherwise, std::int64_t least, std::int64_t greatest) {
    return json.has(key) ? json.at(key).integer(least, greatest) : otherwise;
  };
  json.at("xtape").integer(1, 1);
  State state;
  state.step = json.at("step").integer(0, most);
  state.cursor = static_cast<std::uint64_t>(json.at("cursor").integer(0, most));
  if (!json.at("seed").json().is_number_unsigned()) json.at("seed").fail("the seed must be an integer of at least 0");
  state.seed = json.at("seed").json();
  state.epoch_batches = whole("epoch_batches", state.epoch_batches, 0, most);
  state.order = static_cast<std::uint64_t>(whole("order", 0, 0, most));
  state.evaluated = whole("evaluated", state.evaluated, -1, state.step);
  state.stale = whole("evaluations_since", state.stale, 0, most);
  state.best_step = whole("best_step", state.best_step, -1, state.step);
  if (json.has("best_step")) state.best = json.at("best").number();
  if (json.has("privacy")) {
    const JsonNode privacy = json.at("privacy");
    state.privacy = {privacy.at("noise_multiplier").number(), privacy.at("rate").number()};
  }
  if (json.has("evaluation_due")) state.evaluation_due = json.at("evaluation_due").flag();
  return state;
}

}  // namespace xtape::train

// Chooses one of a run's checkpoints.

namespace xtape {

CheckpointChoice CheckpointChoice::parse(const std::string& text) {
  const std::string average = "average:", ema = "ema";
  if (text == ema || text.starts_with(ema + ":")) {
    CheckpointChoice choice = parse(text == ema ? "last" : text.substr(ema.size() + 1));
    if (choice.kind == Kind::average || choice.ema) throw Error("'" + text + "' must be ema, ema:best or ema:STEP");
    choice.ema = true;
    return choice;
  }
  if (text == "last") return {Kind::last, 1};
  if (text == "best") return {Kind::best, 1};
  const bool is_average = text.rfind(average, 0) == 0;
  CheckpointChoice choice = {is_average ? Kind::average : Kind::step, 0};
  const char* end = text.data() + text.size();
  const auto [rest, failed] = std::from_chars(text.data() + (is_average ? average.size() : 0), end, choice.count);
  if (failed == std::errc() && rest == end && choice.count >= 1) return choice;
  throw Error("a checkpoint must be last, best, average:N, ema or the number of a step, not '" + text + "'");
}

namespace train {

namespace {
/// Gives the weights of which the file has averages the values of these.
void load_averages(Model& model, const std::string& path) {
  if (!path_exists(path))
    throw FileError("checkpoint " + path.substr(0, path.rfind('/')) +
                    " has no averages of the weights: its recipe had no 'ema'");
  for (const auto& [name, average] : load_arrays(path)) {
    Array weight = model.weight(name);
    if (weight.dtype() != average.dtype() || weight.shape() != average.shape())
      throw FileError(path + " does not fit the weight '" + name + "'");
    weight.assign(average);
  }
}

/// Returns the checkpoint of a step, or the best one. `found` is not empty.
std::string chosen_of(const std::vector<std::string>& found, const std::string& directory,
                      const CheckpointChoice& choice) {
  std::int64_t step = choice.count;
  if (choice.kind == CheckpointChoice::Kind::best) {
    step = read_state(found.back()).best_step;
    if (step < 0) throw FileError(directory + " has no best checkpoint: nothing has been evaluated yet");
  }
  const std::string path = directory + "/" + checkpoint_name(step);
  if (contains(found, path)) return path;
  if (choice.kind == CheckpointChoice::Kind::best)
    throw FileError(directory + " does not have the best checkpoint: step " + std::to_string(step) +
                    " was the best, but it has no checkpoint (see checkpoint_every)");
  throw FileError(directory + " has no checkpoint of step " + std::to_string(step) + "; it has those of steps " +
                  joined(found, [](const std::string& each) { return std::to_string(step_of_checkpoint(each)); }));
}

std::vector<std::string> existing_checkpoints(const std::string& directory) {
  std::vector<std::string> found = checkpoints(directory);
  if (found.empty()) throw FileError(directory + " has no checkpoint yet");
  return found;
}

std::string weights_of(const std::string& checkpoint) {
  return checkpoint + "/weights.safetensors";
}

/// Returns the last checkpoints, of which `found` must have as many.
std::vector<std::string> last_of(const std::vector<std::string>& found, const std::string& directory,
                                 std::int64_t count) {
  if (std::ssize(found) < count)
    throw FileError(directory + " has " + std::to_string(found.size()) +
                    (found.size() == 1 ? " checkpoint, fewer than the " : " checkpoints, fewer than the ") +
                    std::to_string(count) + " to average");
  return {found.end() - count, found.end()};
}

std::int64_t load_from(const std::vector<std::string>& found, Model& model, const std::string& directory,
                       const CheckpointChoice& choice) {
  const auto load = [&](const std::string& path) {
    model.load_weights(weights_of(path), start_of(path));
    if (choice.ema) load_averages(model, path + averages_file);
  };
  State last;
  if (choice.kind == CheckpointChoice::Kind::last) {
    load_last(found, [&](const std::string& path) {
      last = read_state(path);
      load(path);
    });
    return last.step;
  }
  if (choice.kind != CheckpointChoice::Kind::average) {
    const std::string path = chosen_of(found, directory, choice);
    load(path);
    return step_of_checkpoint(path);
  }
  last = read_state(found.back());
  std::vector<std::string> files;
  for (const std::string& path : last_of(found, directory, choice.count)) files.push_back(weights_of(path));
  model.load_weights(files.back(), start_of(found.back()));  // checks that they are weights of this model
  for_each_mean(files, [&](const std::string& name, Array mean) { model.weight(name).assign(mean); });
  return last.step;
}
}  // namespace

std::vector<std::string> chosen_checkpoints(const std::string& directory, const CheckpointChoice& choice) {
  const std::vector<std::string> found = existing_checkpoints(directory);
  if (choice.kind == CheckpointChoice::Kind::average) return last_of(found, directory, choice.count);
  return {choice.kind == CheckpointChoice::Kind::last ? found.back() : chosen_of(found, directory, choice)};
}

std::string chosen_checkpoint(const std::string& directory, const CheckpointChoice& choice) {
  if (choice.kind == CheckpointChoice::Kind::average)
    throw Error("'average' is of several checkpoints, and one belongs here");
  return chosen_checkpoints(directory, choice)[0];
}

std::int64_t load_checkpoint(Model& model, const std::string& directory, const CheckpointChoice& choice) {
  constexpr int most = 10;
  for (int attempt = 1;; ++attempt) {
    const std::vector<std::string> found = existing_checkpoints(directory);
    try {
      return load_from(found, model, directory, choice);
    } catch (const Error&) {
      // If the list of checkpoints has changed, a training has replaced them during the read.
      if (attempt == most || checkpoints(directory) == found) throw;
    }
  }
}

}  // namespace train
}  // namespace xtape
