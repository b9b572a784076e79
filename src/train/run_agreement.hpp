/// What the processes that train one run must have in common.
#pragma once

#include "rank_group.hpp"
#include "run_data.hpp"
#include "xtape/train.hpp"

namespace xtape::train {

/// Throws Error unless all ranks have the same version, instruction set, kernels and recipe, number of threads apart.
void check_agreement(ranks::RankGroup& group, const Recipe& recipe);
/// Throws Error unless all ranks have read the same data.
void check_agreement(ranks::RankGroup& group, const Texts& texts);

}  // namespace xtape::train
