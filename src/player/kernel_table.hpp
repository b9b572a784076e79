/// The kernels of a plan: equal calls share one.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>

#include "cost.hpp"
#include "xtape/lowering.hpp"

namespace xtape {

/// A kernel, and what a run of it costs.
struct SharedKernel {
  std::shared_ptr<const Kernel> kernel;
  Cost cost;
};

/// Twelve equal layers need each kernel once. The attributes of the calls must outlive the table.
class KernelTable {
 public:
  /// The kernel of an equal call, or what `make` returns.
  SharedKernel of(const KernelCall& call, const std::function<SharedKernel()>& make);

 private:
  std::unordered_multimap<std::uint64_t, std::pair<KernelCall, SharedKernel>> kernels_;  // by a hash of the call
};

}  // namespace xtape
