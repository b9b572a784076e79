// Groups of weights that one optimiser updates in different ways.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "xtape/optim.hpp"
#include "xtape/xtensor.hpp"

namespace optimizer_groups {

using namespace xtape;

namespace {
Array drawn(const Shape& shape, unsigned seed) {
  Array array(Dtype::float32, shape);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (std::int64_t i = 0; i < array.count(); ++i) array.as<float>()[i] = normal(random);
  return array;
}

/// The weights "a.weight", "a.bias", "b.weight", "b.bias"; or those of these that end so.
Store some(const std::string& end = "") {
  Store weights;
  unsigned seed = 0;
  for (const char* name : {"a.weight", "a.bias", "b.weight", "b.bias"}) {
    ++seed;
    const bool matrix = std::string(name).find("weight") != std::string::npos;
    if (std::string(name).ends_with(end)) weights.add(name, drawn(matrix ? Shape{300, 200} : Shape{200}, seed));
  }
  return weights;
}

std::vector<ArrayView> gradients_of(const Store& weights, unsigned seed) {
  std::vector<ArrayView> gradients;
  for (const Store::Entry& weight : weights)
    gradients.emplace_back(drawn(weight.value.shape(), seed + static_cast<unsigned>(weight.name[0]) * 7 +
                                                           static_cast<unsigned>(weight.name[2])));
  return gradients;
}

bool same(const Store& some, const Store& all) {
  bool equal = some.size() > 0;
  for (const Store::Entry& entry : some)
    equal = equal && std::memcmp(entry.value.data(), all.at(entry.name).data(), entry.value.bytes()) == 0;
  return equal;
}
}  // namespace

TEST_CASE("one group of all weights is an optimiser without groups, bit for bit") {
  for (const OptimizerOptions& options : std::vector<OptimizerOptions>{
           Sgd{}, Sgd{.momentum = 0.9, .nesterov = true, .weight_decay = 0.1},
           Adam{.weight_decay = 0.1, .decay_all = true}, AdamW{.beta1 = 0.8, .weight_decay = 0.2}}) {
    Store plain = some(), grouped = some();
    Optimizer one(plain, options, 2), other(grouped, {{"*", options}}, 1);
    for (unsigned step = 0; step < 4; ++step)
      CHECK(one.update(gradients_of(plain, step), 0.05, 0.5, 3) ==
            other.update(gradients_of(plain, step), 0.05, 0.5, 3));
    CHECK(same(plain, grouped));
    CHECK(one.state().names() == other.state().names());
    CHECK(same(one.state(), other.state()));
    CHECK(one.updates() == 4);
  }
}

TEST_CASE("each group is updated as by an optimiser of its own, with one global norm") {
  const Sgd of_biases{.rate = 0.5, .momentum = 0.9};
  const AdamW of_matrices{.beta2 = 0.99, .weight_decay = 0.1};
  for (const double clip : {0.0, 20.0}) {
    Store weights = some(), biases = some("bias"), matrices = some("weight");
    Optimizer all(weights, {{"*.bias", of_biases}, {"*", of_matrices}});
    Optimizer first(biases, of_biases), second(matrices, of_matrices);
    for (unsigned step = 0; step < 4; ++step) {
      const double norm = all.update(gradients_of(weights, step), 0.1, 1, clip);
      double squares = 0;
      for (const ArrayView& gradient : gradients_of(weights, step))
        for (const float value : gradient.tensor<float>()) squares += static_cast<double>(value) * value;
      CHECK(norm == doctest::Approx(std::sqrt(squares)).epsilon(1e-12));
      const double scale = clip == 0 ? 1 : clip / (norm + 1e-6);
      first.update(gradients_of(biases, step), 0.1, scale);
      second.update(gradients_of(matrices, step), 0.1, scale);
    }
    CHECK(same(biases, weights));
    CHECK(same(matrices, weights));
    CHECK(all.state().names() == std::vector<std::string>{"velocity.a.bias", "velocity.b.bias", "first.a.weight",
                                                          "first.b.weight", "second.a.weight", "second.b.weight",
                                                          "updates"});
  }
}

TEST_CASE("the first group that matches decides; frozen weights do not change and do not count") {
  Store weights = some();
  const Store before = some();
  const std::vector<OptimizerGroup> groups{
      {"a.weight", Frozen{}}, {"a.*", Sgd{.rate = 2}}, {"?.weight", Sgd{}}, {"*", Frozen{}}};
  Optimizer optimizer(weights, groups);
  CHECK(optimizer.state().names() == std::vector<std::string>{"updates"});
  const std::vector<ArrayView> gradients = gradients_of(weights, 3);
  const double norm = optimizer.update(gradients, 0.25);
  double squares = 0;
  for (const std::size_t i : {1, 2})
    for (const float value : gradients[i].tensor<float>()) squares += static_cast<double>(value) * value;
  CHECK(norm == doctest::Approx(std::sqrt(squares)).epsilon(1e-12));
  for (const std::size_t i : {0, 3})
    CHECK(std::memcmp(weights[i].value.data(), before[i].value.data(), weights[i].value.bytes()) == 0);
  for (const auto& [i, rate] : {std::pair(1, 0.5F), {2, 0.25F}})
    for (std::int64_t at = 0; at < 10; ++at)
      CHECK(weights[i].value.as<float>()[at] ==
            doctest::Approx(before[i].value.as<float>()[at] - rate * gradients[i].as<float>()[at]).epsilon(1e-6));
}

TEST_CASE("an update that would overflow in one group changes none") {
  Store weights = some();
  const Store before = some();
  Optimizer optimizer(weights, {{"*.bias", Adam{}}, {"*", Sgd{.rate = 1}}});
  std::vector<ArrayView> gradients = gradients_of(weights, 1);
  optimizer.update(gradients, 0);
  Array large(Dtype::float32, {200});
  large.as<float>()[7] = 1e25F;  // whose square is no float32
  gradients[3] = large;
  CHECK_THROWS_WITH_AS(optimizer.update(gradients, 0.1),
                       doctest::Contains("update 2 would make the second moment of 'b.bias' inf at [7], where it is "),
                       UpdateError);
  CHECK(same(weights, before));
  gradients[3] = ArrayView();
  gradients[2] = drawn({300, 200}, 5);
  CHECK(std::isfinite(optimizer.update(gradients, 0.1)));
  CHECK_FALSE(same(weights, before));
}

TEST_CASE("groups: errors name the weight or the pattern") {
  Store weights = some();
  CHECK_THROWS_WITH_AS(Optimizer(weights, {{"*.weight", AdamW{}}}),
                       "optimizer: no group matches weight 'a.bias': a last one of \"*\" matches all others", Error);
  CHECK_THROWS_WITH_AS(Optimizer(weights, {{"*.biases", Sgd{}}, {"*", AdamW{}}}),
                       "optimizer: no weight matches '*.biases'; did you mean '*.bias'?", Error);
  CHECK_THROWS_WITH_AS(Optimizer(weights, {{"*", Sgd{.rate = -1}}}),
                       doctest::Contains("the rate of a group must be at least 0"), Error);
  CHECK_THROWS_WITH_AS(Optimizer(weights, {{"a.*", AdamW{}}, {"*", Sgd{.momentum = 1}}}),
                       doctest::Contains("momentum must be at least 0 and below 1"), Error);
}

}  // namespace optimizer_groups
