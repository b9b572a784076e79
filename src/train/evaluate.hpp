/// Evaluating with a meter that is kept.
#pragma once

#include "meter.hpp"

namespace xtape::train {

/// As xtape::evaluate; the meter keeps what it has planned for the next time.
Evaluation evaluate(Meter& meter, Model& model, const Batches& batches);

}  // namespace xtape::train
