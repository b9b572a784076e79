#include <algorithm>

#include "player/plan/kernel_table.hpp"

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
  return elements(layout) * static_cast<double>(size_of(dtype));
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
  return {0, bytes(type.dtype, from) +
                 static_cast<double>(count_of(type.shape)) * static_cast<double>(size_of(type.dtype))};
}

}  // namespace xtape
