#include "train/trainer/failed_play.hpp"

#include "base/system/process_memory.hpp"

namespace xtape::train {

FailedPlay failed_play(PlayableFunction& function, const std::vector<Feed>& feeds, std::uint64_t step) {
  FailedPlay failed{function.results.names(), recorded_play(function.player, feeds, step), {}, ""};
  try {
    failed.capsule = find_failure(failed.play);
  } catch (const OutOfMemory& error) {
    failed.unfinished = std::string("the search for its cause ran ") + error.what();
  }
  return failed;
}

namespace {
template <class Write>
std::string written(const std::string& folder, const std::string& sentence, const Write& write) {
  if (folder.empty()) return "";
  try {
    write();
  } catch (const Error& error) {
    return std::string("\n") + error.what();
  }
  return "\n'" + folder + "' " + sentence;
}
}  // namespace

std::string save_failure(const FailedPlay& failed, const FailureFolders& folders) {
  std::string text;
  if (failed.capsule)
    text = written(folders.capsule, "has what is needed to play it again: xtape replay " + folders.capsule,
                   [&] { failed.capsule->save(folders.capsule); });
  return text + written(folders.play, "has the whole play, for xtape replay, shadow, explain and diff",
                        [&] { save_play(failed.play, failed.results, folders.play); });
}

std::string not_finite_text(const std::string& what, const FailedPlay* own, ranks::RankGroup& group,
                            const FailureFolders& folders) {
  // What each rank reports. "+" is followed by the failure that the rank found. "-" means that a play of the rank
  // fails, but the rank found no failing call; a reason may follow. "" means that the rank has no failed play.
  const std::vector<std::string> of_rank = group.all_gather(!own           ? ""
                                                            : own->capsule ? "+" + to_string(own->capsule->failure)
                                                                           : "-" + own->unfinished);
  int first = -1;
  for (const char mark : {'+', '-'})
    for (int rank = 0; rank < group.size() && first < 0; ++rank)
      if (of_rank[rank].starts_with(mark)) first = rank;
  std::string text = "the " + what + " is not finite";
  if (first >= 0) {
    const std::string found = of_rank[first].substr(1);
    if (!found.empty()) text += ": " + found + (group.size() > 1 ? ", on " + group.name(first) : "");
    if (first == group.rank()) text += save_failure(*own, folders);
  }
  return text;
}

}  // namespace xtape::train
