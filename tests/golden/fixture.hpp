/// A model, the weights and results that another program gave for it, and comparing the two.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "source_root.hpp"
#include "xtape/optim.hpp"
#include "xtape/xtape.hpp"

namespace xtape::test {

inline Store golden(const std::string& file) {
  return load_arrays(source_root() + "/tests/golden/data/" + file);
}

/// The elements of any float array as doubles.
inline std::vector<double> numbers(const ArrayView& view) {
  std::vector<double> values(static_cast<std::size_t>(count_of(view.shape())));
  if (view.dtype() == Dtype::float64) {
    view.copy_to(values.data());
  } else {
    std::vector<float> narrow(values.size());
    view.copy_to(narrow.data());
    values.assign(narrow.begin(), narrow.end());
  }
  return values;
}

/// The sums of a gradient with cos(i) and sin(i) as weights.
inline std::vector<double> weighted_sums(const std::vector<double>& gradient) {
  std::vector<double> sums(2);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    sums[0] += gradient[i] * std::cos(static_cast<double>(i));
    sums[1] += gradient[i] * std::sin(static_cast<double>(i));
  }
  return sums;
}

/// Puts the fixture's arrays into the weights of their names; both have the same weights.
inline void put_weights(const Model& model, const Store& fixture) {
  for (const Store::Entry& entry : model.weights()) {
    CAPTURE(entry.name);
    Array weight(entry.value);
    const std::vector<double> values = numbers(fixture.at(entry.name));
    REQUIRE(weight.shape() == fixture.at(entry.name).shape());
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (weight.dtype() == Dtype::float64) {
        weight.as<double>()[i] = values[i];
      } else {
        weight.as<float>()[i] = static_cast<float>(values[i]);
      }
    }
  }
  for (const Store::Entry& entry : fixture)
    if (entry.name.rfind("grad.", 0) == 0) {
      CAPTURE(entry.name);
      CHECK(model.weights().find(entry.name.substr(5)) != nullptr);
    }
}

/// The loss of the fixture's batch, and its gradients for all weights. The inputs of the function have the names that
/// the fixture gives them.
struct Recorded {
  Tape tape{Mode::train};
  std::vector<Feed> feeds;
  Var loss;
  NamedVars weights;
  Vars gradients;

  Recorded(const Model& model, const Store& fixture, const NamedSizes& sizes) {
    const NamedVars inputs = model.inputs(tape, "loss", sizes);
    for (const auto& [name, var] : inputs) feeds.emplace_back(var, fixture.at(name));
    const NamedVars results = model.record(tape, "loss", inputs);
    loss = results[0].value / cast(results[1].value, model.dtype());
    weights = model.weights(tape);
    Vars vars;
    for (const auto& weight : weights) vars.push_back(weight.value);
    gradients = grad(loss, vars, {.materialize_grads = true});
  }
  Vars outputs() const {
    Vars all = gradients;
    all.push_back(loss);
    return all;
  }
};

/// The largest difference, as a share of 1 and the largest value expected: some gradients (those of the keys' biases)
/// are 0 but for rounding.
inline double worst(const std::vector<double>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  double difference = 0;
  double scale = 1;
  for (std::size_t i = 0; i < found.size(); ++i) {
    difference = std::isnan(found[i]) ? INFINITY : std::fmax(difference, std::fabs(found[i] - expected[i]));
    scale = std::fmax(scale, std::fabs(expected[i]));
  }
  return difference / scale;
}

/// Compares the loss of the fixture's batch and every gradient.
inline void check_gradients(const Model& model, const Store& fixture, const NamedSizes& sizes,
                            const PlayerOptions& options) {
  const Recorded recorded(model, fixture, sizes);
  Player player(recorded.tape, recorded.outputs(), options);
  player.play(recorded.feeds);
  CHECK(std::fabs(player.scalar(recorded.loss) - numbers(fixture.at("loss"))[0]) < 1e-13);
  for (std::size_t i = 0; i < recorded.weights.size(); ++i) {
    CAPTURE(recorded.weights[i].name);
    CHECK(worst(numbers(player.view(recorded.gradients[i])), numbers(fixture.at("grad." + recorded.weights[i].name))) <
          1e-13);
  }
}

/// Trains with Adam (1e-2, 0.9, 0.98, 1e-9) on the fixture's batch, and compares the losses.
inline void check_training(const Model& model, const Store& fixture, const NamedSizes& sizes, double tolerance) {
  const Recorded recorded(model, fixture, sizes);
  Player player(recorded.tape, recorded.outputs());
  OptimizerOptions options;
  options.kind = OptimizerOptions::Kind::adam;
  options.beta2 = 0.98;
  options.epsilon = 1e-9;
  Optimizer optimizer(model.weights(), options);
  const std::vector<double> losses = numbers(fixture.at("losses"));
  REQUIRE(losses.size() == 10);
  for (const double expected : losses) {
    player.play(recorded.feeds);
    CHECK(std::fabs(player.scalar(recorded.loss) - expected) < tolerance);
    std::vector<ArrayView> views;
    for (const Var& gradient : recorded.gradients) views.push_back(player.view(gradient));
    optimizer.update(views, 1e-2, 1, 0);
  }
}

inline PlayerOptions by_reference() {
  PlayerOptions options;
  options.passes = Passes::reference();
  return options;
}

}  // namespace xtape::test
