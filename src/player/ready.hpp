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
  std::vector<ReadyStep> followers;  ///< They run band by band behind it, in bands of multiples of `band_step`.
  std::int64_t band_step = 1;
  std::int64_t elements = 0;  ///< Of output 0.

  void run(std::uint64_t step, int threads) const;

 private:
  Frame frame(std::uint64_t step) const { return {in.data(), out.data(), scratch, step}; }
};

}  // namespace xtape
