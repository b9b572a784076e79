/// Steps with their pointers in place.
#pragma once

#include <vector>

#include "xtape/op.hpp"

namespace xtape {

/// Says of an error that arose while playing which of the user's calls it is of, if it does not say so already.
void name_call(Error& error, const Site& site);

struct ReadyStep {
  Kernel kernel;
  std::vector<const void*> in;
  std::vector<void*> out;
  void* scratch = nullptr;

  void run(std::uint64_t step) const { kernel.run({in.data(), out.data(), scratch, step}); }
};

}  // namespace xtape
