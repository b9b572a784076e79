/// Steps that are ready to run: kernels with their pointers.
#pragma once

#include <memory>
#include <vector>

#include "player/run/packed_weights.hpp"
#include "xtape/op/op.hpp"

namespace xtape {

/// Adds the op and the source location of the recorded call to an error of a kernel, unless the error already has them.
void name_call(Error& error, const Site& site);
/// Creates the kernel of the call's op. Errors of this function and errors of the kernel name the call.
Kernel make_kernel(const KernelCall& call, const Site& site);

struct ReadyStep {
  const Kernel* kernel = nullptr;  ///< A kernel of the executable.
  const void* const* in = nullptr;  ///< The addresses of the inputs.
  void* const* out = nullptr;       ///< The addresses of the outputs.
  void* scratch = nullptr;
  /// The result of Kernel::prepare, or null if the kernel has no such function.
  std::shared_ptr<PackedWeight> packed = {};

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
