// Least squares: the polynomial with coefficients x that is nearest to the sign function at n points of [-1, 1].
#include "gradbench.hpp"

namespace gradbench {

namespace {
/// t [n] to the powers 0 to count - 1, as [count, n].
Var powers(const Var& t, std::int64_t count) {
  Var found = expand_dims(ones_like(t), 0);
  for (Var power = t; found.size(0) < count; power = square(power)) found = concat({found, found * power});
  return found.at(Slice(0, count));
}
}  // namespace

Functions llsq() {
  // Power 16 a + b is a product, so that the polynomial is a sum over a of t^(16 a) times polynomials of degree 15.
  const auto error = [](Input& in, const Var& x) {
    const std::int64_t low = 16, high = (x.size(0) + low - 1) / low;
    const Var t = linspace(in.tape, -1, 1, in.number("n"));  // [n]
    const Var coefficients = reshape(pad(x, {0}, {high * low - x.size(0)}), {high, low});
    const Var parts = matmul(coefficients, powers(t, low));  // [high, n]
    const Var y = sum(parts * powers(square(square(square(square(t)))), high), 0);
    return sum(square(sign(t) - y)) / 2;
  };
  return {{"primal", [=](Input& in) { return error(in, in.array("x")); }}, {"gradient", [=](Input& in) {
                                                                              const Var x = in.array("x");
                                                                              return grad(error(in, x), x);
                                                                            }}};
}

}  // namespace gradbench
