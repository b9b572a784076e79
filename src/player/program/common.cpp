// Merges equal calls on equal inputs. A view that changes nothing is its input.
#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <string_view>

#include "base/arrays/order.hpp"
#include "player/program/passes.hpp"
#include "tape/node_text.hpp"

namespace xtape {

namespace {
constexpr std::size_t most_compared = 1024;  // limit in bytes for comparing constants that do not share memory

std::uint64_t hash_of_constant(const Array& array) {
  if (array.bytes() > most_compared) return reinterpret_cast<std::uintptr_t>(array.data());
  return std::hash<std::string_view>()({static_cast<const char*>(array.data()), array.bytes()});
}

/// Returns a hash of the call without its inputs. The hash covers the elements of constants, because otherwise
/// thousands of different literals would have one hash and be compared with each other.
std::uint64_t hash_of_node(const Node& node, std::int32_t region) {
  std::uint64_t hash = reinterpret_cast<std::uintptr_t>(node.op);
  mix(hash, static_cast<std::uint64_t>(region));
  mix(hash, hash_of(node.attributes));
  if (node.op->random) mix(hash, node.site.key);
  if (node.body) mix(hash, node.body->size());
  if (node.op == &constant_op()) mix(hash, hash_of_constant(node.storage));
  return hash;
}

/// Returns whether a node may equal another node.
bool may_repeat(const Node& node) {
  return !node.op->is_source() || node.op == &constant_op();
}

/// Returns whether two constants share memory, or are small and equal.
bool equal_constants(const Array& a, const Array& b) {
  if (a.data() == b.data()) return true;
  return a.bytes() <= most_compared && a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

/// Returns whether two calls compute the same results from the same inputs.
bool equal_calls(const Node& a, const Node& b) {
  if (a.op != b.op || a.outputs != b.outputs || !same_attributes(a.attributes, b.attributes)) return false;
  if (a.op->random && a.site.key != b.site.key) return false;
  if (a.body != b.body && (!a.body || !b.body || !first_difference(*a.body, *b.body).empty())) return false;
  return a.op != &constant_op() || equal_constants(a.storage, b.storage);
}

/// Returns whether a node is a view with the layout of its input, such as a reshape to the same shape.
bool changes_nothing(const Program& program, const Node& node) {
  if (!node.op->is_view() || node.outputs[0] != program.type(node.inputs[0])) return false;
  const Layout dense = Layout::dense(node.outputs[0].shape);
  const std::optional<Layout> seen = node.op->lowering.view.output(call_of(program, node), dense);
  return seen && seen->strides == dense.strides && seen->offset == 0;
}
}  // namespace

void common_pass(Program& program) {
  Rewriter rewriter(program);
  // A hash table of the nodes that are kept. `chains` contains the first node of each chain. `next` contains for each
  // node the next node of its chain.
  std::vector<std::int32_t> chains(std::bit_ceil(program.order.size() + 1), -1), next(program.tape.size());
  std::vector<std::uint64_t> hashes(program.tape.size());
  const auto region_of = [&](std::int32_t index) {
    return program.node(index).op == &constant_op() ? 0 : program.regions[index];
  };
  for (const std::int32_t index : program.order) {
    const Node& node = program.node(index);
    if (!may_repeat(node)) {
      rewriter.keep(index);
      continue;
    }
    if (changes_nothing(program, node)) {
      rewriter.replace({index, 0}, rewriter.var(node.inputs[0]));
      continue;
    }
    const std::int32_t region = region_of(index);
    const auto same = [&](std::int32_t other) {
      const Node& twin = program.node(other);
      return region == region_of(other) &&
             std::equal(node.inputs.begin(), node.inputs.end(), twin.inputs.begin(), twin.inputs.end(),
                        [&](ValueId own, ValueId kept) { return rewriter.now(own) == kept; }) &&
             equal_calls(node, twin);
    };
    std::uint64_t hash = hash_of_node(node, region);
    for (const ValueId& id : node.inputs) {
      const ValueId now = rewriter.now(id);
      mix(hash, (static_cast<std::uint64_t>(now.node) << 8) + static_cast<std::uint64_t>(now.output));
    }
    std::int32_t& chain = chains[(hash ^ (hash >> 32)) & (chains.size() - 1)];
    std::int32_t twin = chain;
    while (twin >= 0 && !(hashes[twin] == hash && same(twin))) twin = next[twin];
    if (twin >= 0) {
      for (std::int32_t k = 0; k < static_cast<std::int32_t>(node.outputs.size()); ++k)
        rewriter.replace({index, k}, program.var({twin, k}));
      continue;
    }
    hashes[index] = hash;
    next[index] = chain;
    chain = index;
    rewriter.keep(index);
  }
  rewriter.finish_without_pruning();
}

}  // namespace xtape
