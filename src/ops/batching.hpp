/// Batching rules (Op::batch) that many ops share. They keep the batch as the first axis, so axes that are counted from
/// the back stay what they are.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "xtape/op/op.hpp"

namespace xtape {

using BatchRule = std::function<Vars(const BatchCall&)>;

/// For ops whose inputs broadcast together: gives them all the rank of the longest one, behind the batch.
Vars batch_elementwise(const BatchCall& call);
/// For ops that treat axes before their last ones alike: the same call.
Vars batch_leading(const BatchCall& call);
/// The same for ops whose further inputs (weights) belong to the last axis: only if no one of these is mapped.
Vars batch_rows_of_input(const BatchCall& call);
/// For ops with an axis of their first input as attribute `name`; of their first output if `of_output`.
BatchRule batch_along(const std::string& name = "axis", bool of_output = false);
/// For ops with a list of axes of their input, where an empty list means all of them.
BatchRule batch_axes(const std::string& name = "axis");
/// For ops of one input with a list of numbers, one per axis, or fewer: `first` is that of the batch.
BatchRule batch_per_axis(const std::vector<std::pair<std::string, std::int64_t>>& lists);

/// `x` with its first axis as axis `axis`, and the reverse.
Var first_axis_to(const Var& x, std::int64_t axis);
Var axis_to_first(const Var& x, std::int64_t axis);

/// Records a call without inputs, which has an attribute "shape", with `size` as a further axis in front.
Var with_first_axis(Tape tape, const Node& node, std::int64_t size);

}  // namespace xtape
