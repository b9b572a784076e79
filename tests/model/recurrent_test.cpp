// The layers of models/blocks/recurrent.json: in reverse, in pieces, and their gradients through many steps.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "definitions.hpp"
#include "source_root.hpp"
#include "xtape/gradcheck.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;
using test::same;
using Values = xt::xarray<double>;
using Lengths = xt::xtensor<std::int64_t, 1>;

namespace {
/// A layer of 3 inputs and 4 units, and one in reverse: from x, states and lengths to ys and the last states. The
/// LSTM's two stand side by side.
const std::string layers = R"json({
  "xtape": 2,
  "name": "layers",
  "use": ["blocks/recurrent.json"],
  "hyper": {"kind": "of_gru"},
  "blocks": {
    "of_rnn": {
      "hyper": {"reverse": false},
      "modules": {"cell": {"block": "rnn_cell", "in": 3, "units": 4}},
      "inputs": ["x", "states", "valid"],
      "result": "scan(cell, cell.input(x), init=states, valid=valid, reverse=reverse)"
    },
    "of_gru": {
      "hyper": {"reverse": false, "reset_after": true},
      "modules": {"cell": {"block": "gru_cell", "in": 3, "units": 4, "pass": ["reset_after"]}},
      "inputs": ["x", "states", "valid"],
      "result": "scan(cell, cell.input(x), init=states, valid=valid, reverse=reverse)"
    },
    "of_gru_reset_before": {
      "hyper": {"reverse": false},
      "modules": {"layer": {"block": "of_gru", "reset_after": false, "pass": ["reverse"]}},
      "inputs": ["x", "states", "valid"],
      "result": "layer(x, states, valid)"
    },
    "of_lstm": {
      "hyper": {"reverse": false},
      "modules": {"cell": {"block": "lstm_cell", "in": 3, "units": 4}},
      "inputs": ["x", "states", "valid"],
      "do": ["ys, h, c = scan(cell, cell.input(x), init=split(states, (4, 4), axis=1), valid=valid, reverse=reverse)"],
      "result": "ys, concat(h, c, axis=1)"
    }
  },
  "model": {
    "modules": {"forward": {"block": "kind"}, "backward": {"block": "kind", "reverse": true}},
    "functions": {
      "forward_layer": {
        "inputs": {"x": "float [b, t, 3]", "states": "float [b, n]", "lengths": "int [b]"},
        "do": ["ys, last = forward(x, states, iota(t) < lengths[:, none])"],
        "result": "ys, last"
      },
      "backward_layer": {
        "inputs": {"x": "float [b, t, 3]", "states": "float [b, n]", "lengths": "int [b]"},
        "do": ["ys, last = backward(x, states, iota(t) < lengths[:, none])"],
        "result": "ys, last"
      },
      "flipped": {
        "inputs": {"x": "float [b, t, 3]", "states": "float [b, n]", "lengths": "int [b]"},
        "do": ["ys, last = forward(flip(x, 1), states, flip(iota(t) < lengths[:, none], 1))"],
        "result": "flip(ys, 1), last"
      },
      "of_all": {
        "inputs": {"x": "float [b, t, 3]", "states": "float [b, n]"},
        "do": ["ys, last = forward(x, states, none)"],
        "result": "ys, last"
      }
    }
  }
})json";

const std::vector<std::string> kinds = {"of_rnn", "of_gru", "of_gru_reset_before", "of_lstm"};

/// A model of `kind`, whose layer in reverse has the weights of the other.
Model made(const std::string& kind) {
  ModelOptions options = test::in_float64();
  options.hyper = {{"kind", kind}};
  Model model = Model::parse(layers, options, source_root() + "/models/layers.json");
  for (const Store::Entry& entry : model.weights()) {
    Array weight(entry.value);
    const std::string back = "backward.";
    if (entry.name.rfind(back, 0) == 0) {
      const Array& from = model.weights().at("forward." + entry.name.substr(back.size()));
      std::copy(from.as<double>(), from.as<double>() + from.count(), weight.as<double>());
    } else if (weight.shape().size() == 1) {
      for (std::int64_t i = 0; i < weight.count(); ++i)
        weight.as<double>()[i] = std::sin(static_cast<double>(3 * i + std::ssize(entry.name)));
    }
  }
  return model;
}

Values sines(const std::vector<std::size_t>& shape, double scale) {
  Values values = Values::from_shape(shape);
  for (std::size_t i = 0; i < values.size(); ++i) values.flat(i) = std::sin(scale * static_cast<double>(i + 1));
  return values;
}

