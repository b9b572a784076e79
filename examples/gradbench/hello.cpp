#include "gradbench.hpp"

namespace gradbench {

Functions hello() {
  return {{"square", [](Input& in) { return square(in.array(in.fields, "x")); }}, {"double", [](Input& in) {
                                                                                     const Var x =
                                                                                         in.array(in.fields, "x");
                                                                                     return grad(square(x), x);
                                                                                   }}};
}

}  // namespace gradbench
