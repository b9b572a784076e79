// Methods beside SGD and Adam: 100 updates of each against its reference, and what all methods must keep.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>

#include "source_root.hpp"
#include "xtape/optim.hpp"
#include "xtape/xtensor.hpp"

namespace long_updates {

using namespace xtape;
using Json = nlohmann::json;
using Kind = OptimizerOptions::Kind;

namespace {
Json golden() {
  std::ifstream file(source_root() + "/tests/golden/data/optimizers_long.json");
  REQUIRE(file.good());
  return Json::parse(file);
}

OptimizerOptions options_of(const Json& json) {
  const std::map<std::string, Kind> kinds = {{"adam", Kind::adam},           {"adamw", Kind::adamw},
                                             {"lion", Kind::lion},           {"rmsprop", Kind::rmsprop},
                                             {"adafactor", Kind::adafactor}, {"muon", Kind::muon}};
  OptimizerOptions options;
  options.kind = kinds.at(json.at("kind").get<std::string>());
  const auto read = [&](const char* key, auto& to) { to = json.value(key, to); };
  read("momentum", options.momentum);
  read("nesterov", options.nesterov);
  read("beta1", options.beta1);
  read("beta2", options.beta2);
  read("epsilon", options.epsilon);
  read("weight_decay", options.weight_decay);
  read("alpha", options.alpha);
  read("centered", options.centered);
  read("eight_bits", options.eight_bits);
  read("beta2_decay", options.beta2_decay);
  read("least_scale", options.least_scale);
  read("most_change", options.most_change);
  read("iterations", options.iterations);
  read("match_adamw", options.match_adamw);
  return options;
}

/// The start and the gradients of tests/golden/scripts/optimizers_long.py.
template <class T>
Store start_of(const Json& shapes, const std::vector<std::string>& names) {
  Store weights;
  for (const std::string& name : names) {
    const auto sizes = shapes.at(name).get<std::vector<std::int64_t>>();
    const auto k = static_cast<double>(weights.size());
    Array array = weights.add(name, Array(dtype_of<T>(), Shape(sizes.begin(), sizes.end())));
    for (std::int64_t i = 0; i < array.count(); ++i)
      array.as<T>()[i] = static_cast<T>(std::sin(1.1 * static_cast<double>(i) + k));
  }
  return weights;
}
template <class T>
std::vector<ArrayView> gradients_of(const Store& weights, std::vector<Array>& memory, int update, double factor = 1) {
  std::vector<ArrayView> views;
  memory.clear();
  for (const Store::Entry& weight : weights) {
    Array& gradient = memory.emplace_back(weight.value.dtype(), weight.value.shape());
    for (std::int64_t i = 0; i < gradient.count(); ++i)
      gradient.as<T>()[i] = static_cast<T>(
          factor * ((0.5 + 0.2 * static_cast<double>(i % 5)) * static_cast<double>(weight.value.as<T>()[i]) +
                    0.3 * std::cos(0.7 * static_cast<double>(i) + 1.3 * update)));
  }
  for (const Array& gradient : memory) views.emplace_back(gradient);
  return views;
}

Store copy_of(const Store& store) {
  Store copy;
  for (const Store::Entry& entry : store) copy.add(entry.name, entry.value.clone());
  return copy;
}
bool same(const Store& a, const Store& b) {
  bool equal = a.size() == b.size();
  for (const Store::Entry& entry : a)
    equal = equal && std::memcmp(entry.value.data(), b.at(entry.name).data(), entry.value.bytes()) == 0;
  return equal;
}

/// Every method, with weights that have all its kinds of moments.
const std::vector<OptimizerOptions>& all_methods() {
  static const std::vector<OptimizerOptions> all = {
      Lion{.weight_decay = 0.1},
      RmsProp{.momentum = 0.9, .centered = true, .weight_decay = 0.1},
      RmsProp{},
      Adafactor{.weight_decay = 0.1},
      Muon{.weight_decay = 0.1},
      Adam{.eight_bits = true},
      AdamW{.weight_decay = 0.1, .eight_bits = true},
  };
  return all;
}
/// Weights of several pieces, of every rank.
template <class T>
Store large_weights() {
  return start_of<T>(Json::parse(R"({"wide": [110, 311], "vector": [33001], "tall": [301, 150], "cube": [3, 40, 7],
                                     "one": []})"),
                     {"wide", "vector", "tall", "cube", "one"});
}
}  // namespace

