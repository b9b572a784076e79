// Reductions over named axes: sum(x, 'b t d -> b d').
#include <algorithm>
#include <sstream>

#include "base/messages/wording.hpp"
#include "model/language/interpreter.hpp"

namespace xtape::model {

namespace {
const std::string rest = "...", arrow = "->";

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

/// Returns for each name on the left whether it is missing on the right. The right side has the other names in the same
/// order.
std::vector<bool> reduced(const std::vector<std::string>& left, const std::vector<std::string>& right) {
  std::vector<bool> gone;
  std::size_t next = 0;
  for (const std::string& name : left) {
    if (std::ranges::count(left, name) > 1) throw Error("'" + name + "' stands twice on the left");
    gone.push_back(next == right.size() || right[next] != name);
    if (!gone.back()) ++next;
  }
  if (next < right.size())
    throw Error("'" + right[next] +
                "' stands on the right, but not in this place of the left: a reduction keeps the order");
  return gone;
}
}  // namespace

bool names_axes(const Op& op, const std::string& text) {
  const auto is_axis = [](const AttributeSpec& each) {
    return each.name == "axis" && each.type == AttributeType::integers;
  };
  return text.find(arrow) != std::string::npos && std::ranges::any_of(op.attributes, is_axis) &&
         std::ranges::any_of(op.attributes, [](const auto& each) { return each.name == "keepdims"; });
}

Tuple reduction_axes(const std::string& pattern, const Var& x) {
  const std::size_t at = pattern.find(arrow);
  const std::vector<std::string> left = words_of(pattern.substr(0, at));
  const std::vector<std::string> right = words_of(pattern.substr(at + arrow.size()));
  const std::vector<bool> gone = reduced(left, right);
  const bool open = contains(left, rest);
  const std::size_t named = left.size() - (open ? 1 : 0), rank = x.rank();
  if (open ? rank < named : rank != named)
    throw Error("'" + xtape::joined(left, std::identity{}, " ") + "' names " + (open ? "at least " : "") +
                std::to_string(named) + (named == 1 ? " axis, not the " : " axes, not the ") + std::to_string(rank) +
                " of " + to_string(x.type()));
  Tuple axes;
  std::int64_t axis = 0;
  for (std::size_t i = 0; i < left.size(); ++i)
    for (std::size_t count = left[i] == rest ? rank - named : 1; count > 0; --count, ++axis)
      if (gone[i]) axes.emplace_back(axis);
  if (axes.empty()) throw Error("'" + pattern + "' reduces no axis");
  return axes;
}

}  // namespace xtape::model
