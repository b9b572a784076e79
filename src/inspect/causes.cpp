// Follows a failure back to the values that it came from.
#include <algorithm>
#include <cmath>

#include "failing.hpp"
#include "visit.hpp"

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

/// A number of nodes that ends with the failing one, and trials of what it would do with other operands.
class Stretch {
 public:
  Stretch(const NodeByNode& plays, const FailingNode& failing) : plays_(plays), nodes_{failing.node} {}
  void begin_at(std::int32_t node) { nodes_.insert(node); }

  /// Whether the failure disappears if `value` is replaced by usual numbers.
  bool mended_by(ValueId value, const NodeByNode::Values& arrays) const {
    const Array& array = arrays.at(key_of(value));
    if (array.count() == 0) return false;
    for (const double number : {1.0, 0.0, 0.5, -0.5})
      if (!fails_with(value, filled_like(array, number), arrays)) return true;
    return false;
  }

 private:
  bool fails_with(ValueId value, const Array& replacement, const NodeByNode::Values& arrays) const {
    NodeByNode::Values values = arrays;
    values[key_of(value)] = replacement;
    try {
      for (const std::int32_t index : nodes_) {
        if (index <= value.node) continue;
        const Node& node = plays_.program().node(index);
        const std::vector<Array> operands = operands_of(node, values);
        const SingleNode single = single_node(plays_.program().tape, node, operands);
        const std::vector<Array> outputs = played(single.tape, single.outputs, plays_.options(), plays_.step());
        if (index == *nodes_.rbegin())
          return std::any_of(outputs.begin(), outputs.end(), [](const Array& each) { return not_finite(each).any(); });
        for (std::size_t k = 0; k < outputs.size(); ++k) values[{index, static_cast<std::int32_t>(k)}] = outputs[k];
      }
    } catch (const Error&) {
      return true;
    }
    return true;
  }

  const NodeByNode& plays_;
  std::set<std::int32_t> nodes_;
};

/// The nodes before `node` that it depends on, the nearest first, at most `most`.
std::set<std::int32_t> nearest_before(const Program& program, std::int32_t node, std::size_t most) {
  std::set<std::int32_t> found{node};
  std::vector<std::int32_t> queue{node};
  for (std::size_t next = 0; next < queue.size() && found.size() < most; ++next)
    for (const ValueId id : program.node(queue[next]).inputs)
      if (found.insert(id.node).second) queue.push_back(id.node);
  return found;
}

/// How unusual a value is: infinities and NaN are more than any number.
double strangeness(const Range& range) {
  return !range.all_finite() ? HUGE_VAL : range.magnitude();
}
}  // namespace

Causes causes_of(const NodeByNode& plays, const FailingNode& failing) {
  constexpr std::size_t most_causes = 16, most_kept = 64;
  constexpr double usual = 100;  // the magnitude of a value that needs no further cause
  const Program& program = plays.program();
  Causes causes;
  causes.arrays = plays.play(
      [&](std::int32_t node, const std::vector<Array>&, std::vector<Array>&) { return node + 1 < failing.node; },
      nearest_before(program, failing.node, most_kept));
  Stretch stretch(plays, failing);
  const auto is_known = [&](ValueId id) { return causes.arrays.count(key_of(id)) > 0; };
  for (std::int32_t user = failing.node; causes.values.size() < most_causes;) {
    const Node& node = program.node(user);
    stretch.begin_at(user);
    if (!std::all_of(node.inputs.begin(), node.inputs.end(), is_known)) break;
    std::optional<ValueId> chosen;
    std::pair<bool, double> best;
    for (const ValueId id : node.inputs) {
      const std::pair<bool, double> rank{stretch.mended_by(id, causes.arrays),
                                         strangeness(range_of(causes.arrays.at(key_of(id))))};
      if (chosen && rank <= best) continue;
      chosen = id;
      best = rank;
    }
    if (!chosen) break;
    causes.values.push_back({*chosen, user});
    if (program.node(chosen->node).op->is_source()) break;
    if (causes.values.size() > 2 && best.second <= usual) break;
    user = chosen->node;
  }
  return causes;
}

}  // namespace xtape
