// Least squares: the polynomial with coefficients x that is nearest to the sign function at n points of [-1, 1].
#include "gradbench.hpp"

namespace gradbench {

Functions llsq() {
  const auto error = [](Input& in, const Var& x) {
    const Var t = linspace(in.tape, -1, 1, in.number("n"));                                            // [n]
    const Var powers = cumprod(concat({ones(in.tape, {t.size(0), 1}),
                                       broadcast_to(expand_dims(t, 1), {t.size(0), x.size(0) - 1})}, 1));  // [n, m]
    return sum(square(sign(t) - matmul(powers, x))) / 2;
  };
  return {{"primal", [=](Input& in) { return error(in, in.array("x")); }},
          {"gradient", [=](Input& in) {
             const Var x = in.array("x");
             return grad(error(in, x), x);
           }}};
}

}  // namespace gradbench
