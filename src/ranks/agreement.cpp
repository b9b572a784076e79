#include <omp.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "ranks/rank_group.hpp"

namespace xtape::ranks {

namespace {
/// Returns `text` or, if one of the texts is long, the part of `text` around their first difference.
std::string excerpt(const std::string& text, const std::string& other) {
  constexpr std::size_t before = 20, most = 100;
  if (text.size() <= most && other.size() <= most) return text;
  const std::size_t at = static_cast<std::size_t>(
      std::mismatch(text.begin(), text.end(), other.begin(), other.end()).first - text.begin());
  const std::size_t from = at > before ? at - before : 0;
  return (from > 0 ? "…" : "") + text.substr(from, most) + (from + most < text.size() ? "…" : "");
}
}  // namespace

void check_agreement(RankGroup& group, const std::string& what, const std::string& value) {
  const std::vector<std::string> of_rank = group.all_gather(value);
  for (int rank = 1; rank < group.size(); ++rank) {
    const std::string& other = of_rank[rank];
    if (other != of_rank[0])
      throw Error("all ranks must have the same " + what + ": " + group.name(0) + " has " + excerpt(of_rank[0], other) +
                  ", " + group.name(rank) + " has " + excerpt(other, of_rank[0]));
  }
}

void check_shards(std::int64_t shards, int ranks) {
  if (ranks > shards)
    throw Error(std::to_string(ranks) + " ranks need at least as many shards of a batch, but batch.shards is " +
                std::to_string(shards));
}

int threads_of(const RankGroup& group) {
  cpu_set_t bound;
  CPU_ZERO(&bound);
  const int here = sched_getaffinity(0, sizeof bound, &bound) == 0 ? CPU_COUNT(&bound) : omp_get_max_threads();
  const bool is_bound = here < sysconf(_SC_NPROCESSORS_ONLN);
  int near = 0;
  for (int rank = 0; rank < group.size(); ++rank) near += group.is_near(rank) ? 1 : 0;
  return std::max(1, std::min(omp_get_max_threads(), is_bound ? here : here / near));
}

}  // namespace xtape::ranks
