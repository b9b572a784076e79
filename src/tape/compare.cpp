#include <algorithm>
#include <bit>
#include <cstring>

#include "tape/node_text.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

namespace {
bool same_bits(const Array& a, const Array& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

bool same_attribute(const Attribute& a, const Attribute& b) {
  const auto *x = std::get_if<double>(&a), *y = std::get_if<double>(&b);
  return x != nullptr && y != nullptr ? std::bit_cast<std::uint64_t>(*x) == std::bit_cast<std::uint64_t>(*y)
                                      : a == b;  // a NaN equals itself
}

/// Describes the first attribute that differs. Returns "" if all attributes are equal.
std::string different_attribute(const Node& a, const Node& b) {
  for (const auto& [name, value] : a.attributes.items()) {
    const Attribute* other = b.attributes.find(name);
    if (other == nullptr) return "only the first has the attribute " + name;
    if (!same_attribute(value, *other)) return name + " is " + to_string(value) + " and " + to_string(*other);
  }
  for (const auto& item : b.attributes.items())
    if (a.attributes.find(item.first) == nullptr) return "only the second has the attribute " + item.first;
  return "";
}

/// Describes how two nodes with the same index differ. Returns "" if they are equal. Comparing the indices of their
/// inputs is enough if all earlier nodes are equal.
std::string difference(const Node& a, const Node& b) {
  if (a.op != b.op) return "the ops are " + a.op->name + " and " + b.op->name;
  if (a.name != b.name) return "the names are '" + a.name + "' and '" + b.name + "'";
  if (const std::string found = different_attribute(a, b); !found.empty()) return found;
  if (a.inputs != b.inputs) return "the operands are different nodes";
  if (a.outputs != b.outputs) return "the types of the outputs are different";
  if (a.op == &constant_op() && !same_bits(a.storage, b.storage)) return "the constants have different elements";
  if (a.op->random && a.site.key != b.site.key) return "they draw different random numbers";
  if (a.fused != b.fused) return "only one of them was recorded by a rule";
  if ((a.body == nullptr) != (b.body == nullptr)) return "only one of them has a body";
  if (a.body != nullptr)
    if (const std::string found = first_difference(*a.body, *b.body); !found.empty()) return "in the body:\n" + found;
  return "";
}

/// Returns whether both nodes are the same call, possibly with different operands.
bool is_like(const Node& a, const Node& b) {
  return a.op == b.op && a.name == b.name && a.site.scope->path == b.site.scope->path && a.outputs == b.outputs &&
         different_attribute(a, b).empty();
}

/// Returns how many nodes `longer` has, from `index` on, before a node that is like node `index` of `shorter`. Returns
/// 0 if there is no such node.
std::size_t inserted(const Tape& longer, const Tape& shorter, std::size_t index) {
  for (std::size_t i = index + 1; i < longer.size(); ++i)
    if (is_like(longer.node(i), shorter.node(index))) return i - index;
  return 0;
}

std::string line(const char* which, const Tape& tape, std::size_t index) {
  return std::string("  ") + which + ": " + (index < tape.size() ? line_of(tape, index) : "no more nodes") + "\n";
}
}  // namespace

bool same_attributes(const Attributes& a, const Attributes& b) {
  return std::equal(
      a.items().begin(), a.items().end(), b.items().begin(), b.items().end(),
      [](const auto& x, const auto& y) { return x.first == y.first && same_attribute(x.second, y.second); });
}

std::string first_difference(const Tape& a, const Tape& b) {
  const std::size_t common = std::min(a.size(), b.size());
  for (std::size_t i = 0; i < common; ++i) {
    std::string why = difference(a.node(i), b.node(i));
    if (why.empty()) continue;
    if (a.node(i).op != b.node(i).op) {
      const std::size_t more_in_a = inserted(a, b, i), more_in_b = inserted(b, a, i);
      if (more_in_a != 0 && (more_in_b == 0 || more_in_a <= more_in_b))
        why = "only the first has it, and " + std::to_string(more_in_a - 1) + " nodes after it";
      else if (more_in_b != 0)
        why = "only the second has it, and " + std::to_string(more_in_b - 1) + " nodes after it";
    }
    return line("first ", a, i) + line("second", b, i) + "  " + why;
  }
  if (a.size() != b.size()) {
    const bool first = a.size() > b.size();
    return line("first ", a, common) + line("second", b, common) + "  only the " + (first ? "first" : "second") +
           " has it, and " + std::to_string(std::max(a.size(), b.size()) - common - 1) + " nodes after it";
  }
  if (a.results() != b.results()) return "  the results are different values";
  if (a.mode() != b.mode()) return std::string("  the modes are ") + name_of(a.mode()) + " and " + name_of(b.mode());
  return "";
}

}  // namespace xtape
