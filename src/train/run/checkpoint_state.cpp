// Reads and writes state.json.
#include <nlohmann/json.hpp>

#include "base/files/durable.hpp"
#include "base/files/files.hpp"
#include "base/json/json_text.hpp"
#include "train/run/checkpoint.hpp"

namespace xtape::train {

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
