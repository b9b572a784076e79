/// Steps that are ready to run: kernels with their pointers.
#pragma once

#include <memory>
#include <vector>

#include "plan/packed_weights.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

/// Adds to an error of a kernel the op and the source location of the recorded call, unless it has them
/// already.
void name_call(Error& error, const Site& site);
/// The kernel of the call's op. Errors name the call, as those of the kernel's runs do.
Kernel make_kernel(const KernelCall& call, const Site& site);

struct ReadyStep {
  const Kernel* kernel = nullptr;  ///< A kernel of the executable.
  const void* const* in = nullptr;  ///< The addresses of the inputs.
  void* const* out = nullptr;       ///< The addresses of the outputs.
  void* scratch = nullptr;
  std::shared_ptr<PackedWeight> packed = {};  ///< What Kernel::prepare makes; null if there is no such function.

  void run(std::uint64_t step) const {
    KernelArguments arguments{in, out, scratch, step};
    if (packed)
      arguments.prepared = packed->memory([&](void* memory) {
        kernel->prepare({in, out, scratch, step, memory});
      });
    kernel->run(arguments);
  }
};

}  // namespace xtape
