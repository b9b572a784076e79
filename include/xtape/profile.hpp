/// Profiles of the time of updates, and predictions for several hosts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "xtape/distributed.hpp"
#include "xtape/player.hpp"

namespace xtape {

/// A profile of the time of updates.
struct TrainingProfile {
  /// A step of a plan, summed over all its plays.
  struct Step {
    std::string op;      ///< See Plan::Step::op.
    std::string module;  ///< The path of its module, also for gradients. "" outside modules.
    std::int64_t calls = 0;
    double seconds = 0;
    double flops = 0;  ///< The sum over all calls, as in Plan::Step. The same applies to `bytes`.
    double bytes = 0;
  };
  std::vector<Step> steps;
  std::vector<Plan::Fusion> fusions;  ///< The fusions of the plan with the most plays.
  std::int64_t updates = 0;
  double seconds = 0;                   ///< The wall time of all updates.
  double batch_seconds = 0;             ///< The part of `seconds` for making batches.
  double optimizer_seconds = 0;         ///< The part of `seconds` for clipping and updating the weights.
  std::int64_t shards = 1;              ///< The number of parts that the batch of an update is split into.
  std::int64_t trained_bytes = 0;       ///< The bytes of the trained weights.
  std::vector<SentGradients> sendings;  ///< All gradients of a play, in the order of sending.
};

/// Equal hosts, each with one rank, and the network between them.
struct HostNetwork {
  int ranks = 1;
  double bandwidth = 1.25e9;  ///< The bytes per second that a host sends and receives simultaneously.
  double latency = 5e-5;      ///< The seconds that a message takes from one host to another.
};

/// The expected time of an update on several hosts, in seconds. docs/how_to/distributed.md derives it.
struct UpdatePrediction {
  double plays = 0;           ///< Forward and backward plays of the rank with the most shards.
  double reduce_scatter = 0;  ///< Sending gradients.
  double after_plays = 0;     ///< The part of the sending that lasts longer than the plays.
  double update = 0;          ///< The update of one rank's share of the weights.
  double all_gather = 0;      ///< Sending weights.
  double latencies = 0;
  /// The complete update: plays + after_plays + update + all_gather + latencies.
  double seconds = 0;
  double speed_up = 1;  ///< The speed-up over one rank.
};
/// Throws Error if the network has no ranks or no bandwidth, or more ranks than the profile has shards.
UpdatePrediction predict_update(const TrainingProfile& profile, const HostNetwork& network);

}  // namespace xtape
