/// The file ledger.jsonl of a run: the bits of its updates, and digests of what made them. Run::verify replays updates
/// and compares. docs/how_to/verifying.md describes the lines.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/json/json_text.hpp"
#include "base/system/durable.hpp"
#include "xtape/train.hpp"

namespace xtape::train {

inline constexpr const char* ledger_file = "ledger.jsonl";

/// Updates between two digests of the weights. An update of AdamW reads or writes seven arrays as large as the weights,
/// one of SGD at least three, and plays do more; a digest reads one. Every 16th is therefore below 1 % of the time.
inline constexpr std::int64_t digest_every = 16;

using FileDigests = std::vector<std::pair<std::string, std::string>>;  ///< Digests by the names or paths of files.

/// The beginning of a training, or its resume on other files, data or machines.
struct LedgerSession {
  std::int64_t step = 0;  ///< The number of updates before it.
  std::string weights;    ///< The digest of the weights that it starts with.
  std::string version, instruction_set;
  FileDigests files;       ///< Of the run's folder.
  std::string data;        ///< The checksum of the texts, images and arrays of all splits.
  FileDigests data_files;  ///< Only plain files have digests. They tell which file differs if `data` does.

  /// Whether the updates of both have the same recipe, definition and data. Further files do not count: they may be a
  /// user's.
  bool trains_like(const LedgerSession& other) const;
};

/// The bits of StepReport::loss and StepReport::norm. All NaNs have the same bits.
struct LedgerUpdate {
  std::uint64_t loss = 0, norm = 0;
  static LedgerUpdate of(const StepReport& report);
  bool operator==(const LedgerUpdate&) const = default;
};

struct LedgerCheckpoint {
  std::int64_t step = 0;
  std::string weights;
  FileDigests files;
};

/// What a ledger says.
struct LedgerContent {
  std::vector<LedgerSession> sessions;           ///< At least one, by ascending step.
  std::map<std::int64_t, LedgerUpdate> updates;  ///< By number.
  std::vector<LedgerCheckpoint> checkpoints;     ///< Several of one step if the checkpoint was written again.
  std::map<std::int64_t, std::string> weights;   ///< Digests of the weights, by the number of updates before.
  std::int64_t last_update() const { return updates.empty() ? 0 : updates.rbegin()->first; }
};

/// Whether the file begins as a ledger does.
bool is_ledger(const std::string& path);
/// Reads a ledger. `path` may also be that of its run. Ignores an incomplete last line, which may exist while a run is
/// trained. Throws FileError if the run has no ledger, or with the number of a line that is not one of a ledger.
LedgerContent read_ledger(const std::string& path);
/// A line with a seal has the digest of itself and of all lines since the seal before it. Returns a sentence about the
/// first lines that do not have the digest of their seal, or "".
std::string broken_seal(const std::string& path);

/// Returns the digests of the files of a run or checkpoint, sorted by name: those of arrays, tokenizers and JSON.
FileDigests digests_in(const std::string& folder);

/// Appends to a ledger. Lines without a seal wait in memory for the next line with one, because small updates are
/// faster than the system writes a line. A kill loses nothing: a resumed training computes the updates after a
/// checkpoint again, and the line of a checkpoint has a seal.
class Ledger {
 public:
  /// Opens or creates the ledger of the run in `directory`, for a training that starts with `session`. First removes
  /// the lines of later updates, which are computed again, and an incomplete line that a crash left. Writes a line
  /// about the session, unless it continues the last one. All functions of this class throw FileError if the file
  /// cannot be written.
  Ledger(const std::string& directory, const LedgerSession& session);
  /// Whether there is a line about a checkpoint of this step.
  bool has_checkpoint(std::int64_t step) const { return step == last_checkpoint_; }
  /// `weights` is the digest of the weights after the update, or "".
  void add(std::int64_t step, const LedgerUpdate& update, const std::string& weights);
  /// Waits until all lines are on the disk.
  void add(const LedgerCheckpoint& checkpoint);

 private:
  const std::string& cut_back(const std::string& path, const LedgerSession& session);
  void write(std::string line, bool sealed);
  std::string unsealed_;  // the last line with a seal, and the lines after it
  std::string pending_;   // lines that are not in the file yet
  bool continues_ = false;
  std::int64_t last_checkpoint_ = -1;
  AppendedFile file_;  // after the members that cut_back sets
};

}  // namespace xtape::train
