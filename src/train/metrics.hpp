/// metrics.jsonl: one JSON object a line, of an update or of an evaluation.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "durable.hpp"
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
  /// Appends to the file. A run that continues from a checkpoint of `step`, whose last evaluation was that of step
  /// `evaluated`, makes again what came after: these lines are dropped first, and one that a crash cut off. Throws
  /// FileError, as every write does.
  Metrics(const std::string& path, std::int64_t step, std::int64_t evaluated = -1);
  void add(const StepReport& report);
  void add(const Evaluation& evaluation);
  void flush() { file_.flush(); }  ///< Waits until all lines are on the disk.

 private:
  void write(const std::string& line) { file_.write(line + "\n"); }
  AppendedFile file_;
};

}  // namespace xtape::train
