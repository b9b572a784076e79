/// What is kept of a play that fails: the play as a whole, and the smallest tape that fails in the same way.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "rank_group.hpp"
#include "xtape/inspect.hpp"
#include "xtape/model.hpp"

namespace xtape::train {

/// The folders that failures are written to; "": none.
struct FailureFolders {
  std::string capsule;  ///< The folder of the capsule.
  std::string play;     ///< The folder of the whole play.
};

struct FailedPlay {
  std::vector<std::string> results;  ///< The names of the play's outputs.
  RecordedPlay play;
  std::optional<Capsule> capsule;  ///< Empty if no call was found.
  std::string unfinished;          ///< Why the search for the call ended before it found one; else "".
};
/// The play of the function with these feeds, and the failure that find_failure finds in it. A search that runs out of
/// memory finds none.
FailedPlay failed_play(PlayableFunction& function, const std::vector<Feed>& feeds, std::uint64_t step);

/// Writes the play to the folders, and returns a sentence about each, to be added to an error. A folder that cannot be
/// written gives a sentence too.
std::string save_failure(const FailedPlay& failed, const FailureFolders& folders);

/// "the loss of update 3 is not finite: NaN in …", for an error. `own` is the failed play of this rank, or null;
/// all ranks call it at once, and all name the failure of the first rank that has one, which saves it.
std::string not_finite_text(const std::string& what, const FailedPlay* own, ranks::RankGroup& group,
                            const FailureFolders& folders);

}  // namespace xtape::train
