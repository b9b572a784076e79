// Finds the node that makes a program fail.
#include <algorithm>
#include <span>

#include "base/messages/wording.hpp"
#include "base/system/process_memory.hpp"
#include "inspect/failing.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

namespace {
/// The outcome of a play in which ones replace the NaN and infinities that some nodes make (see made_by_call). These
/// nodes are mended.
struct Trial {
  std::vector<std::int32_t> makers;   ///< The mended nodes that made NaN or infinities.
  std::set<std::int32_t> overflows;   ///< The makers of NaN or inf. All other makers made only -inf, as masks do.
  std::set<std::int32_t> passing;     ///< The nodes whose outputs were still not finite after mending.
  Kinds outputs;                      ///< The kinds of the outputs of the program.
  std::optional<FailingNode> thrown;  ///< The node whose kernel threw.
};

/// Plays a program and mends some of its nodes.
class Trials {
 public:
  /// If `given` is true, parameters are never mended.
  Trials(const NodeByNode& plays, bool given, Flips flips) : plays_(plays), given_(given), flips_(flips) {}

  const Program& program() const { return plays_.program(); }
  /// Mends the outputs of the nodes for which `mends(node)` is true.
  template <class Mends>
  Trial operator()(const Mends& mends) const;
  /// Returns the nodes that make NaN or infinities if nothing is mended.
  std::vector<std::int32_t> makers() const;

 private:
  Kinds made_by(const Node& node, const std::vector<Array>& operands, const std::vector<Array>& outputs) const {
    return node.op->is_source() ? made_by_source(node, outputs[0])
                                : made_by_call(plays_, node, operands, outputs, flips_);
  }

