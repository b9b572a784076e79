/// Evaluation with an Evaluator that is reused.
#pragma once

#include "evaluator.hpp"

namespace xtape::train {

/// Thrown to end a training at once from anywhere in it; Trainer::fit catches it.
struct Interruption {};

/// Does what xtape::evaluate does; the evaluator keeps its plans for the next call. `between` is called before every
/// batch; an exception that it throws ends the evaluation and propagates.
Evaluation evaluate(Evaluator& evaluator, const Batches& batches, const std::function<void()>& between = {});

}  // namespace xtape::train
