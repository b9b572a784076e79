#include <algorithm>

#include "ranks/rank_group.hpp"
#include "ranks/shard_tree.hpp"
#include "xtape/profile.hpp"

namespace xtape {

namespace {
/// Returns when a rank has sent the gradients of its shards, in seconds after the beginning of its plays. It sends the
/// sum of a subtree during the play of the subtree's last shard, in the order in which the gradients become complete.
double end_of_sending(const TrainingProfile& profile, const ranks::Shards& own, double shard_seconds,
                      double byte_seconds) {
  double end = 0;
  for (const ranks::Shards& top : ranks::tops_of(own, profile.shards)) {
    const double begin = static_cast<double>(top.last - own.first - 1) * shard_seconds;
    for (const SentGradients& sending : profile.sendings)
      end = std::max(end, begin + sending.after * shard_seconds) + static_cast<double>(sending.bytes) * byte_seconds;
  }
  return end;
}
}  // namespace

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
  const double ranks = network.ranks;
  const double byte_seconds = (ranks - 1) / ranks / network.bandwidth;  // per byte of all weights
  double sent = 0, gradient_bytes = 0;
  for (const SentGradients& sending : profile.sendings) gradient_bytes += static_cast<double>(sending.bytes);
  for (int rank = 0; rank < network.ranks; ++rank) {  // the slowest rank counts
    const ranks::Shards own = ranks::shards_of(rank, network.ranks, profile.shards);
    const auto sums = static_cast<double>(ranks::tops_of(own, profile.shards).size());
    expected.plays = std::max(expected.plays, static_cast<double>(own.count()) * shard);
    expected.reduce_scatter = std::max(expected.reduce_scatter, sums * gradient_bytes * byte_seconds);
    sent = std::max(sent, end_of_sending(profile, own, shard, byte_seconds));
  }
  expected.after_plays = std::max(0.0, sent - expected.plays);
  expected.update = update / ranks;
  expected.all_gather = static_cast<double>(profile.trained_bytes) * byte_seconds;
  // For the last gradients, losses, norms, the first weights, and the votes to continue.
  expected.latencies = 5 * network.latency;
  expected.seconds = expected.plays + expected.after_plays + expected.update + expected.all_gather + expected.latencies;
  expected.speed_up = alone / expected.seconds;
  return expected;
}

}  // namespace xtape
