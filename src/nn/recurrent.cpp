// Recurrent layers. The input is projected for all steps at once, and a scan computes the rest.
#include "nn/layers.hpp"
#include "xtape/scan.hpp"

namespace xtape::nn {

namespace {
/// Computes the next states from the projected input of a step and the states. The first state is the output.
using NextStates = std::function<Vars(const Parameters& p, const Var& x, const Vars& states)>;

struct RecurrentKind {
  std::int64_t gates;
  std::size_t states;
  NextStates step;
};

Var recurrent_map(const Parameters& p, const Argument& h, std::int64_t gates, const RecurrentOptions& options) {
  return linear(p / "recurrent", h, gates * h.size(-1), options.recurrent_bias, init::orthogonal());
}

Recurrence one_direction(const Parameters& p, const Argument& x, std::int64_t units, const RecurrentKind& kind,
                         const RecurrentOptions& options) {
  return as_layer(p, x.caller(), [&] {
    if (x.rank() != 3) throw ShapeError("a recurrent layer takes [b, t, in], got " + to_string(x.type()));
    Vars init = options.init;
    for (std::size_t i = init.size(); i < kind.states; ++i)
      init.push_back(zeros(x.tape(), {x.size(0), units}, x.dtype()));
    ScanOptions along_time;
    along_time.reverse = options.reverse;
    along_time.valid = options.valid;
    const auto step = [&](const Vars& inputs, const Vars& states) {
      const Vars next = kind.step(p, inputs[0], states);
      return std::pair{Vars{next[0]}, next};
    };
    const Scanned run = scan(step, {linear(p / "input", x, kind.gates * units)}, init, along_time);
    return Recurrence{run.outputs[0], run.states};
  });
}

Recurrence layer(const Parameters& p, const Argument& x, std::int64_t units, const RecurrentKind& kind,
                 const RecurrentOptions& options) {
  const std::size_t states = options.bidirectional ? 2 * kind.states : kind.states;
  return at_place(x.caller(), [&] {
    if (units < 1) throw ShapeError("a recurrent layer needs at least one unit, got " + std::to_string(units));
    if (!options.init.empty() && options.init.size() != states)
      throw Error("a recurrent layer needs " + std::to_string(states) + " first states or none, got " +
                  std::to_string(options.init.size()));
    if (!options.bidirectional) return one_direction(p, x, units, kind, options);
    if (options.reverse) throw Error("a bidirectional layer has both directions: reverse must be false");
    RecurrentOptions forward = options, backward = options;
    backward.reverse = true;
    if (!options.init.empty()) {
      const auto middle = options.init.begin() + static_cast<std::ptrdiff_t>(kind.states);
      forward.init.assign(options.init.begin(), middle);
      backward.init.assign(middle, options.init.end());
    }
    Recurrence found = one_direction(p / "forward", x, units, kind, forward);
    const Recurrence other = one_direction(p / "backward", x, units, kind, backward);
    found.outputs = concat({found.outputs, other.outputs}, 2, x.caller());
    found.states.insert(found.states.end(), other.states.begin(), other.states.end());
    return found;
  });
}
}  // namespace

Recurrence rnn(const Parameters& p, const Argument& x, std::int64_t units, const RecurrentOptions& options) {
  const NextStates step = [&](const Parameters& cell, const Var& projected, const Vars& states) {
    return Vars{tanh(projected + recurrent_map(cell, {states[0], x.caller()}, 1, options))};
  };
  return layer(p, x, units, {1, 1, step}, options);
}

Recurrence lstm(const Parameters& p, const Argument& x, std::int64_t units, const RecurrentOptions& options) {
  const NextStates step = [&](const Parameters& cell, const Var& projected, const Vars& states) {
    const Vars gates = split(projected + recurrent_map(cell, {states[0], x.caller()}, 4, options), 4, 1);  // i, f, g, o
    const Var forget = options.forget_bias == 0 ? gates[1] : gates[1] + options.forget_bias;
    const Var c = sigmoid(forget) * states[1] + sigmoid(gates[0]) * tanh(gates[2]);
    return Vars{sigmoid(gates[3]) * tanh(c), c};
  };
  return layer(p, x, units, {4, 2, step}, options);
}

Recurrence gru(const Parameters& p, const Argument& x, std::int64_t units, const RecurrentOptions& options) {
  const NextStates step = [&](const Parameters& cell, const Var& projected, const Vars& states) {
    const Vars of_x = split(projected, 3, 1);  // r, z, n
    const Vars of_h = split(recurrent_map(cell, {states[0], x.caller()}, 3, options), 3, 1);
    const Var r = sigmoid(of_x[0] + of_h[0]), z = sigmoid(of_x[1] + of_h[1]);
    return Vars{z * states[0] + (1 - z) * tanh(of_x[2] + r * of_h[2])};
  };
  return layer(p, x, units, {3, 1, step}, options);
}

}  // namespace xtape::nn