TEST_CASE("100 updates of each method equal those of its reference") {
  const Json json = golden();
  REQUIRE(json.at("cases").size() == 10);
  for (const Json& each : json.at("cases")) {
    CAPTURE(each.at("options").dump());
    const OptimizerOptions options = options_of(each.at("options"));
    const Store weights = options.eight_bits
                              ? start_of<double>(json.at("large"), {"large", "vector"})
                              : start_of<double>(json.at("shapes"), {"wide", "tall", "vector", "images"});
    Optimizer optimizer(weights, options, 2);
    std::vector<Array> memory;
    std::size_t compared = 0;
    const double tolerance = options.eight_bits ? 1e-7 : 1e-9;  // values of codes are float32
    for (int update = 0; update < 100; ++update) {
      optimizer.update(gradients_of<double>(weights, memory, update), json.at("rate").get<double>());
      if (json.at("after").at(compared) != update + 1) continue;
      const Json& expected = each.at("weights").at(compared++);
      for (std::size_t w = 0; w < weights.size(); ++w) {
        const Array& got = weights[w].value;
        const std::int64_t stride = got.count() > 1000 ? 37 : 1;
        for (std::int64_t i = 0; i * stride < got.count(); ++i) {
          const auto value = expected[w][static_cast<std::size_t>(i)].get<double>();
          REQUIRE(std::abs(got.as<double>()[i * stride] - value) <= tolerance * (1 + std::abs(value)));
        }
      }
    }
    CHECK(compared == 5);
  }
}

TEST_CASE("in float32, 100 updates stay near those in float64") {
  for (const OptimizerOptions& options : all_methods()) {
    if (options.kind == Kind::lion || options.eight_bits) continue;  // signs and codes jump
    CAPTURE(static_cast<int>(options.kind));
    const Json shapes = golden().at("shapes");
    const std::vector<std::string> names = {"wide", "tall", "vector", "images"};
    const Store wide = start_of<double>(shapes, names), narrow = start_of<float>(shapes, names);
    Optimizer of_wide(wide, options), of_narrow(narrow, options);
    std::vector<Array> memory;
    for (int update = 0; update < 100; ++update) {
      of_wide.update(gradients_of<double>(wide, memory, update), 0.01);
      of_narrow.update(gradients_of<float>(narrow, memory, update), 0.01);
    }
    for (std::size_t w = 0; w < wide.size(); ++w)
      for (std::int64_t i = 0; i < wide[w].value.count(); ++i)
        REQUIRE(std::abs(wide[w].value.as<double>()[i] - static_cast<double>(narrow[w].value.as<float>()[i])) < 2e-3);
  }
}

TEST_CASE("every method has the same bits for any number of threads, and after its state is copied") {
  for (const OptimizerOptions& options : all_methods()) {
    CAPTURE(static_cast<int>(options.kind));
    Store first;
    for (const int threads : {1, 2, 3}) {
      const Store weights = large_weights<float>();
      Optimizer optimizer(weights, options, threads);
      std::vector<Array> memory;
      for (int update = 0; update < 3; ++update)
        optimizer.update(gradients_of<float>(weights, memory, update), 0.01, 0.5, 20);
      const Store halfway = copy_of(weights), state = copy_of(optimizer.state());
      for (int update = 3; update < 5; ++update) optimizer.update(gradients_of<float>(weights, memory, update), 0.01);
      if (threads == 1) first = copy_of(weights);
      CHECK(same(first, weights));

      const Store again = copy_of(halfway);
      Optimizer resumed(again, options, threads);
      for (const Store::Entry& entry : resumed.state()) Array(entry.value).assign(state.at(entry.name));
      for (int update = 3; update < 5; ++update) resumed.update(gradients_of<float>(again, memory, update), 0.01);
      CHECK(same(again, weights));
      CHECK(same(resumed.state(), optimizer.state()));
    }
  }
}

TEST_CASE("methods keep the arrays that their state says") {
  const auto state_of = [](const OptimizerOptions& options) {
    Store weights;
    weights.add("matrix", Array(Dtype::float32, {70, 60}));
    weights.add("vector", Array(Dtype::float32, {5}));
    weights.add("cube", Array(Dtype::float32, {2, 3, 4}));
    std::string text;
    const Optimizer optimizer(weights, options);
    for (const Store::Entry& entry : optimizer.state())
      text += entry.name + " " + name_of(entry.value.dtype()) + " " + to_string(entry.value.shape()) + "\n";
    return text;
  };
  CHECK(state_of(Adafactor{}) ==
        "second.vector float32 (5,)\nrows.matrix float32 (70,)\nrows.cube float32 (2, 3)\n"
        "columns.matrix float32 (60,)\ncolumns.cube float32 (2, 4)\nupdates int64 (3,)\n");
  CHECK(state_of(Muon{}) ==
        "velocity.matrix float32 (70, 60)\nfirst.vector float32 (5,)\nfirst.cube float32 (2, 3, 4)\n"
        "second.vector float32 (5,)\nsecond.cube float32 (2, 3, 4)\nupdates int64 (3,)\n");
  CHECK(state_of(AdamW{.eight_bits = true}) ==
        "first.matrix int8 (70, 60)\nfirst.vector float32 (5,)\nfirst.cube float32 (2, 3, 4)\n"
        "second.matrix int8 (70, 60)\nsecond.vector float32 (5,)\nsecond.cube float32 (2, 3, 4)\n"
        "first_scales.matrix float32 (17,)\nsecond_scales.matrix float32 (17,)\nupdates int64 (3,)\n");
  CHECK(state_of(Lion{}) ==
        "first.matrix float32 (70, 60)\nfirst.vector float32 (5,)\nfirst.cube float32 (2, 3, 4)\nupdates int64 (3,)\n");
}

