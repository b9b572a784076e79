/// Checks what all processes of a run must have in common.
#pragma once

#include "ranks/rank_group.hpp"
#include "train/run/run_data.hpp"
#include "xtape/train.hpp"

namespace xtape::train {

/// Throws Error if the ranks differ in version, instruction set, kernels or recipe. The numbers of threads may differ.
void check_agreement(ranks::RankGroup& group, const Recipe& recipe);
/// Throws Error if the ranks have not read the same data.
void check_agreement(ranks::RankGroup& group, const Texts& texts);

}  // namespace xtape::train
