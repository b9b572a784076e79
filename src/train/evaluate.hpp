/// Evaluation with an Evaluator that is reused.
#pragma once

#include "evaluator.hpp"
#include "rank_group.hpp"

namespace xtape::train {

/// Thrown to end a training at once from anywhere in it; Trainer::fit catches it.
struct Interruption {};

/// Adds up the sums of some items, in their order, which the ranks of the group share: play(i) computes those of item
/// i, and is called in order for the items of this rank. ranks[i] is the rank that plays item i, or -1: every rank
/// does. If it throws an Error on any rank, all ranks throw EvaluationError with the text of the first item
/// (DefinitionError, if it is one), and so they do if the sums of an item are not finite. A CommunicationError, after
/// which ranks cannot agree, passes through.
void add_shared(Evaluator& evaluator, const std::vector<int>& ranks, ranks::RankGroup& group,
                const std::function<Evaluator::Sums(std::size_t)>& play);

/// Does what xtape::evaluate does; the evaluator keeps its plans for the next call. The ranks of the group share the
/// batches, and all get the result of one process. `between` is called before every batch; an exception that it throws
/// ends the evaluation and propagates.
Evaluation evaluate(Evaluator& evaluator, const Batches& batches, ranks::RankGroup& group,
                    const std::function<void()>& between = {});

}  // namespace xtape::train
