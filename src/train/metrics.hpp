/// metrics.jsonl: one JSON object a line, of an update or of an evaluation.
#pragma once

#include <fstream>
#include <string>

#include "xtape/train.hpp"

namespace xtape::train {

class Metrics {
 public:
  /// Appends to the file, from which the lines of steps after `step` are dropped first: a run that continues from a
  /// checkpoint makes these steps again.
  Metrics(const std::string& path, std::int64_t step);
  void add(const StepReport& report);
  void add(const Evaluation& evaluation);

 private:
  void write(const std::string& line);
  std::string path_;
  std::ofstream out_;
};

}  // namespace xtape::train
