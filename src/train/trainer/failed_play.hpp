/// Stores a play that fails: the whole play, and the smallest tape that fails in the same way.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ranks/rank_group.hpp"
#include "xtape/inspect.hpp"
#include "xtape/model.hpp"

namespace xtape::train {

/// The folders in which failures are stored. "" means that nothing is stored.
struct FailureFolders {
  std::string capsule;  ///< The folder of the capsule.
  std::string play;     ///< The folder of the whole play.
};

struct FailedPlay {
  std::vector<std::string> results;  ///< The names of the play's outputs.
  RecordedPlay play;
  std::optional<Capsule> capsule;  ///< Empty if no call was found.
  std::string unfinished;          ///< The reason if the search ended before it found the call; otherwise "".
};
/// Returns the play of the function with these feeds, and the failure that find_failure finds in it. If the search runs
/// out of memory, it finds no failure.
FailedPlay failed_play(PlayableFunction& function, const std::vector<Feed>& feeds, std::uint64_t step);

/// Writes the play to the folders. Returns one sentence about each folder, also about a folder that cannot be written.
/// Callers append the sentences to an error.
std::string save_failure(const FailedPlay& failed, const FailureFolders& folders);

/// Returns a text for an error, such as "the loss of update 3 is not finite: NaN in …". `own` is the failed play of the
/// calling rank, or null. All ranks must call this function together. They receive the same text, apart from the
/// sentences about saving. The text describes the failed play of one rank. This is the first rank that found a failing
/// call, or else the first rank that has a failed play. Only this rank saves its play to `folders`.
std::string not_finite_text(const std::string& what, const FailedPlay* own, ranks::RankGroup& group,
                            const FailureFolders& folders);

}  // namespace xtape::train
