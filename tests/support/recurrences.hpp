/// Recurrences for tests. They are recorded by `scan`, or by calling the cell at every step.
#pragma once

#include <vector>

#include "played.hpp"
#include "xtape/grad.hpp"
#include "xtape/ops.hpp"
#include "xtape/scan.hpp"

namespace xtape {

using Steps = Scanned (*)(const ScanFunction&, const Vars&, const Vars&, const ScanOptions&);

inline Scanned scanned(const ScanFunction& cell, const Vars& inputs, const Vars& init, const ScanOptions& options) {
  return scan(cell, inputs, init, options);
}

inline Var at_step(const Var& x, std::int64_t axis, std::int64_t step) {
  std::vector<std::int64_t> start(static_cast<std::size_t>(axis), 0), stop(static_cast<std::size_t>(axis), open_end);
  start.push_back(step);
  stop.push_back(step + 1);
  return squeeze(slice(x, start, stop), {axis});
}

/// The reference for a scan. It calls the cell at every step.
inline Scanned by_hand(const ScanFunction& cell, const Vars& inputs, const Vars& init, const ScanOptions& options) {
  const std::int64_t length = inputs[0].size(options.axis);
  Vars states = init;
  std::vector<Vars> columns;
  for (std::int64_t i = 0; i < length; ++i) {
    const std::int64_t place = options.reverse ? length - 1 - i : i;
    Vars slices;
    for (const Var& x : inputs) slices.push_back(at_step(x, options.axis, place));
    auto [outputs, next] = cell(slices, states);
    if (!options.valid.empty()) {
      const auto mask = [&](const Var& x) {
        Shape shape = at_step(options.valid, options.axis, place).shape();
        while (shape.size() < x.rank()) shape.push_back(1);
        return cast(reshape(at_step(options.valid, options.axis, place), shape), x.dtype());
      };
      for (Var& output : outputs) output = output * mask(output);
      for (std::size_t j = 0; j < next.size(); ++j) next[j] = next[j] * mask(next[j]) + states[j] * (1 - mask(next[j]));
    }
    columns.resize(outputs.size(), Vars(static_cast<std::size_t>(length)));
    for (std::size_t k = 0; k < outputs.size(); ++k) columns[k][static_cast<std::size_t>(place)] = outputs[k];
    states = next;
  }
  Scanned result;
  for (const Vars& column : columns) result.outputs.push_back(stack(column, options.axis));
  result.states = states;
  return result;
}

/// x [b, t, n], h [b, m], w [n, m], u [m, m], bias [m].
inline Vars simple(Steps steps, const Vars& v, const ScanOptions& options) {
  const ScanFunction cell = [&](const Vars& x, const Vars& h) {
    const Var next = tanh(matmul(x[0], v[2]) + matmul(h[0], v[3]) + v[4]);
    return std::make_pair(Vars{next}, Vars{next});
  };
  const Scanned result = steps(cell, {v[0]}, {v[1]}, options);
  return {result.outputs[0], result.states[0]};
}

inline std::vector<Doubles> simple_points(std::int64_t batch = 3, std::int64_t length = 5) {
  return {numbers({batch, length, 2}, 1), numbers({batch, 4}, 2), numbers({2, 4}, 3), numbers({4, 4}, 4),
          numbers({4}, 5)};
}

/// x [b, t, n], y [b, t, m]; h, c [b, m]; w [n, 4m], u [m, 4m], bias [4m]. The cell has two inputs, two states and two
/// outputs.
inline Vars long_short(Steps steps, const Vars& v, const ScanOptions& options) {
  const ScanFunction cell = [&](const Vars& x, const Vars& state) {
    const Vars gates = split(einsum("bn,ng->bg", x[0], v[4]) + einsum("bm,mg->bg", state[0], v[5]) + v[6], 4, 1);
    const Var c = sigmoid(gates[1]) * state[1] + sigmoid(gates[0]) * tanh(gates[2]) * x[1];
    const Var h = sigmoid(gates[3]) * tanh(c);
    return std::make_pair(Vars{h * x[1], sum(c, {-1})}, Vars{h, c});
  };
  const Scanned result = steps(cell, {v[0], v[1]}, {v[2], v[3]}, options);
  return {result.outputs[0], result.outputs[1], result.states[0], result.states[1]};
}

inline std::vector<Doubles> long_short_points(std::int64_t length = 6) {
  return {numbers({2, length, 3}, 1), numbers({2, length, 4}, 2), numbers({2, 4}, 3), numbers({2, 4}, 4),
          numbers({3, 16}, 5),        numbers({4, 16}, 6),        numbers({16}, 7)};
}

using Recurrence = Vars (*)(Steps, const Vars&, const ScanOptions&);

/// Returns the model's outputs, and the gradients of a weighted sum of them.
inline Vars with_gradients(Recurrence model, Steps steps, const Vars& v, const ScanOptions& options) {
  Vars results = model(steps, v, options);
  Var loss = sum(sin(results[0]));
  for (std::size_t i = 1; i < results.size(); ++i)
    loss = loss + sum(square(results[i])) * (0.5 + static_cast<double>(i));
  for (const Var& gradient : grad(loss, v, {.materialize_grads = true})) results.push_back(gradient);
  return results;
}

inline ScanOptions plain(const Var&) {
  return {};
}
inline ScanOptions backwards(const Var&) {
  ScanOptions options;
  options.reverse = true;
  return options;
}
/// Row i has x.size(1) - i valid steps.
inline ScanOptions padded(const Var& x) {
  ScanOptions options;
  const Shape shape{x.size(0), x.size(1)};
  options.valid = iota(x.tape(), shape, 1) < static_cast<int>(x.size(1)) - iota(x.tape(), shape, 0);
  return options;
}
inline ScanOptions padded_backwards(const Var& x) {
  ScanOptions options = padded(x);
  options.reverse = true;
  return options;
}

}  // namespace xtape
