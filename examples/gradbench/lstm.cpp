// The loss of l layers of LSTMs on a text of c characters. The b elements of a layer are not connected to each other.
#include "gradbench.hpp"

namespace gradbench {

Functions lstm() {
  // The computation is a wavefront: each step applies layer i to character t - i, and so computes all layers at once.
  const auto loss = [](Input& in, const Var& main, const Var& extra) {
    const Var sequence = in.array("sequence");  // [c, b]
    const std::int64_t c = sequence.size(0), b = sequence.size(1), layers = main.size(0) / 2;
    const Var gates = reshape(main, {layers, 2, 4, b}), state = reshape(in.array("state"), {layers, 2, b});
    const auto gate = [&](const Var& of, int which) { return of * gates.at(all, 0, which) + gates.at(all, 1, which); };
    const ScanFunction step = [&](const Vars& now, const Vars& states) {
      const Var &hidden = states[0], &memory = states[1];  // [l, b]
      // each layer reads the output of the previous layer
      const Var x = concat({now[0].at(nullptr), hidden.at(Slice(0, -1))});
      const Var kept = memory * sigmoid(gate(x, 0)) + sigmoid(gate(hidden, 1)) * tanh(gate(hidden, 3));
      const Var shown = sigmoid(gate(x, 2)) * tanh(kept);
      return std::pair{Vars{shown.at(-1)}, Vars{where(now[1], shown, hidden), where(now[1], kept, memory)}};
    };
    const Var inputs = pad(sequence.at(Slice(0, -1)) * extra.at(0), {0, 0}, {layers - 1, 0});
    const std::int64_t steps = inputs.size(0);
    const Var reached = iota(in.tape, {steps, layers, 1}, 0) >= iota(in.tape, {steps, layers, 1}, 1);
    ScanOptions options;
    options.axis = 0;
    const Var shown = scan(step, {inputs, reached}, {state.at(all, 0), state.at(all, 1)}, options).outputs[0];
    const Var y = shown.at(Slice(layers - 1)) * extra.at(1) + extra.at(2);  // [c - 1, b]
    const Var scores = y - log(sum(exp(y), 1, true) + 2);
    return -sum(sequence.at(Slice(1)) * scores) / ((c - 1) * b);
  };
  return {{"objective", [=](Input& in) { return loss(in, in.array("main_params"), in.array("extra_params")); }},
          {"jacobian", [=](Input& in) {
             const Vars by = {in.array("main_params"), in.array("extra_params")};
             const Vars gradients = grad(loss(in, by[0], by[1]), by);
             return concat({reshape(gradients[0], {-1}), reshape(gradients[1], {-1})});
           }}};
}

}  // namespace gradbench
