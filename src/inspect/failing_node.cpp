// Finds the node that makes a program fail.
#include <algorithm>
#include <span>

#include "failing.hpp"
#include "xtape/op.hpp"

namespace xtape {

namespace {
/// What a play does if the values that some nodes make are replaced by finite ones.
struct Trial {
  std::vector<std::int32_t> makers;   ///< The nodes that made NaN or infinities, of those that were mended.
  std::set<std::int32_t> passing;     ///< The nodes whose outputs were not finite, after mending.
  Kinds outputs;                      ///< Of the outputs of the program.
  std::optional<FailingNode> thrown;  ///< The node whose kernel threw.
};

/// Plays with finite values in place of those that the nodes for which `mends(node)` is true make.
template <class Mends>
Trial trial(const NodeByNode& plays, bool given, const Mends& mends) {
  Trial result;
  std::int32_t reached = -1;
  const Program& program = plays.program();
  const auto visit = [&](std::int32_t index, const std::vector<Array>& operands, std::vector<Array>& outputs) {
    reached = index;
    const auto is_finite = [](const Array& output) { return all_finite(output); };
    if (std::all_of(outputs.begin(), outputs.end(), is_finite)) return true;
    const Node& node = program.node(index);
    const bool is_given = given && node.op == &parameter_op();
    if (!is_given && mends(index)) {
      const Kinds made =
          node.op->is_source() ? made_by_source(node, outputs[0]) : made_by_call(plays, node, operands, outputs);
      if (!all_finite(made)) {
        result.makers.push_back(index);
        mend(outputs, made);
      }
    }
    if (!std::all_of(outputs.begin(), outputs.end(), is_finite)) result.passing.insert(index);
    return true;
  };
  try {
    const NodeByNode::Values values = plays.play(visit);
    std::vector<Array> outputs;
    for (const ValueId id : program.outputs) outputs.push_back(values.at(key_of(id)));
    result.outputs = kinds_of(outputs);
  } catch (const Error& error) {
    result.thrown = FailingNode{reached + 1, error.what()};
  }
  return result;
}

/// Whether an output is not finite where it is finite, or of another kind, in the play in which all nodes are mended:
/// what is not finite there comes from literals.
bool fails(const Trial& trial, const Trial& mended) {
  if (trial.thrown) return true;
  for (std::size_t k = 0; k < trial.outputs.size(); ++k)
    for (std::size_t i = 0; i < trial.outputs[k].size(); ++i) {
      const Kind kind = trial.outputs[k][i];
      if (kind != Kind::finite && (mended.outputs[k].empty() || mended.outputs[k][i] != kind)) return true;
    }
  return false;
}

/// The nodes that pass on to an output of the program what no node made; nothing if all outputs are finite.
std::optional<FailingNode> passed_on(const Program& program, const Trial& mended) {
  for (std::size_t k = 0; k < program.outputs.size(); ++k) {
    if (all_finite({mended.outputs[k]})) continue;
    FailingNode last{program.outputs[k].node, "", {program.outputs[k].node}};
    std::vector<std::int32_t> queue{last.node};
    while (!queue.empty()) {
      const std::int32_t node = queue.back();
      queue.pop_back();
      for (const ValueId id : program.node(node).inputs)
        if (mended.passing.count(id.node) > 0 && last.stretch.insert(id.node).second) queue.push_back(id.node);
    }
    return last;
  }
  return std::nullopt;
}
}  // namespace

std::optional<FailingNode> failing_node(const NodeByNode& plays, bool given) {
  const Trial mended = trial(plays, given, [](std::int32_t) { return true; });
  if (mended.thrown) return mended.thrown;  // it throws whatever the makers make
  // With all of them mended, the list has only nodes that make NaN or infinities of finite values and of literals.
  // Halving it finds the first that fails the play alone.
  const std::set<std::int32_t> makers(mended.makers.begin(), mended.makers.end());
  const auto fails_with = [&](std::span<const std::int32_t> unmended) {
    const auto mends = [&](std::int32_t node) {
      return makers.count(node) > 0 && std::find(unmended.begin(), unmended.end(), node) == unmended.end();
    };
    return fails(trial(plays, given, mends), mended);
  };
  std::span<const std::int32_t> suspects = mended.makers;
  if (suspects.empty() || !fails_with(suspects)) return passed_on(plays.program(), mended);
  while (suspects.size() > 1) {
    const std::size_t half = (suspects.size() + 1) / 2;
    if (fails_with(suspects.first(half)))
      suspects = suspects.first(half);
    else if (fails_with(suspects.subspan(half)))
      suspects = suspects.subspan(half);
    else
      break;  // it takes several: the first of them is named
  }
  return FailingNode{suspects[0]};
}

}  // namespace xtape
