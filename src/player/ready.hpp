/// Steps that are ready to run: kernels with their pointers.
#pragma once

#include <vector>

#include "xtape/op.hpp"

namespace xtape {

/// Adds to an error thrown while playing the op and the source location of the recorded call, unless it has them
/// already.
void name_call(Error& error, const Site& site);

struct ReadyStep {
  Kernel kernel;
  std::vector<const void*> in;
  std::vector<void*> out;
  void* scratch = nullptr;

  void run(std::uint64_t step) const { kernel.run({in.data(), out.data(), scratch, step}); }
};

}  // namespace xtape
