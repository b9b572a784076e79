/// Checks what the ranks of a training must have in common.
#pragma once

#include <string>

#include "ranks/rank_group.hpp"

namespace xtape::ranks {

/// Throws Error on every rank if `value` is not the same on all ranks. The message names two ranks and the part in
/// which their values differ.
void check_agreement(RankGroup& group, const std::string& what, const std::string& value);
/// Throws Error if there are more ranks than shards.
void check_shards(std::int64_t shards, int ranks);

/// Returns the number of threads that this rank uses. If the rank is bound to processors, this is their number.
/// Otherwise it is the rank's share of all processors.
int threads_of(const RankGroup& group);

}  // namespace xtape::ranks
