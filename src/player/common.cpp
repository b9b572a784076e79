// Equal calls on equal inputs, made once.
#include <cstring>
#include <unordered_map>

#include "passes.hpp"

namespace xtape {

namespace {
void mix(std::uint64_t& hash, std::uint64_t value) { hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL + (hash >> 29); }

std::uint64_t hash_of(const Node& node, const std::vector<ValueId>& inputs, std::int32_t region) {
  std::uint64_t hash = reinterpret_cast<std::uintptr_t>(node.op);
  mix(hash, static_cast<std::uint64_t>(region));
  for (const ValueId& id : inputs) mix(hash, (static_cast<std::uint64_t>(id.node) << 8) + static_cast<std::uint64_t>(id.output));
  for (const auto& item : node.attributes.items()) mix(hash, std::hash<std::string>()(to_string(item.second)));
  return hash;
}

bool equal_constants(const Array& a, const Array& b) {
  if (a.data() == b.data()) return true;
  return a.bytes() <= 1024 && a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

/// Whether two calls on the same inputs give the same.
bool equal_calls(const Node& a, const Node& b) {
  if (a.op != b.op || a.outputs != b.outputs || !(a.attributes == b.attributes) || a.body || b.body) return false;
  if (a.op->random && a.site.key != b.site.key) return false;
  if (a.op == &constant_op()) return equal_constants(a.storage, b.storage);
  return !a.op->is_source();
}
}  // namespace

Program common_pass(const Program& program) {
  Rewriter rewriter(program);
  std::unordered_map<std::uint64_t, std::vector<std::int32_t>> seen;  // hash of the rewritten call -> nodes kept
  for (std::size_t i = 0; i < program.tape.size(); ++i) {
    const auto index = static_cast<std::int32_t>(i);
    const Node& node = program.node(index);
    const std::int32_t region = node.op == &constant_op() ? 0 : program.regions[i];
    std::vector<ValueId> inputs;
    for (const ValueId& id : node.inputs) inputs.push_back(rewriter.now(id).id());
    auto& candidates = seen[hash_of(node, inputs, region)];
    const auto same = [&](std::int32_t other) {
      if (!equal_calls(node, program.node(other))) return false;
      const bool same_region = region == program.regions[static_cast<std::size_t>(other)] || node.op == &constant_op();
      std::vector<ValueId> others;
      for (const ValueId& id : program.node(other).inputs) others.push_back(rewriter.now(id).id());
      return same_region && inputs == others;
    };
    std::int32_t twin = -1;
    for (std::int32_t other : candidates)
      if (same(other)) twin = other;
    if (twin < 0) {
      candidates.push_back(index);
      rewriter.keep(index);
      continue;
    }
    for (std::size_t k = 0; k < node.outputs.size(); ++k) {
      const auto output = static_cast<std::int32_t>(k);
      rewriter.replace({index, output}, rewriter.now({twin, output}));
    }
  }
  return rewriter.finish();
}

}  // namespace xtape
