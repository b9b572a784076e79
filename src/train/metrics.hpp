/// metrics.jsonl: one JSON object a line, of an update or of an evaluation.
#pragma once

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "xtape/train.hpp"

namespace xtape::train {

/// A line of the file.
struct Measured {
  std::int64_t step = 0;
  std::vector<std::pair<std::string, double>> numbers;  ///< By their keys. What was not finite is not among them.
  const double* find(const std::string& key) const;     ///< Null where it was not measured.
};

/// The lines of a metrics file. A last line that is cut off, as it may be while the training goes on, is left out.
/// Throws FileError where the file cannot be read or another line is no measurement.
std::vector<Measured> read_metrics(const std::string& path);

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
