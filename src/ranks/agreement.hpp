/// What the ranks of a training must have in common.
#pragma once

#include <string>

#include "rank_group.hpp"

namespace xtape::ranks {

/// Throws Error on every rank, which names what differs, where and how, unless `value` is the same on all ranks.
void check_agreement(RankGroup& group, const std::string& what, const std::string& value);
/// Throws Error if there are more ranks than shards.
void check_shards(std::int64_t shards, int ranks);

/// The number of threads of this rank: the processors that it is bound to, or, if it is not bound, its share of all.
int threads_of(const RankGroup& group);

}  // namespace xtape::ranks