Values first_states(const std::string& kind) {
  return sines({2, kind == "of_lstm" ? 8UL : 4UL}, 2.1);
}

/// x [2, steps, 3].
std::vector<Values> play(const Model& model, const std::string& function, const Values& x, const Values& states,
                         const Lengths& lengths) {
  const auto size = [](const Values& values, std::size_t axis) {
    return static_cast<std::int64_t>(values.shape()[axis]);
  };
  return test::play(model, function, {{"b", 2}, {"t", size(x, 1)}, {"n", size(states, 1)}}, {x, states, lengths});
}

/// The steps from `begin` up to `end`.
Values steps(const Values& x, std::size_t begin, std::size_t end) {
  Values cut = Values::from_shape({x.shape()[0], end - begin, x.shape()[2]});
  for (std::size_t b = 0; b < cut.shape()[0]; ++b)
    for (std::size_t t = begin; t < end; ++t)
      for (std::size_t k = 0; k < cut.shape()[2]; ++k) cut(b, t - begin, k) = x(b, t, k);
  return cut;
}
}  // namespace

TEST_CASE("recurrent layers: in reverse is flipped, also where rows are padded") {
  for (const std::string& kind : kinds) {
    CAPTURE(kind);
    const Model model = made(kind);
    for (const Lengths& lengths : {Lengths{5, 5}, Lengths{2, 4}}) {
      const Values x = sines({2, 5, 3}, 0.7);
      const auto reversed = play(model, "backward_layer", x, first_states(kind), lengths);
      const auto flipped = play(model, "flipped", x, first_states(kind), lengths);
      CHECK(same(reversed[0], flipped[0]));
      CHECK(same(reversed[1], flipped[1]));
      CHECK_FALSE(same(reversed[1], play(model, "forward_layer", x, first_states(kind), lengths)[1]));
    }
  }
}

TEST_CASE("recurrent layers: step by step, each from the states of the one before, is the whole") {
  for (const std::string& kind : kinds) {
    CAPTURE(kind);
    const Model model = made(kind);
    const Values x = sines({2, 5, 3}, 0.7);
    const auto whole = play(model, "of_all", x, first_states(kind), {});
    Values states = first_states(kind);
    for (std::size_t t = 0; t < 5; ++t) {
      const auto one = play(model, "of_all", steps(x, t, t + 1), states, {});
      CHECK(same(one[0], steps(whole[0], t, t + 1)));
      states = one[1];
    }
    CHECK(same(states, whole[1]));
  }
}

TEST_CASE("recurrent layers: what pads a row is not read, and leaves its states and zeros behind") {
  for (const std::string& kind : kinds) {
    CAPTURE(kind);
    const Model model = made(kind);
    const Values x = sines({2, 5, 3}, 0.7);
    Values other = x;
    for (std::size_t t = 3; t < 5; ++t)
      for (std::size_t k = 0; k < 3; ++k) other(1, t, k) = 9;
    for (const char* function : {"forward_layer", "backward_layer"}) {
      const auto padded = play(model, function, x, first_states(kind), {5, 3});
      const auto changed = play(model, function, other, first_states(kind), {5, 3});
      const auto shorter = play(model, function, steps(x, 0, 3), first_states(kind), {3, 3});
      for (std::size_t i = 0; i < 2; ++i) CHECK(same(test::item(changed[i], 1), test::item(padded[i], 1)));
      CHECK(same(test::item(steps(padded[0], 0, 3), 1), test::item(shorter[0], 1)));
      CHECK(same(test::item(padded[1], 1), test::item(shorter[1], 1)));
      for (const double y : test::item(steps(padded[0], 3, 5), 1)) CHECK(y == 0);
    }
  }
}

TEST_CASE("recurrent layers: gradients through twenty steps are those of finite differences") {
  const Lengths lengths{20, 13};
  for (const std::string& kind : kinds) {
    CAPTURE(kind);
    const Model model = made(kind);
    const auto layer = [&](const Vars& v) {
      Tape tape = v[0].tape();
      const NamedVars inputs = {{"x", v[0]}, {"states", v[1]}, {"lengths", tape.constant(lengths)}};
      Vars results;
      for (const auto& result : model.record(tape, "backward_layer", inputs)) results.push_back(result.value);
      return results;
    };
    const GradcheckReport report = gradcheck(layer, {sines({2, 20, 3}, 0.7), first_states(kind)});
    CHECK_MESSAGE(report.passed, report.message);
  }
}
