/// Evaluates with an Evaluator that is reused.
#pragma once

#include "train/trainer/evaluator.hpp"
#include "ranks/rank_group.hpp"

namespace xtape::train {

/// Thrown to end a training at once from any place in it. Trainer::fit catches it.
struct Interruption {};

/// Adds up the sums of all items in order. Each rank of the group plays some of the items. It calls play(i) in order
/// for its items; play(i) returns the sums of item i. ranks[i] is the rank that plays item i, or -1 if every rank plays
/// it. If `play` throws Error on any rank, or the sums of an item are not finite, all ranks throw EvaluationError with
/// the message of the first failing item. A DefinitionError stays a DefinitionError. A CommunicationError propagates
/// unchanged, because the ranks cannot agree after it.
void add_shared(Evaluator& evaluator, const std::vector<int>& ranks, ranks::RankGroup& group,
                const std::function<Evaluator::Sums(std::size_t)>& play);

/// Does what xtape::evaluate does. The evaluator keeps its plans for the next call. Each rank plays some of the
/// batches. All ranks return the same result as a single process. `between` is called before every batch; an exception
/// that it throws ends the evaluation and propagates.
Evaluation evaluate(Evaluator& evaluator, const Batches& batches, ranks::RankGroup& group,
                    const std::function<void()>& between = {});

}  // namespace xtape::train
