/// The kernels of a plan: equal calls share one.
#pragma once

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

/// A call for which a kernel is looked for, with the layouts of its operands, whose offsets are 0. Kept for its memory.
struct PlacedCall {
  const Node* node = nullptr;
  std::vector<ValueType> inputs;
  std::vector<Layout> in, out;
  std::vector<bool> fixed;  ///< Per input, as KernelCall::fixed.

  void begin(const Node& of);
  void add_input(const ValueType& type, const Layout& layout, bool is_fixed);
  void add_output(const Layout& layout);
  KernelCall kernel_call() const;
};

/// Makes the kernels of twelve equal layers once. The nodes of the calls must outlive the table, and all calls have one
/// number of threads, one precision and one seed.
class KernelTable {
 public:
  /// The kernel of an equal call; null if there is none.
  const SharedKernel* find(const PlacedCall& call) const;
  /// Keeps the kernel for equal calls, unless it can serve this one only.
  void add(const KernelCall& call, const SharedKernel& kernel);

 private:
  std::unordered_multimap<std::uint64_t, std::pair<KernelCall, SharedKernel>> kernels_;  // by a hash of the call
};

}  // namespace xtape
