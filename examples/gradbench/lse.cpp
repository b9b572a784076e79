// The logarithm of a sum of exponentials.
#include "gradbench.hpp"

namespace gradbench {

Functions lse() {
  return {{"primal", [](Input& in) { return logsumexp(in.array("x")); }}, {"gradient", [](Input& in) {
                                                                             const Var x = in.array("x");
                                                                             return grad(logsumexp(x), x);
                                                                           }}};
}

}  // namespace gradbench
