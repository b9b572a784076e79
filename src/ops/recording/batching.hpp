/// Batching rules (Op::batch) that many ops share. They keep the batch as the first axis, so negative axes stay valid.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_set>

#include "xtape/op/op.hpp"

namespace xtape {

using BatchRule = std::function<Vars(const BatchCall&)>;

/// For ops whose inputs broadcast together. Gives all inputs the largest rank of any input, by new axes after the batch
/// axis.
Vars batch_elementwise(const BatchCall& call);
/// For ops that treat all axes alike, except for the last axes. Records the same call with the whole batch.
Vars batch_leading(const BatchCall& call);
/// For ops whose first input consists of rows, and whose other inputs (weights) have only the last axis. Declines if
/// one of the weights is mapped.
Vars batch_rows_of_input(const BatchCall& call);
/// For ops whose attribute `name` is an axis of their first input, or of their first output if `of_output`.
BatchRule batch_along(const std::string& name = "axis", bool of_output = false);
/// For ops with a list of axes of their input. An empty list means all axes.
BatchRule batch_axes(const std::string& name = "axis");
/// For ops with lists of at most one number per axis. Each pair consists of the name of a list and the list's entry for
/// the batch axis.
BatchRule batch_per_axis(const std::vector<std::pair<std::string, std::int64_t>>& lists);

/// Returns the sum of `x` [b, …, n] over all axes except the first and the last, [b, n].
Var sum_rows(const Var& x);

/// Returns `x` with its first axis moved to `axis`.
Var first_axis_to(const Var& x, std::int64_t axis);
/// Returns `x` with `axis` moved to the front.
Var axis_to_first(const Var& x, std::int64_t axis);

/// The random numbers that a tape draws, by the keys of their sites. A node that draws with one of these keys repeats a
/// draw. The repeated draw must get the same numbers, not new numbers for each example or step. An example is the
/// gradient of dropout. A call of attention draws with the key of the dropout that it replaces. Its attribute "draws"
/// contains this key.
class DrawnKeys {
 public:
  DrawnKeys() = default;
  explicit DrawnKeys(const Tape& tape) { add(tape); }
  bool repeats(const Node& node) const { return keys_.count(key_of(node)) != 0; }

 private:
  static std::uint64_t key_of(const Node& node);
  void add(const Tape& tape);
  std::unordered_set<std::uint64_t> keys_;
};

/// Records a call that has no inputs and an attribute "shape". `size` is an additional first axis.
Var with_first_axis(Tape tape, const Node& node, std::int64_t size);

}  // namespace xtape
