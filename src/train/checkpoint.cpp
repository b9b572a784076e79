#include "checkpoint.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "files.hpp"
#include "json_text.hpp"
#include "xtape/safetensors.hpp"
#include "xtape/text.hpp"

namespace xtape::train {

namespace fs = std::filesystem;

namespace {
constexpr const char* unfinished = ".writing";
constexpr const char* carried_file = "/carried.safetensors";

[[noreturn]] void fail(const std::string& what, const std::string& path) {
  throw FileError("cannot " + what + " " + path + ": " + std::strerror(errno));
}

/// Waits until what was written is on the disk.
void flush(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail("open", path);
  const int failed = fsync(file);
  const int reason = errno;
  close(file);
  errno = reason;
  if (failed != 0) fail("flush", path);
}

std::string parent_of(const std::string& path) {
  return fs::absolute(path).parent_path().string();
}

void write_all(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) fail("write", path);
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) != 0 || !written) fail("write", path);
  flush(path);
}

/// Puts directory `from` in the place of `to`; what was there is removed afterwards.
void put_in_place(const std::string& from, const std::string& to) {
  if (!fs::exists(to)) {
    if (std::rename(from.c_str(), to.c_str()) != 0) fail("rename to", to);
    return;
  }
  // A plain rename does not replace a directory that holds files; the exchange is as indivisible.
  constexpr unsigned exchange = 2;
  if (syscall(SYS_renameat2, AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), exchange) != 0) fail("replace", to);
  fs::remove_all(from);
}
}  // namespace

void write_file(const std::string& path, const std::string& text) {
  const std::string beside = path + unfinished;
  write_all(beside, text);
  if (std::rename(beside.c_str(), path.c_str()) != 0) fail("rename to", path);
  flush(parent_of(path));
}

void write_checkpoint(const std::string& path, const Store& weights, const Store& optimizer, const State& state,
                      const Store& carried) {
  try {
    const std::string beside = path + unfinished;
    fs::remove_all(beside);
    fs::create_directories(beside);
    save_arrays(beside + "/weights.safetensors", weights);
    save_arrays(beside + "/optimizer.safetensors", optimizer);
    if (!carried.entries().empty()) save_arrays(beside + carried_file, carried);
    Json json = {{"xtape", 1}, {"step", state.step}, {"cursor", state.cursor}, {"seed", state.seed}};
    if (state.epoch_batches > 0) json["epoch_batches"] = state.epoch_batches;
    if (state.evaluated >= 0) {
      json["evaluated"] = state.evaluated;
      json["evaluations_since"] = state.stale;
    }
    if (state.best_step >= 0) {
      json["best_step"] = state.best_step;
      json["best"] = state.best;
    }
    write_all(beside + "/state.json", json.dump(2) + "\n");
    flush(beside);
    put_in_place(beside, path);
    flush(parent_of(path));
  } catch (const fs::filesystem_error& error) {
    throw FileError("cannot write checkpoint " + path + ": " + error.code().message());
  }
}

State read_state(const std::string& path) {
  const std::string file = path + "/state.json";
  const JsonNode json(read_file(file), file + " is not a checkpoint's state", JsonErrors::file);
  const auto whole = [&](const char* key, std::int64_t otherwise) {
    return json.has(key) ? json.at(key).integer(0, INT64_MAX) : otherwise;
  };
  State state;
  state.step = json.at("step").integer(0, INT64_MAX);
  state.cursor = static_cast<std::uint64_t>(json.at("cursor").integer(0, INT64_MAX));
  if (!json.at("seed").json().is_number_unsigned()) json.at("seed").fail("an integer of at least 0 belongs here");
  state.seed = json.at("seed").json();
  state.best_step = whole("best_step", state.best_step);
  if (json.has("best")) state.best = json.at("best").number();
  state.stale = whole("evaluations_since", state.stale);
  state.evaluated = whole("evaluated", state.evaluated);
  state.epoch_batches = whole("epoch_batches", state.epoch_batches);
  return state;
}

Store read_carried(const std::string& path, const std::vector<CarriedState>& states) {
  if (states.empty()) return {};
  const std::string file = path + carried_file;
  if (!fs::exists(file))
    throw FileError("checkpoint " + path + " has no " + file.substr(path.size() + 1) +
                    ": the next batch goes on from carried states, " + to_string(states) +
                    ", and the run that wrote it carried none");
  Store carried = load_arrays(file);
  if (!are_states(carried, states))
    throw FileError(file + " does not hold " + to_string(states) + ": it is of another model or number of rows");
  return carried;
}

std::string checkpoint_name(std::int64_t step) {
  std::string name = std::to_string(step);
  return std::string(name.size() < 8 ? 8 - name.size() : 0, '0') + name;
}

std::vector<std::string> checkpoints(const std::string& directory) {
  std::vector<std::string> found;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(directory, none)) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") == std::string::npos) found.push_back(entry.path().string());
  }
  std::sort(found.begin(), found.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  return found;
}

void remove_old_checkpoints(const std::string& directory, std::int64_t keep, std::int64_t best) {
  std::error_code none;
  std::vector<fs::path> left;
  for (const auto& entry : fs::directory_iterator(directory, none))
    if (entry.path().extension() == unfinished) left.push_back(entry.path());
  for (const fs::path& path : left) fs::remove_all(path, none);
  if (keep == 0) return;
  const std::vector<std::string> found = checkpoints(directory);
  for (std::size_t i = 0; i + static_cast<std::size_t>(keep) < found.size(); ++i) {
    if (best >= 0 && fs::path(found[i]).filename() == checkpoint_name(best)) continue;
    // Renamed first, so that one half-removed does not pass for a checkpoint.
    fs::rename(found[i], found[i] + unfinished, none);
    fs::remove_all(found[i] + unfinished, none);
  }
}

}  // namespace xtape::train
