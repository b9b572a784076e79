/// metrics.jsonl: one JSON object per line, for an update, an evaluation or statistics of modules.
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
  std::vector<std::pair<std::string, double>> numbers;  ///< With their keys, without values that were not finite.
  const double* find(const std::string& key) const;     ///< Null if there is no number of that key.
  /// For a line of statistics: the numbers by module, by key; NaN if a number was not finite.
  std::vector<std::pair<std::string, std::vector<std::pair<std::string, double>>>> statistics;
};

/// The lines of a metrics file, without a last line that is cut off, as it may be while a run is trained. Throws
/// FileError if the file cannot be read or another line is not a measurement.
std::vector<Measured> read_metrics(const std::string& path);

class Metrics {
 public:
  /// Opens the file to append to it. A run that continues from a checkpoint of `step`, last evaluated at step
  /// `evaluated`, repeats the updates and evaluations after it, so their lines are removed first, as is a line that a
  /// crash cut off. Throws FileError if the file cannot be written, as do all functions of this class.
  Metrics(const std::string& path, std::int64_t step, std::int64_t evaluated = -1);
  void add(const StepReport& report);
  void add(const Evaluation& evaluation);
  void add(std::int64_t step, const std::vector<ModuleStatistics>& statistics);
  void flush() { file_.flush(); }  ///< Waits until all lines are on the disk.

 private:
  void write(const std::string& line) { file_.write(line + "\n"); }
  AppendedFile file_;
};

}  // namespace xtape::train
