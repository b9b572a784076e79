// An ordinary differential equation from 0 to 2, solved by s steps of the Runge-Kutta method.
#include "gradbench.hpp"

namespace gradbench {

Functions ode() {
  // The state is [1, y]. The slope needs y shifted by one element, which is a view of the state.
  const auto solution = [](Input& in, const Var& x) {
    const Var one = ones(in.tape, {1});
    const auto slope = [&](const Var& y) { return x * concat({one, y}).at(Slice(0, -1)); };
    const double h = 2.0 / static_cast<double>(in.number("s"));
    const ScanFunction step = [&](const Vars&, const Vars& state) {
      const Var y = state[0].at(Slice(1)), k1 = x * state[0].at(Slice(0, -1));
      const Var k2 = slope(y + h / 2 * k1), k3 = slope(y + h / 2 * k2), k4 = slope(y + h * k3);
      return std::pair{Vars{}, Vars{concat({one, y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)})}};
    };
    ScanOptions options;
    options.axis = 0;
    const Vars steps = {zeros(in.tape, {in.number("s")})};
    return scan(step, steps, {concat({one, zeros_like(x)})}, options).states[0].at(Slice(1));
  };
  return {{"primal", [=](Input& in) { return solution(in, in.array("x")); }}, {"gradient", [=](Input& in) {
                                                                                 const Var x = in.array("x");
                                                                                 return grad(solution(in, x).at(-1), x);
                                                                               }}};
}

}  // namespace gradbench
