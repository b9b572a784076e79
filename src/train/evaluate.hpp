/// Evaluating with a meter that is kept.
#pragma once

#include "meter.hpp"

namespace xtape::train {

/// Thrown where a training is to end at once, wherever it is; Trainer::fit catches it.
struct Interruption {};

/// As xtape::evaluate; the meter keeps what it has planned for the next time. `between` is called before every batch;
/// what it throws ends the evaluation.
Evaluation evaluate(Meter& meter, const Batches& batches, const std::function<void()>& between = {});

}  // namespace xtape::train
