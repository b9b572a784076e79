#include "metrics.hpp"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "checkpoint.hpp"

namespace xtape::train {

using Json = nlohmann::ordered_json;

Metrics::Metrics(const std::string& path, std::int64_t step) : path_(path) {
  if (std::filesystem::exists(path)) {
    std::istringstream lines(read_text(path));
    std::string kept;
    for (std::string line; std::getline(lines, line);) {
      const Json json = Json::parse(line, nullptr, false);  // a crash may have cut the last line short
      if (json.is_object() && json.contains("step") && json["step"] <= step) kept += line + "\n";
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
