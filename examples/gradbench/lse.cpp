// The logarithm of a sum of exponentials.
#include "gradbench.hpp"

namespace gradbench {

Functions lse() {
  const auto of_block = [](const Vars& block) { return Vars{logsumexp(block[0], 0, true)}; };
  return {{"primal", [=](Input& in) { return logsumexp(in_blocks(of_block, {in.array("x")}, 1 << 14)[0]); }},
          {"gradient", [](Input& in) {
             const Var x = in.array("x");
             return grad(logsumexp(x), x);
           }}};
}

}  // namespace gradbench