  const NodeByNode& plays_;
  bool given_;
  Flips flips_;
};

template <class Mends>
Trial Trials::operator()(const Mends& mends) const {
  Trial result;
  std::int32_t reached = -1;
  const auto visit = [&](std::int32_t index, const std::vector<Array>& operands, std::vector<Array>& outputs) {
    reached = index;
    const auto is_finite = [](const Array& output) { return all_finite(output); };
    if (std::ranges::all_of(outputs, is_finite)) return true;
    const Node& node = program().node(index);
    const bool is_given = given_ && node.op == &parameter_op();
    if (!is_given && mends(index)) {
      const Kinds made = made_by(node, operands, outputs);
      if (!all_finite(made)) {
        result.makers.push_back(index);
        if (worst_of(made)->kind != Kind::minus_inf) result.overflows.insert(index);
        mend(outputs, made);
      }
    }
    if (!std::ranges::all_of(outputs, is_finite)) result.passing.insert(index);
    return true;
  };
  try {
    const NodeByNode::Values values = plays_.play(visit);
    std::vector<Array> outputs;
    for (const ValueId id : program().outputs) outputs.push_back(values.at(id));
    result.outputs = kinds_of(outputs);
  } catch (const OutOfMemory&) {
    throw;
  } catch (const Error& error) {
    result.thrown = FailingNode{reached + 1, error.what()};
  }
  return result;
}

std::vector<std::int32_t> Trials::makers() const {
  std::vector<std::int32_t> makers;
  plays_.play([&](std::int32_t index, const std::vector<Array>& operands, std::vector<Array>& outputs) {
    const Node& node = program().node(index);
    if (!node.op->is_source() && !all_finite(kinds_of(outputs)) && !all_finite(made_by(node, operands, outputs)))
      makers.push_back(index);
    return true;
  });
  return makers;
}

/// Returns whether an output element that is not finite differs in kind from the same element with all nodes mended.
/// (Elements that are not finite even then come from literals.) With `alike`, the element must also have the kind that
/// it has with no node mended. If a kernel threw in `trial` or in `natural`, returns whether kernels threw in both.
bool fails(const Trial& trial, const Trial& natural, const Trial& mended, bool alike) {
  if (trial.thrown || natural.thrown) return trial.thrown && natural.thrown;
  const auto kind_at = [](const Trial& of, std::size_t k, std::size_t i) {
    return of.outputs[k].empty() ? Kind::finite : of.outputs[k][i];
  };
  for (std::size_t k = 0; k < trial.outputs.size(); ++k)
    for (std::size_t i = 0; i < trial.outputs[k].size(); ++i)
      if (const Kind kind = trial.outputs[k][i];
          kind != Kind::finite && (!alike || kind == kind_at(natural, k, i)) && kind != kind_at(mended, k, i))
        return true;
  return false;
}

/// `mended` is the play in which all nodes are mended. If an output is still not finite there, its NaN or infinities
/// come from literals. Returns the node of the first such output, and the chain of nodes that pass these NaN or
/// infinities on to it. Returns nothing if all outputs are finite.
std::optional<FailingNode> passed_on(const Program& program, const Trial& mended) {
  for (std::size_t k = 0; k < program.outputs.size(); ++k) {
    if (all_finite({mended.outputs[k]})) continue;
    FailingNode last{program.outputs[k].node, "", {program.outputs[k].node}};
    std::vector<std::int32_t> queue{last.node};
    while (!queue.empty()) {
      const std::int32_t node = queue.back();
      queue.pop_back();
      for (const ValueId id : program.node(node).inputs)
        if (mended.passing.count(id.node) > 0 && last.chain.insert(id.node).second) queue.push_back(id.node);
    }
    return last;
  }
  return std::nullopt;
}

constexpr auto all_nodes = [](std::int32_t) { return true; };
constexpr auto no_node = [](std::int32_t) { return false; };

/// Returns the first node that makes the program fail.
std::optional<FailingNode> first_failing(const Trials& trials) {
  const Trial mended = trials(all_nodes);
  if (mended.thrown) return mended.thrown;  // the node throws even if all makers are mended
  // With all makers mended, the list contains only nodes that make NaN or infinities from finite values and literals.
  // Bisection finds the first of them that alone makes the play fail.
  const Trial natural = trials(no_node);
  const std::set<std::int32_t> makers(mended.makers.begin(), mended.makers.end());
  const auto fails_with = [&](std::span<const std::int32_t> unmended) {
    const auto mends = [&](std::int32_t node) { return makers.count(node) > 0 && !contains(unmended, node); };
    const bool overflows =
        std::ranges::any_of(unmended, [&](std::int32_t node) { return mended.overflows.count(node) > 0; });
    return fails(trials(mends), natural, mended, !overflows);
  };
  std::span<const std::int32_t> suspects = mended.makers;
  if (suspects.empty() || !fails_with(suspects)) return passed_on(trials.program(), mended);
  while (suspects.size() > 1) {
    const std::size_t half = (suspects.size() + 1) / 2;
    if (fails_with(suspects.first(half)))
      suspects = suspects.first(half);
    else if (fails_with(suspects.subspan(half)))
      suspects = suspects.subspan(half);
    else
      break;
  }
  if (suspects.size() == 1 || natural.thrown) return FailingNode{suspects[0]};
  // Several nodes together cause the failure, and each of them may be an intended mask. The result is the first later
  // node that makes NaN or infinities from theirs.
  for (const std::int32_t node : trials.makers())
    if (node > suspects[0] && makers.count(node) == 0) return FailingNode{node};
  return FailingNode{suspects[0]};
}
}  // namespace

std::optional<FailingNode> failing_node(const NodeByNode& plays, bool given) {
  const Trials strict(plays, given, Flips::made), lenient(plays, given, Flips::passed_on);
  const std::optional<FailingNode> found = first_failing(strict);
  if (!found || !found->error.empty() || !found->chain.empty()) return found;
  const auto only_found = [&](std::int32_t node) { return node == found->node; };
  if (!lenient(only_found).makers.empty()) return found;
  // The node flips the sign of an infinity. It is at fault if nothing fails once it is mended. Otherwise it is part of
  // a guard.
  const Trial without = strict(only_found);
  if (!without.thrown && all_finite(without.outputs)) return found;
  const std::optional<FailingNode> other = first_failing(lenient);
  return other && other->chain.empty() ? other : found;
}

}  // namespace xtape
