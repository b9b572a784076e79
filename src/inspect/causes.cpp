// Traces a failure back to the values that caused it.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/arrays/elements.hpp"
#include "base/arrays/visit.hpp"
#include "inspect/failing.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

namespace {
Array filled_like(const Array& array, double value) {
  Array filled(array.dtype(), array.shape());
  visit_elements(filled, [&](auto* elements) {
    using T = std::remove_pointer_t<decltype(elements)>;
    std::fill_n(elements, filled.count(), static_cast<T>(static_cast<float>(value)));
  });
  return filled;
}

/// Returns the array with all elements replaced by `number` except those from `begin` to `finish`.
Array only(const Array& array, double number, std::int64_t begin, std::int64_t finish) {
  Array kept = filled_like(array, number);
  visit_elements(array, [&](const auto* elements) {
    using T = std::remove_cv_t<std::remove_pointer_t<decltype(elements)>>;
    std::copy(elements + begin, elements + finish, kept.as<T>() + begin);
  });
  return kept;
}

/// Plays the failing node, and the earlier nodes added by begin_at(), with other operands.
class Replacements {
 public:
  Replacements(const NodeByNode& plays, const FailingNode& failing, const Causes& causes)
      : plays_(plays), nodes_{failing.node}, causes_(causes) {}
  void begin_at(std::int32_t node) { nodes_.insert(node); }

  /// Returns the first of some small numbers that prevents the failure if it replaces all elements of `value`.
  std::optional<double> mended_by(ValueId value) const {
    const Array& array = causes_.arrays.at(value);
    if (array.count() == 0 || is_block(array.dtype())) return std::nullopt;  // elements of blocks cannot be replaced
    for (const double number : {1.0, 0.0, 0.5, -0.5})
      if (!fails_with(value, filled_like(array, number))) return number;
    return std::nullopt;
  }

  /// Returns the index of the first element of `value` that alone causes the failure, while `number` replaces all
  /// others. Returns an empty index if the failure needs several elements.
  std::vector<std::int64_t> culprit(ValueId value, double number) const {
    const Array& array = causes_.arrays.at(value);
    std::int64_t begin = 0, finish = array.count();
    while (finish - begin > 1) {
      const std::int64_t middle = begin + (finish - begin) / 2;
      if (fails_with(value, only(array, number, begin, middle)))
        finish = middle;
      else if (fails_with(value, only(array, number, middle, finish)))
        begin = middle;
      else
        return {};
    }
    return index_of(begin, array.shape());
  }

 private:
  bool fails_with(ValueId value, const Array& replacement) const {
    NodeByNode::Values values = causes_.arrays;
    values[value] = replacement;
    try {
      for (const std::int32_t index : nodes_) {
        if (index <= value.node) continue;
        const Node& node = plays_.program().node(index);
        const std::vector<Array> outputs = plays_.played_alone(node, operands_of(node, values));
        if (index == *nodes_.rbegin()) return fail(kinds_of(outputs));
        for (std::size_t k = 0; k < outputs.size(); ++k) values[{index, static_cast<std::int32_t>(k)}] = outputs[k];
      }
    } catch (const Error&) {
      return true;
    }
    return true;
  }

  /// `outputs` are the kinds of the outputs of the failing node with replaced operands. Returns whether any element
  /// that fails in the original play is still not finite in `outputs`.
  bool fail(const Kinds& outputs) const {
    for (std::size_t k = 0; k < std::min(outputs.size(), causes_.failures.size()); ++k)
      for (std::size_t i = 0; i < std::min(outputs[k].size(), causes_.failures[k].size()); ++i)
        if (outputs[k][i] != Kind::finite && causes_.failures[k][i] != Kind::finite) return true;
    return false;
  }

