/// The kernels of a plan. Equal calls share a kernel.
#pragma once

#include <memory>
#include <unordered_map>

#include "xtape/op/lowering.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

// The cost of a plan's step, estimated from shapes.

struct Cost {
  double flops = 0;  ///< Only for products: two operations per term, a multiplication and an addition.
  double bytes = 0;  ///< Bytes read and written. Every element of an operand or result counts once.

  Cost& operator+=(const Cost& other) {
    flops += other.flops;
    bytes += other.bytes;
    return *this;
  }
};

/// Predicts the time of a step on a current processor by the roofline model, in order to compare plans. The constants
/// are fixed, because plans must not depend on measurements.
double predicted_seconds(const Cost& cost);

/// Returns the cost of a kernel on these operands. For a scan, BodyKernels::stepped computes the cost from the body
/// instead.
Cost cost_of(const KernelCall& call);
/// Returns the cost of a copy from the layout `from` to an array of `type`.
Cost cost_of_copy(const ValueType& type, const Layout& from);

/// Adds the op and the source location of the recorded call to an error of a kernel, unless the error already has them.
void name_call(Error& error, const Site& site);
/// Creates the kernel of the call's op. Errors of this function and errors of the kernel name the call.
Kernel make_kernel(const KernelCall& call, const Site& site);

/// A kernel, and the cost of one run.
struct SharedKernel {
  std::shared_ptr<const Kernel> kernel;
  Cost cost;
};

/// A call that needs a kernel. The layouts of its operands have offset 0. The object is reused to save allocations.
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

/// Creates kernels once for equal calls, for example for the calls of twelve equal layers. The nodes of the calls must
/// outlive the table. All calls must have the same number of threads, precision, bits and seed.
class KernelTable {
 public:
  /// Returns the kernel of an equal call, or null if there is none.
  const SharedKernel* find(const PlacedCall& call) const;
  /// Stores the kernel for equal calls, unless it can serve only this call.
  void add(const KernelCall& call, const SharedKernel& kernel);

 private:
  std::unordered_multimap<std::uint64_t, std::pair<KernelCall, SharedKernel>> kernels_;  // by a hash of the call
};

}  // namespace xtape
