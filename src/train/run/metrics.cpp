#include "train/run/metrics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/arrays/lengths.hpp"
#include "base/json/json_text.hpp"
#include "base/system/files.hpp"
#include "xtape/text.hpp"

namespace xtape::train {

namespace {
constexpr const char* statistics_key = "statistics";
constexpr const char* watched_key = "watched";
constexpr const char* evaluation_key = "validation_loss";

/// Returns the measurement of a line, or null if the line is not a measurement.
Json measurement(const std::string& line) {
  try {
    Json json = JsonText(line, "", JsonErrors::file).root();
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    const auto step = json.is_object() ? json.find("step") : json.end();
    if (step != json.end() && step->is_number_unsigned() && step->get<std::uint64_t>() <= most) return json;
  } catch (const FileError&) {  // the line was cut off by a crash or is still being written
  }
  return nullptr;
}
Measured::Groups groups_of(const Json& json, const char* key) {
  Measured::Groups groups;
  if (!json.contains(key) || !json[key].is_object()) return groups;
  for (const auto& [name, numbers] : json[key].items()) {
    auto& of_name = groups.emplace_back(name, std::vector<std::pair<std::string, double>>()).second;
    if (!numbers.is_object()) continue;
    for (const auto& [each, value] : numbers.items())
      of_name.emplace_back(each, value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN());
  }
  return groups;
}
}  // namespace

const double* Measured::find(const std::string& key) const {
  for (const auto& [name, number] : numbers)
    if (name == key) return &number;
  return nullptr;
}

std::vector<Measured> read_metrics(const std::string& path) {
  std::istringstream lines(read_text(path));
  std::vector<Measured> measured;
  std::int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const Json json = measurement(line);
    if (json.is_null()) {
      if (lines.eof()) break;  // the last line has no line end because it was cut off
      throw FileError(path + ", line " + std::to_string(number) + ": this is not a measurement of a training step");
    }
    Measured& one = measured.emplace_back();
    one.step = json["step"];
    for (const auto& [key, value] : json.items())
      if (key != "step" && value.is_number())
        one.numbers.emplace_back(key, value.get<double>());
      else if (value.is_null())
        one.not_finite.push_back(key);
    one.statistics = groups_of(json, statistics_key);
    one.watched = groups_of(json, watched_key);
  }
  return measured;
}

BestEvaluation best_evaluation(const std::string& run, const std::vector<Measured>& lines, std::int64_t until) {
  std::string named;
  if (const std::string recipe = path_in(run, "recipe.json"); path_exists(recipe)) {
    const JsonNode json(read_file(recipe), recipe, JsonErrors::file);
    if (json.has("best")) named = json.at("best").text();
  }
  const auto has_perplexity = [](const Measured& line) { return line.find("perplexity") != nullptr; };
  BestEvaluation best{measure_named(named, std::ranges::any_of(lines, has_perplexity))};
  for (const Measured& line : lines) {
    const double* value = line.find(best.measure.key);
    if (line.step > until || value == nullptr || line.find(evaluation_key) == nullptr) continue;
    Measure measure = best.measure;
    measure.value = *value;
    if (best.line == nullptr || measure.better(best.measure.value)) best = {measure, &line};
  }
  return best;
}

namespace {
/// Removes the lines that `is_kept` rejects, and those that a crash has cut off. Returns the path.
template <class Test>
const std::string& cut_back(const std::string& path, const Test& is_kept) {
  if (!path_exists(path)) return path;
  const std::string text = read_text(path);
  std::istringstream lines(text);
  std::string kept;
  for (std::string line; std::getline(lines, line);)
    if (const Json json = measurement(line); !json.is_null() && is_kept(json)) kept += line + "\n";
  if (kept != text) write_file(path, kept);
  return path;
}
}  // namespace

const std::string& cut_after(const std::string& path, std::int64_t step) {
  return cut_back(path, [&](const Json& line) { return line["step"].get<std::int64_t>() <= step; });
}

Metrics::Metrics(const std::string& path, std::int64_t step, std::int64_t evaluated)
    : file_(cut_back(path, [&](const Json& line) {
        const auto at = line["step"].get<std::int64_t>();
        return at < step || (at == step && !(evaluated < step && line.contains(evaluation_key)));
      })) {}

void Metrics::add(const StepReport& report) {
  const double speed = report.seconds > 0 ? static_cast<double>(report.tokens) / report.seconds : 0;
  Json line;
  line["step"] = report.step;
  if (report.losses.empty() && !std::isnan(report.loss)) line["loss"] = report.loss;
  for (const LossReport& each : report.losses) line[each.loss] = each.mean;
  line["learning_rate"] = report.rate;
  line["gradient_norm"] = report.norm;
  line["tokens"] = report.tokens;
  line["tokens_per_s"] = speed;
  line["seconds"] = report.seconds;
  write(line.dump());
}

std::vector<std::size_t> extremes_of(const std::vector<double>& values, std::size_t most) {
  std::vector<std::size_t> places;
  const std::size_t count = values.size(), group = count <= most ? 1 : 2 * ceiling(count, most);
  for (std::size_t first = 0; first < count; first += group) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first);
    const auto end = values.begin() + static_cast<std::ptrdiff_t>(std::min(first + group, count));
    auto [low, high] = std::minmax_element(begin, end);
    if (high < low) std::swap(low, high);
    places.push_back(static_cast<std::size_t>(low - values.begin()));
    if (high != low) places.push_back(static_cast<std::size_t>(high - values.begin()));
  }
  return places;
}

Json json_of(const Evaluation& evaluation) {
  Json line = {{"step", evaluation.step}, {evaluation_key, evaluation.loss}, {"tokens", evaluation.tokens}};
  for (const Measure& each : measures_of(evaluation)) line[each.key] = each.value;
  if (evaluation.epsilon) line["epsilon"] = *evaluation.epsilon;
  return line;
}

void Metrics::add(const Evaluation& evaluation) {
  write(json_of(evaluation).dump());
}

void Metrics::add(std::int64_t step, const std::vector<ModuleStatistics>& statistics) {
  Json modules = Json::object();
  for (const ModuleStatistics& each : statistics) {
    Json& of = modules[each.module] = {{"largest", each.largest}, {"mean", each.mean}, {"zeros", each.zeros}};
    const auto add = [&](const char* key, const std::optional<double>& value) {
      if (value) of[key] = *value;
    };
    add("gradient_largest", each.gradient_largest);
    add("gradient_mean", each.gradient_mean);
    add("gradient_zeros", each.gradient_zeros);
    add("saturated", each.saturated);
    add("masked_rows", each.masked_rows);
  }
  write(Json{{"step", step}, {statistics_key, modules}}.dump());
}

void Metrics::add(std::int64_t step, const std::vector<WatchedValue>& values) {
  Json watched = Json::object();
  for (const auto& [name, type, range] : values)
    watched[name] = {{"least", range.min}, {"largest", range.max}, {"not_finite", range.count - range.finite()}};
  write(Json{{"step", step}, {watched_key, watched}}.dump());
}

}  // namespace xtape::train
