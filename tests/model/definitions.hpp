/// Small definitions for tests, and playing them.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "error_of.hpp"
#include "xtape/xtape.hpp"

namespace xtape::test {

/// A definition with one function `f` of x (float [b, t]) that runs `lines` and gives `result`. Hyper-parameters: n =
/// 4, rate = 0.5, wide = true, form = 'tanh'.
inline std::string one_function(const std::vector<std::string>& lines, const std::string& result) {
  std::string list;
  for (const std::string& line : lines) list += (list.empty() ? "\"" : ",\n             \"") + line + "\"";
  return R"({
  "xtape": 2,
  "name": "small",
  "hyper": {"n": 4, "rate": 0.5, "wide": true, "form": "'tanh'"},
  "model": {
    "functions": {
      "f": {
        "inputs": {"x": "float [b, t]"},
        "do": [)" +
         list + R"(],
        "result": ")" +
         result + R"("
      }
    }
  }
}
)";
}

/// Records the mean of what the function `loss` sums, and its gradients by all weights in their order.
inline Vars mean_loss_and_gradients(const Model& model, Tape& tape, const NamedVars& inputs) {
  const NamedVars results = model.record(tape, "loss", inputs);
  const Var loss = results[0].value / cast(results[1].value, results[0].value.dtype());
  Vars weights;
  for (const auto& each : model.weights(tape)) weights.push_back(each.value);
  Vars outputs = grad(loss, weights, {.materialize_grads = true});
  outputs.insert(outputs.begin(), loss);
  return outputs;
}

inline ModelOptions in_float64() {
  ModelOptions options;
  options.dtype = Dtype::float64;
  return options;
}

/// The results of `function` on `feeds`, by the reference path.
inline std::vector<xt::xarray<double>> play(const Model& model, const std::string& function, const NamedSizes& sizes,
                                            const std::vector<ArrayView>& feeds, Mode mode = Mode::eval) {
  Tape tape(mode);
  const NamedVars inputs = model.inputs(tape, function, sizes);
  const NamedVars results = model.record(tape, function, inputs);
  std::vector<Feed> fed;
  for (std::size_t i = 0; i < inputs.size(); ++i) fed.emplace_back(inputs[i].value, feeds.at(i));
  Vars outputs;
  for (const auto& each : results) outputs.push_back(each.value);
  PlayerOptions options;
  options.passes = Passes::reference();
  Player player(tape, outputs, options);
  player.play(fed);
  std::vector<xt::xarray<double>> values;
  for (const Var& output : outputs) {
    if (output.dtype() == Dtype::float64)
      values.push_back(player.value<double>(output));
    else if (output.dtype() == Dtype::boolean)
      values.push_back(xt::cast<double>(player.value<bool>(output)));
    else
      values.push_back(xt::cast<double>(player.value<std::int64_t>(output)));
  }
  return values;
}

/// f(x) of a definition with one function.
inline xt::xarray<double> f(const std::vector<std::string>& lines, const std::string& result,
                            const xt::xarray<double>& x) {
  const Model model = Model::parse(one_function(lines, result), in_float64());
  const auto size = [&](std::size_t axis) { return static_cast<std::int64_t>(x.shape()[axis]); };
  return play(model, "f", {{"b", size(0)}, {"t", size(1)}}, {ArrayView(x)})[0];
}

/// a[i] along the first axis.
inline xt::xarray<double> item(const xt::xarray<double>& a, std::size_t i) {
  xt::xarray<double> part = xt::xarray<double>::from_shape({a.shape().begin() + 1, a.shape().end()});
  for (std::size_t k = 0; k < part.size(); ++k) part.flat(k) = a.flat(i * part.size() + k);
  return part;
}

/// Whether two arrays have one shape and, to 1e-9, the same elements.
inline bool same(const xt::xarray<double>& a, const xt::xarray<double>& b) {
  if (a.shape() != b.shape()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(std::abs(a.flat(i) - b.flat(i)) <= 1e-9 * (1 + std::abs(b.flat(i))))) return false;
  return true;
}

}  // namespace xtape::test
