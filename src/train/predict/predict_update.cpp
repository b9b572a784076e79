#include <algorithm>

#include "ranks/rank_group.hpp"
#include "ranks/shard_tree.hpp"
#include "xtape/profile.hpp"

namespace xtape {

UpdatePrediction predict_update(const TrainingProfile& profile, const HostNetwork& network) {
  if (network.ranks < 1 || !(network.bandwidth > 0) || !(network.latency >= 0))
    throw Error("a network must have ranks, a bandwidth above 0 and a latency of at least 0");
  ranks::check_shards(profile.shards, network.ranks);
  const auto updates = static_cast<double>(std::max<std::int64_t>(1, profile.updates));
  const double update = profile.optimizer_seconds / updates;
  const double alone = profile.seconds / updates;
  const double shard = (alone - update) / static_cast<double>(profile.shards);
  UpdatePrediction expected;
  if (network.ranks == 1) {
    expected.plays = alone - update;
    expected.update = update;
    expected.seconds = alone;
    return expected;
  }
  std::int64_t most_shards = 0, most_sums = 0;  // the largest numbers of any rank
  for (int rank = 0; rank < network.ranks; ++rank) {
    const ranks::Shards own = ranks::shards_of(rank, network.ranks, profile.shards);
    most_shards = std::max(most_shards, own.count());
    most_sums = std::max(most_sums, static_cast<std::int64_t>(ranks::tops_of(own, profile.shards).size()));
  }
  const double ranks = network.ranks;
  const double others = static_cast<double>(profile.trained_bytes) * (ranks - 1) / ranks / network.bandwidth;
  expected.plays = static_cast<double>(most_shards) * shard;
  expected.reduce_scatter = static_cast<double>(most_sums) * others;
  expected.update = update / ranks;
  expected.all_gather = others;
  expected.latencies = 4 * network.latency;  // for losses, norms, the first weights, and the votes to continue
  // The first gradients are final after the forward pass of the last play, which takes a third of this play.
  const double before_sending = expected.plays - shard * 2 / 3;
  expected.seconds = std::max(expected.plays, before_sending + expected.reduce_scatter) + expected.update +
                     expected.all_gather + expected.latencies;
  expected.speed_up = alone / expected.seconds;
  return expected;
}

}  // namespace xtape
