/// Evaluating with a evaluator that is kept.
#pragma once

#include "evaluator.hpp"

namespace xtape::train {

/// Thrown where a training is to end at once, wherever it is; Trainer::fit catches it.
struct Interruption {};

/// As xtape::evaluate; the evaluator keeps what it has planned for the next time. `between` is called before every
/// batch; what it throws ends the evaluation.
Evaluation evaluate(Evaluator& evaluator, const Batches& batches, const std::function<void()>& between = {});

}  // namespace xtape::train
