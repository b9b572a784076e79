// The files of a run: metrics, statistics, samples, recipe.
#include <algorithm>
#include <cmath>
#include <deque>
#include <sstream>

#include "base/arrays/lengths.hpp"
#include "base/system/durable.hpp"
#include "base/system/files.hpp"
#include "report/gathered.hpp"
#include "train/run/metrics.hpp"
#include "train/run/samples.hpp"

namespace xtape::report_data {

namespace {
struct Curve {
  std::vector<std::int64_t> steps;
  std::vector<double> values;
  std::int64_t not_finite = 0;  // how many values are left out
};

Json thinned(const Curve& curve) {
  constexpr std::size_t most = 4000;
  Json steps = Json::array(), values = Json::array();
  for (const std::size_t i : train::extremes_of(curve.values, most)) {
    steps.push_back(curve.steps[i]);
    values.push_back(short_number(curve.values[i]));
  }
  return {{"steps", steps}, {"values", values}, {"not_finite", curve.not_finite}};
}

/// Evaluations have keys of their own, but for a few that updates have too, such as "tokens".
Json curves_of(const std::vector<train::Measured>& lines) {
  std::vector<std::string> keys;
  std::map<std::string, Curve> curves;
  for (const train::Measured& line : lines) {
    const bool update = line.find("learning_rate") != nullptr;
    for (const auto& [key, value] : line.numbers) {
      if (!update && key == "tokens") continue;
      if (!curves.contains(key)) keys.push_back(key);
      curves[key].steps.push_back(line.step);
      curves[key].values.push_back(value);
    }
    for (const std::string& key : line.not_finite) {
      if (!curves.contains(key)) keys.push_back(key);
      ++curves[key].not_finite;
    }
  }
  Json json = Json::object();
  for (const std::string& key : keys) json[key] = thinned(curves[key]);
  return json;
}

/// The numbers of modules or values by kind: {"largest": {"h.0": [a value for each time]}}. A value is a number, `true`
/// for one that is not finite, and null where there is none. At most 200 times, evenly spaced.
Json numbers_of(const std::vector<train::Measured>& lines, train::Measured::Groups train::Measured::*of) {
  constexpr std::size_t most = 200;
  std::vector<const train::Measured*> measured;
  for (const train::Measured& line : lines)
    if (!(line.*of).empty()) measured.push_back(&line);
  Json steps = Json::array(), kinds = Json::object();
  std::vector<std::string> modules;  // in the order of the file
  std::unordered_map<std::string, std::size_t> places;
  std::map<std::pair<std::string, std::size_t>, Json> rows;  // by key and place of the module
  const std::size_t count = std::min(most, measured.size());
  for (std::size_t i = 0; i < count; ++i) {
    const train::Measured& line = *measured[count == 1 ? 0 : i * (measured.size() - 1) / (count - 1)];
    steps.push_back(line.step);
    for (const auto& [module, numbers] : line.*of) {
      const auto [place, fresh] = places.emplace(module, modules.size());
      if (fresh) modules.push_back(module);
      for (const auto& [key, value] : numbers) {
        Json& row = rows[{key, place->second}];
        while (row.size() < i) row.push_back(nullptr);
        row.push_back(std::isfinite(value) ? short_number(value) : Json(true));
      }
    }
  }
  for (auto& [key_and_place, row] : rows) kinds[key_and_place.first][modules[key_and_place.second]] = std::move(row);
  if (kinds.empty()) steps.clear();  // the lines name modules without numbers
  return {{"steps", steps}, {"kinds", kinds}};
}

/// Returns at most the first `most` bytes of a text, cut between characters, and an ellipsis if there are more.
std::string beginning_of(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

/// Returns a line of samples.jsonl, in which the beginning of a long text stands for the text. Other long values, such
/// as images, become the beginning of their text. Null if the line is no sample, such as an incomplete last line.
Json sample_of(const std::string& line) {
  constexpr std::size_t longest = 4000;
  try {
    Json sample = JsonText(line, "", JsonErrors::file).root();
    if (!sample.is_object()) return nullptr;
    for (Json& value : sample) {
      const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
      if (text.size() > longest) value = beginning_of(text, longest);
    }
    return sample;
  } catch (const FileError&) {
    return nullptr;
  }
}

/// The last samples.
Json samples_of(const std::string& path) {
  constexpr std::size_t most = 100;
  Json samples = Json::array();
  if (!is_plain_file(path)) return samples;
  std::istringstream lines(read_file(path));
  std::deque<std::string> texts;
  for (std::string line; std::getline(lines, line);) {
    texts.push_back(std::move(line));
    if (texts.size() > most) texts.pop_front();
  }
  for (const std::string& text : texts)
    if (Json sample = sample_of(text); !sample.is_null()) samples.push_back(std::move(sample));
  return samples;
}
}  // namespace

Json run_of(const std::string& directory) {
  const std::string metrics = path_in(directory, train::metrics_file), recipe = path_in(directory, "recipe.json");
  if (!is_plain_file(recipe)) throw FileError("'" + directory + "' is not a run: it has no recipe.json");
  const std::vector<train::Measured> lines =
      is_plain_file(metrics) ? train::read_metrics(metrics) : std::vector<train::Measured>();
  const JsonText text(read_file(recipe), recipe, JsonErrors::file);
  Json run = {{"name", directory},
              {"recipe", text.root()},
              {"curves", curves_of(lines)},
              {"statistics", numbers_of(lines, &train::Measured::statistics)},
              {"watched", numbers_of(lines, &train::Measured::watched)},
              {"samples", samples_of(path_in(directory, train::samples_file))}};
  if (!lines.empty()) {
    const train::BestEvaluation best = train::best_evaluation(directory, lines);
    if (best.line != nullptr)
      run["best"] = {{"key", best.measure.key}, {"step", best.line->step}, {"value", best.measure.value}};
  }
  return run;
}

}  // namespace xtape::report_data
