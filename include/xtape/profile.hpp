/// How the time of updates is spent, and what it would be on several hosts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "xtape/player.hpp"

namespace xtape {

/// How the time of updates is spent.
struct TrainingProfile {
  /// A step of a plan, over all its plays.
  struct Step {
    std::string op;      ///< As Plan::Step::op.
    std::string module;  ///< The path of its module, also for gradients; "" outside modules.
    std::int64_t calls = 0;
    double seconds = 0;
    double flops = 0;  ///< The sum over all calls, as in Plan::Step; also bytes.
    double bytes = 0;
  };
  std::vector<Step> steps;
  std::vector<Plan::Fusion> fusions;  ///< The fusions of the plan that was played most.
  std::int64_t updates = 0;
  double seconds = 0;              ///< Wall time of all updates, of which …
  double batch_seconds = 0;        ///< … is for making batches, and …
  double optimizer_seconds = 0;    ///< … this for clipping and changing the weights.
  std::int64_t shards = 1;         ///< Parts into which the batch of an update is cut.
  std::int64_t trained_bytes = 0;  ///< The bytes of the weights that are trained.
};

/// Equal hosts, each with one rank, and the network between them.
struct HostNetwork {
  int ranks = 1;
  double bandwidth = 1.25e9;  ///< Bytes per second that a host sends, and at the same time receives.
  double latency = 5e-5;      ///< Seconds from one host to another.
};

/// The expected time of an update on several hosts, in seconds. docs/distributed.md derives it.
struct UpdatePrediction {
  double plays = 0;           ///< Forward and backward, of the rank with the most shards.
  double reduce_scatter = 0;  ///< Sending gradients, most of it during the plays.
  double update = 0;          ///< For one rank's share of the weights.
  double all_gather = 0;      ///< Sending weights.
  double latencies = 0;
  double seconds = 0;   ///< The whole update: max(plays, reduce_scatter and the plays before it) and the rest.
  double speed_up = 1;  ///< Over one rank.
};
/// Throws Error for a network without ranks or bandwidth, or with more ranks than the profile has shards.
UpdatePrediction predict_update(const TrainingProfile& profile, const HostNetwork& network);

}  // namespace xtape
