#include "metrics.hpp"

#include <filesystem>
#include <sstream>

#include "checkpoint.hpp"
#include "json_text.hpp"

namespace xtape::train {

namespace {
/// The measurement that a line holds; null where it holds none.
Json measurement(const std::string& line) {
  try {
    Json json = JsonText(line, "", JsonErrors::file).root();
    if (json.is_object() && json.contains("step") && json["step"].is_number_integer()) return json;
  } catch (const FileError&) {  // cut short, by a crash or because it is being written
  }
  return nullptr;
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
      if (lines.eof()) break;  // cut off: no line end follows
      throw FileError(path + ", line " + std::to_string(number) + ": this is no measurement of a training step");
    }
    Measured& one = measured.emplace_back();
    one.step = json["step"];
    for (const auto& [key, value] : json.items())
      if (key != "step" && value.is_number()) one.numbers.emplace_back(key, value.get<double>());
  }
  return measured;
}

Metrics::Metrics(const std::string& path, std::int64_t step) : path_(path) {
  if (std::filesystem::exists(path)) {
    std::istringstream lines(read_text(path));
    std::string kept;
    for (std::string line; std::getline(lines, line);) {
      const Json json = measurement(line);
      if (!json.is_null() && json["step"] <= step) kept += line + "\n";
    }
    write_file(path, kept);
  }
  out_.open(path, std::ios::binary | std::ios::app);
  if (!out_) throw FileError("cannot write " + path);
}

void Metrics::write(const std::string& line) {
  out_ << line << '\n' << std::flush;
  if (!out_) throw FileError("cannot write " + path_);
}

void Metrics::add(const StepReport& report) {
  const double speed = report.seconds > 0 ? static_cast<double>(report.tokens) / report.seconds : 0;
  write(Json{{"step", report.step},
             {"loss", report.loss},
             {"learning_rate", report.rate},
             {"gradient_norm", report.norm},
             {"tokens", report.tokens},
             {"tokens_per_s", speed},
             {"seconds", report.seconds}}
            .dump());
}

void Metrics::add(const Evaluation& evaluation) {
  Json line = {{"step", evaluation.step}, {"validation_loss", evaluation.loss}, {"tokens", evaluation.tokens}};
  if (evaluation.perplexity) line["perplexity"] = *evaluation.perplexity;
  if (evaluation.accuracy) line["accuracy"] = *evaluation.accuracy;
  if (evaluation.bleu) line["bleu"] = *evaluation.bleu;
  if (evaluation.exact_match) line["exact_match"] = *evaluation.exact_match;
  write(line.dump());
}

}  // namespace xtape::train
