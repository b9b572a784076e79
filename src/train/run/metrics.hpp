/// The file metrics.jsonl. Each line is a JSON object about an update, an evaluation, statistics of modules, or
/// watched values.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/json/json_text.hpp"
#include "base/system/durable.hpp"
#include "train/trainer/measures.hpp"
#include "xtape/train.hpp"

namespace xtape::train {

inline constexpr const char* metrics_file = "metrics.jsonl";

/// A line of the file.
struct Measured {
  std::int64_t step = 0;
  /// The numbers with their keys. Values that were not finite are left out, and `not_finite` has their keys.
  std::vector<std::pair<std::string, double>> numbers;
  std::vector<std::string> not_finite;
  const double* find(const std::string& key) const;  ///< Returns null if there is no number with this key.
  /// For each module or value, the numbers by key. NaN stands for a number that was not finite.
  using Groups = std::vector<std::pair<std::string, std::vector<std::pair<std::string, double>>>>;
  Groups statistics;  ///< Of a line of statistics.
  Groups watched;     ///< Of a line of watched values.
};

/// Returns the lines of a metrics file. Ignores an incomplete last line, which may exist while a run is trained. Throws
/// FileError if the file cannot be read or if another line is not a measurement.
std::vector<Measured> read_metrics(const std::string& path);

/// The best evaluation of a run.
struct BestEvaluation {
  Measure measure;                 ///< By which evaluations are compared, with its best value.
  const Measured* line = nullptr;  ///< One of the lines; null if no evaluation has this measure.
};
/// Finds the best of a run's evaluations up to an update, by the measure `best` of its recipe.json. `lines` are those
/// of its metrics.
BestEvaluation best_evaluation(const std::string& run, const std::vector<Measured>& lines,
                               std::int64_t until = std::numeric_limits<std::int64_t>::max());

/// Returns about `most` places of the values at most, in their order: the least and the largest value of each group of
/// neighbours, so that a curve through them keeps its extremes.
std::vector<std::size_t> extremes_of(const std::vector<double>& values, std::size_t most);

/// Returns the object of an evaluation's line.
Json json_of(const Evaluation& evaluation);

/// Removes the lines after update `step` from a file of lines with the key "step". Returns the path.
const std::string& cut_after(const std::string& path, std::int64_t step);

class Metrics {
 public:
  /// Opens the file to append to it. First removes an incomplete line that a crash left, and the lines that the run
  /// will write again. The run continues from a checkpoint of `step`, last evaluated at step `evaluated`, and repeats
  /// all later updates and evaluations. Throws FileError if the file cannot be written, as do all functions of this
  /// class.
  Metrics(const std::string& path, std::int64_t step, std::int64_t evaluated = -1);
  void add(const StepReport& report);
  void add(const Evaluation& evaluation);
  void add(std::int64_t step, const std::vector<ModuleStatistics>& statistics);
  void add(std::int64_t step, const std::vector<WatchedValue>& values);
  void flush() { file_.flush(); }  ///< Waits until all lines are on the disk.

 private:
  void write(const std::string& line) { file_.write(line + "\n"); }
  AppendedFile file_;
};

}  // namespace xtape::train
