#include "plan/kernel_table.hpp"

#include <algorithm>

#include "compare.hpp"
#include "graph.hpp"
#include "mix.hpp"
#include "xtape/op/op.hpp"
#include "xtape/op/terms.hpp"

namespace xtape {

namespace {
/// Whether the kernel depends on more than what equal calls have in common: random numbers depend on the site, and the
/// zeros of a scan on what reads them.
bool is_single(const Op& op, const Tape* body) {
  if (op.random || op.lowering.steps) return true;
  const auto size = static_cast<std::int32_t>(body == nullptr ? 0 : body->size());
  for (std::int32_t i = 0; i < size; ++i)
    if (const Node& node = node_of(*body, i); is_single(*node.op, node.body.get())) return true;
  return false;
}

void mix_layouts(std::uint64_t& hash, const std::vector<Layout>& layouts) {
  for (const Layout& layout : layouts) {
    for (const std::int64_t size : layout.shape) mix(hash, static_cast<std::uint64_t>(size));
    for (const std::int64_t stride : layout.strides) mix(hash, static_cast<std::uint64_t>(stride));
  }
}

std::uint64_t hash_of(const KernelCall& call) {
  std::uint64_t hash = reinterpret_cast<std::uintptr_t>(&call.op);
  mix(hash, hash_of(call.attributes));
  mix_layouts(hash, call.in);
  mix_layouts(hash, call.out);
  mix(hash, reinterpret_cast<std::uintptr_t>(call.body));
  return hash;
}

bool equal_layouts(const std::vector<Layout>& a, const std::vector<Layout>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Layout& x, const Layout& y) {
    return x.shape == y.shape && x.strides == y.strides && x.offset == y.offset;
  });
}

bool equal_calls(const KernelCall& a, const KernelCall& b) {
  return &a.op == &b.op && same_attributes(a.attributes, b.attributes) && a.inputs == b.inputs &&
         a.outputs == b.outputs && equal_layouts(a.in, b.in) && equal_layouts(a.out, b.out) && a.fixed == b.fixed &&
         a.body == b.body;
}
}  // namespace

SharedKernel KernelTable::of(const KernelCall& call, const std::function<SharedKernel()>& make) {
  if (is_single(call.op, call.body)) return make();
  const std::uint64_t hash = hash_of(call);
  const auto [begin, end] = kernels_.equal_range(hash);
  const auto found = std::find_if(begin, end, [&](const auto& each) { return equal_calls(each.second.first, call); });
  if (found != end) return found->second.second;
  return kernels_.emplace(hash, std::make_pair(call, make()))->second.second;
}

}  // namespace xtape