  const NodeByNode& plays_;
  std::set<std::int32_t> nodes_;
  const Causes& causes_;
};

/// Returns `node` and nodes on which it depends, at most about `most` nodes. Prefers the nodes that are nearest to
/// `node`.
std::set<std::int32_t> nearest_before(const Program& program, std::int32_t node, std::size_t most) {
  std::set<std::int32_t> found{node};
  std::vector<std::int32_t> queue{node};
  for (std::size_t next = 0; next < queue.size() && found.size() < most; ++next)
    for (const ValueId id : program.node(queue[next]).inputs)
      if (found.insert(id.node).second) queue.push_back(id.node);
  return found;
}

/// Returns the nodes whose arrays are needed in order to find causes.
std::set<std::int32_t> nodes_to_look_at(const Program& program, const FailingNode& failing) {
  constexpr std::size_t most_kept = 64;
  if (failing.chain.empty()) return nearest_before(program, failing.node, most_kept);
  std::set<std::int32_t> kept = failing.chain;
  for (const std::int32_t index : failing.chain)
    for (const ValueId id : program.node(index).inputs) kept.insert(id.node);
  return kept;
}

/// Returns for each node whether its values may differ between plays or change in training. All other nodes are
/// computed from literals.
std::vector<bool> varying_nodes(const Program& program) {
  std::vector<bool> varies(program.tape.size());
  for (std::size_t i = 0; i < varies.size(); ++i) {
    const Node& node = program.tape.node(i);
    varies[i] = node.op == &input_op() || node.op == &parameter_op() || node.op->random ||
                std::ranges::any_of(node.inputs, [&](ValueId id) { return varies[id.node]; });
  }
  return varies;
}

/// Returns how unusual a value is. Infinities and NaN are more unusual than any number.
double strangeness(const Range& range) {
  return !range.all_finite() ? HUGE_VAL : range.magnitude();
}

/// Adds the outputs of the failing node in the play, and the kinds of their failing elements.
void add_outputs(Causes& causes, const NodeByNode& plays, const FailingNode& failing) {
  if (!failing.error.empty()) return;
  const Node& node = plays.program().node(failing.node);
  if (node.op->is_source()) {
    causes.outputs = {plays.source(node)};
    causes.failures = made_by_source(node, causes.outputs[0]);
  } else {
    const std::vector<Array> operands = operands_of(node, causes.arrays);
    causes.outputs = plays.played_alone(node, operands);
    causes.failures = made_by_call(plays, node, operands, causes.outputs, Flips::made);
  }
  if (all_finite(causes.failures)) causes.failures = kinds_of(causes.outputs);
}
}  // namespace

Causes causes_of(const NodeByNode& plays, const FailingNode& failing) {
  constexpr std::size_t most_causes = 16;
  constexpr double usual = 100;  // the magnitude of a value that needs no further explanation
  const Program& program = plays.program();
  Causes causes;
  causes.arrays = plays.play(
      [&](std::int32_t node, const std::vector<Array>&, std::vector<Array>&) { return node + 1 < failing.node; },
      nodes_to_look_at(program, failing));
  add_outputs(causes, plays, failing);
  const std::vector<bool> varies = varying_nodes(program);
  Replacements replacements(plays, failing, causes);
  const auto is_known = [&](ValueId id) { return causes.arrays.count(id) > 0; };
  for (std::int32_t user = failing.node; causes.values.size() < most_causes + failing.chain.size();) {
    const Node& node = program.node(user);
    replacements.begin_at(user);
    if (!std::ranges::all_of(node.inputs, is_known)) break;
    std::optional<ValueId> chosen;
    std::optional<double> mending;
    // prefers operands that prevent the failure, then operands that are no literals, then the largest numbers
    std::tuple<bool, bool, double> best;
    for (const ValueId id : node.inputs) {
      const std::optional<double> number = replacements.mended_by(id);
      const std::tuple rank{number.has_value(), varies[id.node], strangeness(range_of(causes.arrays.at(id)))};
      if (chosen && rank <= best) continue;
      chosen = id;
      mending = number;
      best = rank;
    }
    if (!chosen) break;
    causes.values.push_back({*chosen, user, {}});
    if (mending) causes.values.back().element = replacements.culprit(*chosen, *mending);
    if (program.node(chosen->node).op->is_source()) break;
    if (causes.values.size() > 2 && std::get<double>(best) <= usual) break;
    user = chosen->node;
  }
  return causes;
}

}  // namespace xtape