TEST_CASE("an update that would overflow changes nothing, with any method") {
  constexpr float huge = 3e38F;
  for (const OptimizerOptions& options : all_methods()) {
    CAPTURE(static_cast<int>(options.kind));
    const Store weights = large_weights<float>();
    Optimizer optimizer(weights, options);
    std::vector<Array> memory;
    optimizer.update(gradients_of<float>(weights, memory, 0), 0.01);
    const Store before = copy_of(weights), state = copy_of(optimizer.state());
    // A step this long makes weights infinite, whatever the gradient. Adafactor limits it.
    if (options.kind != Kind::adafactor)
      CHECK_THROWS_AS(optimizer.update(gradients_of<float>(weights, memory, 1), 1e39), UpdateError);
    CHECK(same(before, weights));
    CHECK(same(state, optimizer.state()));
    if (options.kind == Kind::lion || options.kind == Kind::muon) continue;
    // Squares of these gradients are infinite.
    CHECK_THROWS_AS(optimizer.update(gradients_of<float>(weights, memory, 1, huge / 1e6), 0.01), UpdateError);
    CHECK(same(before, weights));
    CHECK(same(state, optimizer.state()));
  }
}

TEST_CASE("weights without a gradient and frozen weights stay, with any method") {
  for (OptimizerOptions options : all_methods()) {
    CAPTURE(static_cast<int>(options.kind));
    const Store weights = large_weights<float>();
    Optimizer optimizer(weights, {{"tall", Frozen{}}, {"*", options}});
    std::vector<Array> memory;
    std::vector<ArrayView> gradients = gradients_of<float>(weights, memory, 0);
    gradients[0] = ArrayView();
    const Store before = copy_of(weights);
    optimizer.update(gradients, 0.01);
    for (const char* still : {"wide", "tall"})
      CHECK(std::memcmp(weights.at(still).data(), before.at(still).data(), 1000) == 0);
    for (const char* moved : {"vector", "cube"})
      CHECK(std::memcmp(weights.at(moved).data(), before.at(moved).data(), 1000) != 0);
    for (const Store::Entry& entry : optimizer.state()) CHECK(entry.name.find(".tall") == std::string::npos);
  }
}

TEST_CASE("a zero gradient leaves finite weights, with any method") {
  for (const OptimizerOptions& options : all_methods()) {
    CAPTURE(static_cast<int>(options.kind));
    const Store weights = large_weights<float>();
    Optimizer optimizer(weights, options);
    std::vector<Array> memory;
    for (int update = 0; update < 3; ++update) optimizer.update(gradients_of<float>(weights, memory, 0, 0), 0.01);
    for (const Store::Entry& entry : weights)
      for (std::int64_t i = 0; i < entry.value.count(); ++i) REQUIRE(std::isfinite(entry.value.as<float>()[i]));
  }
}

TEST_CASE("wrong options of methods are errors that name them") {
  Store weights;
  weights.add("w", Array(Dtype::float32, {2, 2}));
  const auto complaint = [&](const OptimizerOptions& options) -> std::string {
    try {
      Optimizer optimizer(weights, options);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(complaint(RmsProp{.alpha = 1}) == "optimizer: alpha must be at least 0 and below 1, got 1.000000");
  CHECK(complaint(Muon{.momentum = 0}) == "optimizer: nesterov needs a momentum above 0");
  CHECK(complaint(Muon{.iterations = 0}) == "optimizer: muon makes 1 to 99 iterations, not 0");
  CHECK(complaint(Adafactor{.beta2_decay = 0.5}) == "optimizer: beta2_decay must be at most 0, got 0.500000");
  CHECK(complaint(Adafactor{.most_change = 0}) == "optimizer: most_change must be above 0, got 0.000000");
  OptimizerOptions lion = Lion{};
  lion.eight_bits = true;
  CHECK(complaint(lion) == "optimizer: only adam and adamw have moments of eight bits");
  CHECK(complaint(Lion{.beta2 = -1}) == "optimizer: beta2 must be at least 0 and below 1, got -1.000000");
}

}  // namespace long_updates
