// RNN, GRU and LSTM. The input is x [steps, rows, features]. The weights are W [directions, gates * size, features] and
// R [directions, gates * size, size]. The biases [directions, 2 * gates * size] have the part for W first.
#include <algorithm>
#include <cmath>
#include <limits>

#include "onnx/operators.hpp"
#include "xtape/ops.hpp"
#include "xtape/ops/activations.hpp"
#include "xtape/scan.hpp"

namespace xtape::onnx {

namespace {
using Activation = std::function<Var(const Var&)>;

/// The weights of one direction. They are transposed for the products.
struct Cells {
  std::int64_t gates = 0, size = 0;
  Var w, r, bias_w, bias_r;
  Vars peepholes = {};                                    ///< For the input, output and forget gates, [size] each.
  std::vector<Activation> activations = {};               ///< In the order of the attribute.
  double clip = std::numeric_limits<double>::infinity();  ///< The inputs of activations lie in [-clip, clip].
  bool linear_before_reset = false, input_forget = false;

  Var activated(std::size_t i, const Var& x) const {
    return activations[i](std::isinf(clip) ? x : xtape::clip(x, -clip, clip));
  }
};

/// Computes the next states from `x` and `states`. Here `x` is the product of the input and W, plus the bias of W:
/// [rows, gates * size]. The first state is the output.
using CellFunction = Vars (*)(const Cells& cells, const Var& x, const Vars& states);

Var gate(const Cells& cells, const Var& x, std::int64_t i) {
  return slice(x, {0, i * cells.size}, {open_end, (i + 1) * cells.size});
}

Vars step_of_rnn(const Cells& cells, const Var& x, const Vars& states) {
  return {cells.activated(0, x + matmul(states[0], cells.r) + cells.bias_r)};
}

/// The order of gates is update, reset, new.
Vars step_of_gru(const Cells& cells, const Var& x, const Vars& states) {
  const Var& h = states[0];
  const std::int64_t two = 2 * cells.size;
  const Var gates =
      cells.activated(0, slice(x, {0, 0}, {open_end, two}) + matmul(h, slice(cells.r, {0, 0}, {open_end, two})) +
                             slice(cells.bias_r, {0}, {two}));
  const Var z = gate(cells, gates, 0), reset = gate(cells, gates, 1);
  const Var r_new = gate(cells, cells.r, 2), bias_new = slice(cells.bias_r, {two}, {open_end});
  const Var from_h =
      cells.linear_before_reset ? reset * (matmul(h, r_new) + bias_new) : matmul(reset * h, r_new) + bias_new;
  const Var fresh = cells.activated(1, gate(cells, x, 2) + from_h);
  return {fresh + z * (h - fresh)};
}

/// The order of gates is input, output, forget, cell.
Vars step_of_lstm(const Cells& cells, const Var& x, const Vars& states) {
  const Var &h = states[0], &c = states[1];
  const Var gates = x + matmul(h, cells.r) + cells.bias_r;
  const auto peeped = [&](std::int64_t i, const Var& cell) {
    const Var own = gate(cells, gates, i);
    return cells.peepholes.empty() ? own : own + cells.peepholes[static_cast<std::size_t>(i)] * cell;
  };
  const Var input = cells.activated(0, peeped(0, c));
  const Var forget = cells.input_forget ? 1.0 - input : cells.activated(0, peeped(2, c));
  const Var next = forget * c + input * cells.activated(1, gate(cells, gates, 3));
  return {cells.activated(0, peeped(1, next)) * cells.activations[2](next), next};
}

/// Returns slice i of the first axis with this shape. For an empty var, returns zeros of the dtype of x.
Var of_direction(const Var& all, std::int64_t i, const Shape& shape, const Var& x) {
  return all.empty() ? zeros(x.tape(), shape, x.dtype()) : reshape(slice(all, {i}, {i + 1}), shape);
}

/// An activation with its default factors, if it has any.
struct KnownActivation {
  const char* name;
  std::optional<double> alpha, beta;
  Var (*function)(const Var& x, double alpha, double beta);
};
const KnownActivation known_activations[] = {
    {"Affine", 1, 0, [](const Var& x, double alpha, double beta) { return alpha * x + beta; }},
    {"Elu", 1, {}, [](const Var& x, double alpha, double) { return elu(x, alpha); }},
    {"HardSigmoid", 0.2, 0.5, [](const Var& x, double alpha, double beta) { return clip(alpha * x + beta, 0, 1); }},
    {"LeakyRelu", 0.01, {}, [](const Var& x, double alpha, double) { return leaky_relu(x, alpha); }},
    {"Relu", {}, {}, [](const Var& x, double, double) { return relu(x); }},
    {"ScaledTanh", 1, 1, [](const Var& x, double alpha, double beta) { return alpha * tanh(beta * x); }},
    {"Sigmoid", {}, {}, [](const Var& x, double, double) { return sigmoid(x); }},
    {"Softplus", {}, {}, [](const Var& x, double, double) { return softplus(x); }},
    {"Softsign", {}, {}, [](const Var& x, double, double) { return softsign(x); }},
    {"Tanh", {}, {}, [](const Var& x, double, double) { return tanh(x); }},
    {"ThresholdedRelu", 1, {}, [](const Var& x, double alpha, double) { return threshold(x, alpha, 0); }},
};

/// Returns the activations of all directions. Each of them that has factors takes the next factors of the attributes.
std::vector<Activation> activations_of(NodeCall& node, const std::vector<std::string>& usual, std::size_t directions) {
  std::vector<std::string> names = node.texts("activations");
  if (names.empty())
    for (std::size_t i = 0; i < directions; ++i) names.insert(names.end(), usual.begin(), usual.end());
  if (names.size() < usual.size() * directions)
    node.fail("there must be " + std::to_string(usual.size()) + " activations for each direction");
  names.resize(usual.size() * directions);  // the default of the attribute is a list for two directions
  const std::vector<double> alphas = node.reals("activation_alpha"), betas = node.reals("activation_beta");
  std::size_t next_alpha = 0, next_beta = 0;
  const auto taken = [](const std::vector<double>& given, std::size_t& next, const std::optional<double>& otherwise) {
    if (!otherwise) return 0.0;
    return next < given.size() ? given[next++] : *otherwise;
  };
  std::vector<Activation> all;
  for (const std::string& name : names) {
    const auto* known = std::ranges::find(known_activations, name, &KnownActivation::name);
    if (known == std::end(known_activations)) node.fail("activation '" + name + "' is not known");
    const double alpha = taken(alphas, next_alpha, known->alpha), beta = taken(betas, next_beta, known->beta);
    all.push_back([known, alpha, beta](const Var& x) { return known->function(x, alpha, beta); });
  }
  return all;
}

template <std::int64_t gates, std::size_t states, CellFunction step>
Vars recurrent(NodeCall& node, const std::vector<std::string>& usual) {
  const bool rows_first = node.flag("layout", false);
  const Var x = rows_first ? transpose(node.at(0), {1, 0, 2}) : node.at(0);
  const std::string direction = node.text("direction", "forward");
  const std::int64_t directions = direction == "bidirectional" ? 2 : 1;
  const std::vector<Activation> activations = activations_of(node, usual, static_cast<std::size_t>(directions));
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    node.fail("direction '" + direction + "' is not known");
  if (node.opset() < 7) node.ignore("output_sequence");
  const std::int64_t size = node.at(2).size(-1);
  if (node.integer("hidden_size", size) != size)
    node.fail("hidden_size is not the last size of R, " + std::to_string(size));
  for (const std::size_t i : {1, 2})
    if (node.at(i).size(0) != directions)
      node.fail("input " + std::to_string(i) + " has the shape " + to_string(node.at(i).shape()) + ", not " +
                std::to_string(directions) + " directions");
  const std::int64_t steps = x.size(0), rows = x.size(1), features = x.size(2), wide = gates * size;
  ScanOptions options;
  options.axis = 0;
  if (node.has(4)) options.valid = less(iota(node.tape(), {steps, rows}), node.at(4));

  Vars outputs;
  std::vector<Vars> last(states);
  for (std::int64_t i = 0; i < directions; ++i) {
    const Var biases = of_direction(node.optional(3), i, {2 * wide}, x);
    Cells cells{gates,
                size,
                transpose(of_direction(node.at(1), i, {wide, features}, x)),
                transpose(of_direction(node.at(2), i, {wide, size}, x)),
                slice(biases, {0}, {wide}),
                slice(biases, {wide}, {open_end})};
    const auto first = activations.begin() + i * std::ssize(usual);
    cells.activations.assign(first, first + std::ssize(usual));
    cells.clip = node.real("clip", cells.clip);
    if (!(cells.clip > 0)) node.fail("clip is " + std::to_string(cells.clip) + ", but must be above 0");
    if constexpr (gates == 3) cells.linear_before_reset = node.flag("linear_before_reset", false);
    if constexpr (gates == 4) cells.input_forget = node.flag("input_forget", false);
    if (gates == 4 && node.has(7)) cells.peepholes = split(of_direction(node.optional(7), i, {3 * size}, x), 3, 0);
    Vars initial;
    for (std::size_t k = 0; k < states; ++k) {
      Var given = node.optional(5 + k);
      if (!given.empty() && rows_first) given = transpose(given, {1, 0, 2});
      initial.push_back(of_direction(given, i, {rows, size}, x));
    }
    options.reverse = i == 1 || direction == "reverse";
    const ScanFunction cell = [&](const Vars& inputs, const Vars& before) -> std::pair<Vars, Vars> {
      Vars next = step(cells, inputs[0], before);
      return {{next[0]}, next};
    };
    const Scanned scanned = scan(cell, {matmul(x, cells.w) + cells.bias_w}, initial, options);
    outputs.push_back(scanned.outputs[0]);
    for (std::size_t k = 0; k < states; ++k) last[k].push_back(scanned.states[k]);
  }
  Vars results = {stack(outputs, 1)};
  if (rows_first) results[0] = transpose(results[0], {2, 0, 1, 3});
  for (const Vars& each : last) results.push_back(stack(each, rows_first ? 1 : 0));
  return results;
}
}  // namespace

const Operators& recurrent_operators() {
  static const Operators operators = {
      {"GRU",
       [](NodeCall& node) {
         return recurrent<3, 1, step_of_gru>(node, {"Sigmoid", "Tanh"});
       }},
      {"LSTM",
       [](NodeCall& node) {
         return recurrent<4, 2, step_of_lstm>(node, {"Sigmoid", "Tanh", "Tanh"});
       }},
      {"RNN", [](NodeCall& node) { return recurrent<1, 1, step_of_rnn>(node, {"Tanh"}); }},
  };
  return operators;
}

}  // namespace xtape::onnx
