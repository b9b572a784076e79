/// The kernels of a plan: equal calls share one.
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>

#include "plan/cost.hpp"
#include "xtape/op/lowering.hpp"

namespace xtape {

/// A kernel, and what a run of it costs.
struct SharedKernel {
  std::shared_ptr<const Kernel> kernel;
  Cost cost;
};

/// Makes the kernels of twelve equal layers once. The attributes and bodies of the calls must outlive the table, and all
/// calls have one number of threads, one precision and one seed.
class KernelTable {
 public:
  /// The kernel of an equal call, or what `make` returns.
  SharedKernel of(const KernelCall& call, const std::function<SharedKernel()>& make);

 private:
  std::unordered_multimap<std::uint64_t, std::pair<KernelCall, SharedKernel>> kernels_;  // by a hash of the call
};

}  // namespace xtape
