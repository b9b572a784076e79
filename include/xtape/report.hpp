/// Reports: one HTML file that shows tapes, plans, plays, trainings and failures in a browser, without a server or net.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "xtape/inspect.hpp"
#include "xtape/owner.hpp"
#include "xtape/train.hpp"

namespace xtape {

/// A matrix of derivatives whose sparsity a report shows.
enum class Sparsity : std::uint8_t { none, jacobian, hessian };

/// What a report shows of a play besides its graph.
struct PlayViews {
  bool plan = true;    ///< The plan with RecordedPlay::options: steps, buffers, fusions.
  bool curve = false;  ///< The memory and time of all plans (memory_curve).
  std::vector<std::size_t> limits =
      {};  ///< Further plans, which need at most these bytes each. See PlayerOptions::memory.
  /// The plays to measure, after one to warm up and before one that shows what each thread does. 0: the times of steps
  /// are predicted.
  std::int64_t plays = 0;
  bool values = false;  ///< The range, a histogram and a small picture of every value of the play.
  bool errors = false;  ///< The rounding errors of all values (shadow).
  /// The sparsity of the first output's derivatives with respect to each input and parameter of floats. Parameters are
  /// left out whose elements times those of all values are more than 2^27.
  Sparsity sparsity = Sparsity::none;
  /// The source files of the program that its tape names. A saved tape from elsewhere may name any file of this
  /// machine, so only for tapes that this program has recorded. The texts of definitions are always shown.
  bool sources = false;
  /// Names of outputs, if the play has them. Other outputs have no names.
  NamedVars outputs = {};
};

/// Collects what one page shows. Everything is copied, so the sources may end before `save`.
class Report {
 public:
  /// `title` is the headline of the page.
  explicit Report(const std::string& title);
  /// Adds a play under a name. Plays it only for `plays`, `values` and `errors`; its inputs may otherwise be missing.
  /// Errors of planning and playing propagate.
  void add(const std::string& name, const RecordedPlay& play, const PlayViews& views = {});
  /// Adds a failure. `whole` is the play that the capsule is cut from. If it is null, the page shows the capsule's
  /// tape.
  void add(const std::string& name, const Capsule& capsule, const RecordedPlay* whole = nullptr);
  /// Adds the metrics, statistics, samples and configuration of the run in `directory`, also while it trains. Long
  /// curves are thinned to the least and the largest value of each group of updates. Throws FileError if the run cannot
  /// be read.
  void add_run(const std::string& directory);
  /// Adds attention weights, such as those of Run::attention, under the name of their text.
  void add(const std::string& name, const std::vector<Attention>& attention);
  /// Adds a sentence that the page shows at the top.
  void note(const std::string& sentence);
  /// The page reads its file again after this many seconds. 0: never.
  void reload_every(double seconds);

  /// The page as text.
  std::string html() const;
  /// Writes the page atomically. Throws FileError.
  void save(const std::string& path) const;

 private:
  struct Data;
  Owner<Data> data_;
};

/// Writes a page about one play.
void report(const RecordedPlay& play, const std::string& path, const PlayViews& views = {});
/// Writes a page about runs.
void report(const std::vector<std::string>& runs, const std::string& path);

}  // namespace xtape
