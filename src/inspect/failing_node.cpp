// Finds the node that makes a program fail.
#include <algorithm>
#include <cmath>
#include <span>

#include "failing.hpp"
#include "visit.hpp"

namespace xtape {

namespace {
/// The array with ones in place of NaN and infinities.
Array finite(const Array& array) {
  Array copy = array.clone();
  visit_floats(copy, [&](auto* elements) {
    using T = std::remove_pointer_t<decltype(elements)>;
    const auto is_bad = [](T element) { return !std::isfinite(static_cast<double>(element)); };
    std::replace_if(elements, elements + copy.count(), is_bad, static_cast<T>(1.0F));
  });
  return copy;
}

NotFinite not_finite_attribute(const Node& node) {
  NotFinite found;
  for (const auto& item : node.attributes.items())
    if (const auto* number = std::get_if<double>(&item.second)) {
      found.nan = found.nan || std::isnan(*number);
      found.infinite = found.infinite || std::isinf(*number);
    }
  return found;
}

/// What a play does if the values that some nodes make are replaced by finite ones.
struct Trial {
  std::vector<std::int32_t> makers;  ///< The nodes that made NaN or infinities.
  bool fails = false;                ///< Whether an output is not finite, or a kernel threw.
  FailingNode thrown;                ///< The node whose kernel threw.
};

/// Plays with finite values in place of those that the nodes for which `mends(node)` is true make.
template <class Mends>
Trial trial(const NodeByNode& plays, const Mends& mends) {
  Trial result;
  std::int32_t reached = -1;
  NodeByNode::Values before;
  const Program& program = plays.program();
  std::vector<NotFinite> found(program.tape.size());  // per node: in its outputs
  const auto visit = [&](std::int32_t index, const std::vector<Array>&, std::vector<Array>& outputs) {
    reached = index;
    const Node& node = program.node(index);
    NotFinite given = not_finite_attribute(node), now;
    for (const ValueId id : node.inputs) {
      const NotFinite& operand = found[static_cast<std::size_t>(id.node)];
      given.nan = given.nan || operand.nan;
      given.infinite = given.infinite || operand.infinite;
    }
    for (const Array& output : outputs) {
      const NotFinite in = not_finite(output);
      now.nan = now.nan || in.nan;
      now.infinite = now.infinite || in.infinite;
    }
    const bool constant = node.op == &constant_op();
    const bool made = !constant && ((now.nan && !given.nan) || (now.infinite && !given.infinite && !given.nan));
    if (made) {
      result.makers.push_back(index);
      if (mends(index)) {
        for (Array& output : outputs) output = finite(output);
        now = given;
      }
    }
    found[static_cast<std::size_t>(index)] = now;
    return true;
  };
  try {
    const NodeByNode::Values values = plays.play(visit);
    for (const ValueId id : program.outputs) result.fails = result.fails || not_finite(values.at(key_of(id))).any();
  } catch (const Error& error) {
    result.fails = true;
    result.thrown = {reached + 1, error.what()};
  }
  return result;
}
}  // namespace

NotFinite not_finite(const Array& array) {
  NotFinite found;
  visit_floats(array, [&](const auto* elements) {
    for (std::int64_t i = 0; i < array.count() && !(found.nan && found.infinite); ++i) {
      const auto value = static_cast<double>(elements[i]);
      found.nan = found.nan || std::isnan(value);
      found.infinite = found.infinite || std::isinf(value);
    }
  });
  return found;
}

std::optional<FailingNode> failing_node(const NodeByNode& plays) {
  const Trial mended = trial(plays, [](std::int32_t) { return true; });
  if (mended.fails && mended.thrown.node >= 0) return mended.thrown;  // it throws whatever the makers make
  if (mended.makers.empty()) return std::nullopt;
  // With all of them mended, the list has only nodes that make NaN or infinities of finite values. Halving it finds the
  // first that fails the play alone.
  const std::set<std::int32_t> makers(mended.makers.begin(), mended.makers.end());
  const auto fails_with = [&](std::span<const std::int32_t> unmended) {
    return trial(plays,
                 [&](std::int32_t node) {
                   return makers.count(node) > 0 && std::find(unmended.begin(), unmended.end(), node) == unmended.end();
                 })
        .fails;
  };
  std::span<const std::int32_t> suspects = mended.makers;
  if (!fails_with(suspects)) return std::nullopt;
  while (suspects.size() > 1) {
    const std::size_t half = (suspects.size() + 1) / 2;
    if (fails_with(suspects.first(half)))
      suspects = suspects.first(half);
    else if (fails_with(suspects.subspan(half)))
      suspects = suspects.subspan(half);
    else
      break;  // it takes several: the first of them is named
  }
  return FailingNode{suspects[0], ""};
}

}  // namespace xtape
