#include "player/plan/kernel_table.hpp"

#include <algorithm>

#include "base/arrays/order.hpp"
#include "tape/calls.hpp"
#include "tape/graph.hpp"
#include "tape/node_text.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

namespace {
/// Returns the number of elements in memory. Elements that a stride of 0 repeats count once.
double elements(const Layout& layout) {
  double count = 1;
  for (std::size_t axis = 0; axis < layout.shape.size(); ++axis)
    if (layout.strides[axis] != 0 || layout.shape[axis] == 0) count *= static_cast<double>(layout.shape[axis]);
  return count;
}

double bytes(Dtype dtype, const Layout& layout) {
  constexpr std::int64_t many = 1 << 16;  // whole blocks of any dtype
  return elements(layout) * static_cast<double>(bytes_of(dtype, many)) / many;
}
}  // namespace

double predicted_seconds(const Cost& cost) {
  constexpr double flops_per_second = 4e11, bytes_per_second = 2.5e10, seconds_per_step = 1e-6;
  return seconds_per_step + cost.flops / flops_per_second + cost.bytes / bytes_per_second;
}

Cost cost_of(const KernelCall& call) {
  Cost cost;
  for (std::size_t k = 0; k < call.out.size(); ++k) cost.bytes += bytes(call.outputs[k].dtype, call.out[k]);
  const double written = cost.bytes;
  for (std::size_t k = 0; k < call.in.size(); ++k) {
    const double held = bytes(call.dtype(k), call.in[k]);
    cost.bytes += k == 0 && call.op.lowering.cost.picks ? std::min(held, written) : held;
  }
  if (call.op.lowering.cost.flops) cost.flops = call.op.lowering.cost.flops(call);
  return cost;
}

Cost cost_of_copy(const ValueType& type, const Layout& from) {
  return {0, bytes(type.dtype, from) + bytes(type.dtype, Layout::dense(type.shape))};
}

namespace {
/// Returns whether the kernel depends on more than what equal calls have in common. Random numbers depend on the site,
/// and the zeros of a scan depend on its readers.
bool is_single(const Op& op, const Tape* body) {
  if (op.random || op.lowering.body.steps) return true;
  const auto size = static_cast<std::int32_t>(body == nullptr ? 0 : body->size());
  for (std::int32_t i = 0; i < size; ++i)
    if (const Node& node = node_of(*body, i); is_single(*node.op, node.body.get())) return true;
  return false;
}

/// Adds the shapes, because few calls differ only in their strides.
void mix_layouts(std::uint64_t& hash, const std::vector<Layout>& layouts) {
  for (const Layout& layout : layouts)
    for (const std::int64_t size : layout.shape) mix(hash, static_cast<std::uint64_t>(size));
}

std::uint64_t hash_of_call(const Op& op, const Attributes& attributes, const Tape* body, const std::vector<Layout>& in,
                           const std::vector<Layout>& out) {
  std::uint64_t hash = reinterpret_cast<std::uintptr_t>(&op);
  mix(hash, hash_of(attributes));
  mix_layouts(hash, in);
  mix_layouts(hash, out);
  mix(hash, reinterpret_cast<std::uintptr_t>(body));
  return hash;
}

bool equal_layouts(const std::vector<Layout>& a, const std::vector<Layout>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Layout& x, const Layout& y) {
    return x.shape == y.shape && x.strides == y.strides && x.offset == y.offset;
  });
}

bool equal_calls(const KernelCall& a, const PlacedCall& b) {
  const Node& node = *b.node;
  return &a.op == node.op && same_attributes(a.attributes, node.attributes) && a.inputs == b.inputs &&
         a.outputs == node.outputs && equal_layouts(a.in, b.in) && equal_layouts(a.out, b.out) && a.fixed == b.fixed &&
         a.body == node.body.get();
}
}  // namespace

void PlacedCall::begin(const Node& of) {
  node = &of;
  inputs.clear();
  in.clear();
  out.clear();
  fixed.clear();
}

void PlacedCall::add_input(const ValueType& type, const Layout& layout, bool is_fixed) {
  inputs.push_back(type);
  in.push_back(layout);
  in.back().offset = 0;
  fixed.push_back(is_fixed);
}

void PlacedCall::add_output(const Layout& layout) {
  out.push_back(layout);
  out.back().offset = 0;
}

KernelCall PlacedCall::kernel_call() const {
  KernelCall call(OpCall{{node->attributes}, *node->op, inputs, node->outputs, node->body.get(), node->site});
  call.in = in;
  call.out = out;
  call.fixed = fixed;
  return call;
}

const SharedKernel* KernelTable::find(const PlacedCall& call) const {
  const Node& node = *call.node;
  const auto [begin, end] =
      kernels_.equal_range(hash_of_call(*node.op, node.attributes, node.body.get(), call.in, call.out));
  const auto found = std::find_if(begin, end, [&](const auto& each) { return equal_calls(each.second.first, call); });
  return found == end ? nullptr : &found->second.second;
}

void KernelTable::add(const KernelCall& call, const SharedKernel& kernel) {
  if (is_single(call.op, call.body)) return;
  kernels_.emplace(hash_of_call(call.op, call.attributes, call.body, call.in, call.out), std::make_pair(call, kernel));
}

void name_call(Error& error, const Site& site) {
  if (site.op != nullptr) error.name_op(site.op->name);
  name_place(error, site);
}

Kernel make_kernel(const KernelCall& call, const Site& site) {
  try {
    return call.op.lowering.kernel(call);
  } catch (Error& error) {
    name_call(error, site);
    throw;
  }
}

}  // namespace xtape
