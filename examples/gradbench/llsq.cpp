// Least squares: the error of the polynomial with coefficients x against the sign function at n points of [-1, 1].
#include "gradbench.hpp"

namespace gradbench {

namespace {
/// Returns the powers 0 to count - 1 of t [n], as [count, n].
Var powers(const Var& t, std::int64_t count) {
  Var found = expand_dims(ones_like(t), 0);
  for (Var power = t; found.size(0) < count; power = square(power)) found = concat({found, found * power});
  return found.at(Slice(0, count));
}
}  // namespace

Functions llsq() {
  // t^(16 a + b) = t^(16 a) t^b. The polynomial is therefore a sum over a of t^(16 a) times a polynomial of degree 15.
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
