/// Batching rules (Op::batch) that many ops share. They keep the batch as the first axis, so axes that are counted from
/// the back stay what they are.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_set>

#include "xtape/op/op.hpp"

namespace xtape {

using BatchRule = std::function<Vars(const BatchCall&)>;

/// For ops whose inputs broadcast together: gives them all the rank of the longest one, behind the batch.
Vars batch_elementwise(const BatchCall& call);
/// For ops that treat axes before their last ones alike: the same call.
Vars batch_leading(const BatchCall& call);
/// For ops whose other inputs (weights) have only the last axis. Declines if one of these is mapped.
Vars batch_rows_of_input(const BatchCall& call);
/// For ops with an axis of their first input as attribute `name`; of their first output if `of_output`.
BatchRule batch_along(const std::string& name = "axis", bool of_output = false);
/// For ops with a list of axes of their input, where an empty list means all of them.
BatchRule batch_axes(const std::string& name = "axis");
/// For ops with lists that have at most one number per axis. `first` is the entry for the batch.
BatchRule batch_per_axis(const std::vector<std::pair<std::string, std::int64_t>>& lists);

/// The sum of `x` [b, …, n] over all axes but the first and the last, [b, n].
Var sum_rows(const Var& x);

/// `x` with its first axis moved to `axis`.
Var first_axis_to(const Var& x, std::int64_t axis);
/// `x` with `axis` moved to the front.
Var axis_to_first(const Var& x, std::int64_t axis);

/// The random numbers that a tape draws, by the keys of their sites. A node that draws with one of these keys repeats a
/// draw, as the gradient of dropout does: it must get the same numbers, not new ones for each example or step. A call
/// of attention draws with the key of the dropout that it replaces, its attribute "draws".
class Draws {
 public:
  Draws() = default;
  explicit Draws(const Tape& tape) { add(tape); }
  bool repeats(const Node& node) const { return keys_.count(key_of(node)) != 0; }

 private:
  static std::uint64_t key_of(const Node& node);
  void add(const Tape& tape);
  std::unordered_set<std::uint64_t> keys_;
};

/// Records a call without inputs, which has an attribute "shape", with `size` as a further axis in front.
Var with_first_axis(Tape tape, const Node& node, std::int64_t size);

}  // namespace xtape
