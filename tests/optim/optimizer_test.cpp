#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "source_root.hpp"
#include "xtape/inspect.hpp"
#include "xtape/optim.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;
using Json = nlohmann::json;

namespace {
Array array_of(const Json& json, Dtype dtype) {
  const auto sizes = json.at("shape").get<std::vector<std::int64_t>>();
  Array array(dtype, Shape(sizes.begin(), sizes.end()));
  const Json& data = json.at("data");
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (dtype == Dtype::float64)
      array.as<double>()[i] = data[i].get<double>();
    else
      array.as<float>()[i] = data[i].get<float>();
  }
  return array;
}

double element(const Array& array, std::int64_t i) {
  return array.dtype() == Dtype::float64 ? array.as<double>()[i] : static_cast<double>(array.as<float>()[i]);
}

OptimizerOptions options_of(const Json& json) {
  using Kind = OptimizerOptions::Kind;
  OptimizerOptions options;
  const std::string kind = json.at("kind").get<std::string>();
  options.kind = kind == "sgd" ? Kind::sgd : kind == "adam" ? Kind::adam : Kind::adamw;
  options.momentum = json.value("momentum", 0.0);
  options.nesterov = json.value("nesterov", false);
  options.beta1 = json.value("beta1", 0.9);
  options.beta2 = json.value("beta2", 0.999);
  options.epsilon = json.value("epsilon", 1e-8);
  options.weight_decay = json.value("weight_decay", 0.0);
  options.decay_all = json.value("decay_all", false);
  return options;
}

Json golden() {
  std::ifstream file(source_root() + "/tests/golden/data/optimizers.json");
  REQUIRE(file.good());
  return Json::parse(file);
}

Array filled(const Shape& shape, float scale) {
  Array array(Dtype::float32, shape);
  for (std::int64_t i = 0; i < array.count(); ++i) array.as<float>()[i] = scale * static_cast<float>(i % 17 - 8);
  return array;
}
}  // namespace

TEST_CASE("ten updates of each optimiser equal PyTorch's, in float64 and float32") {
  const Json json = golden();
  REQUIRE(json.at("cases").size() == 8);
  for (Dtype dtype : {Dtype::float64, Dtype::float32})
    for (const Json& each : json.at("cases")) {
      CAPTURE(each.at("options").dump());
      const double clip = each.at("options").value("clip", 0.0);
      Store weights;
      weights.add("matrix", array_of(json.at("start")[0], dtype));
      weights.add("vector", array_of(json.at("start")[1], dtype));
      Optimizer optimizer(weights, options_of(each.at("options")), 2);
      const double tolerance = dtype == Dtype::float32 ? 2e-5 : 1e-12;
      for (std::size_t step = 0; step < 10; ++step) {
        const Array matrix = array_of(json.at("gradients")[step][0], dtype);
        const Array vector = array_of(json.at("gradients")[step][1], dtype);
        optimizer.update({matrix, vector}, json.at("rate").get<double>(), 1, clip);
        for (std::size_t w = 0; w < 2; ++w) {
          const Array expected = array_of(each.at("after")[step][w], dtype);
          const Array& got = weights[w].value;
          for (std::int64_t i = 0; i < got.count(); ++i)
            REQUIRE(std::abs(element(got, i) - element(expected, i)) <=
                    tolerance * (1 + std::abs(element(expected, i))));
        }
      }
    }
}

TEST_CASE("the norm is that of all scaled gradients; clipping limits it; the scale applies to the gradients") {
  for (double clip : {0.0, 2.0, 100.0}) {
    Store weights;
    Array a = weights.add("a", Array(Dtype::float64, {2}));
    Array b = weights.add("b", Array(Dtype::float64, {}));
    OptimizerOptions options;
    options.kind = OptimizerOptions::Kind::sgd;
    Optimizer optimizer(weights, options);
    const xt::xarray<double> ga{4, 12};
    const xt::xarray<double> gb = xt::xarray<double>(6.0);
    CHECK(optimizer.update({ga, gb}, 0.5, 0.5, clip) == doctest::Approx(7).epsilon(1e-15));
    const double cut = clip == 2.0 ? 2.0 / (7 + 1e-6) : 1;
    CHECK(a.as<double>()[0] == doctest::Approx(-0.5 * 2 * cut).epsilon(1e-15));
    CHECK(a.as<double>()[1] == doctest::Approx(-0.5 * 6 * cut).epsilon(1e-15));
    CHECK(b.as<double>()[0] == doctest::Approx(-0.5 * 3 * cut).epsilon(1e-15));
  }
}

TEST_CASE("an update has the same bits for any number of threads") {
  std::vector<float> first_weights;
  double first_norm = 0;
  for (int threads : {1, 2, 3}) {
    Store weights;
    const Array w = weights.add("w", filled({3, 33333}, 0.1f));
    weights.add("b", filled({70001}, 0.01f));
    Optimizer optimizer(weights, {}, threads);
    const Array dw = filled({3, 33333}, 0.03f);
    const Array db = filled({70001}, 0.07f);
    double norm = 0;
    for (int step = 0; step < 3; ++step) norm = optimizer.update({dw, db}, 1e-2, 1, 0.5);
    const std::vector<float> now(w.as<float>(), w.as<float>() + w.count());
    if (threads == 1) {
      first_weights = now;
      first_norm = norm;
      double exact = 0;
      for (const Array* g : {&dw, &db})
        for (std::int64_t i = 0; i < g->count(); ++i) exact += std::pow(double{g->as<float>()[i]}, 2);
      CHECK(norm == doctest::Approx(std::sqrt(exact)).epsilon(1e-11));
    }
    CHECK(now == first_weights);
    CHECK(norm == first_norm);
  }
}

TEST_CASE("a weight without a gradient and its moments do not change") {
  for (const auto kind : {OptimizerOptions::Kind::sgd, OptimizerOptions::Kind::adam, OptimizerOptions::Kind::adamw}) {
    Store weights;
    const Array still = weights.add("still", filled({2, 3}, 1)), moved = weights.add("moved", filled({2, 2}, 1));
    const Array before = still.clone();
    OptimizerOptions options;
    options.kind = kind;
    options.momentum = 0.9;
    options.weight_decay = 0.5;
    Optimizer optimizer(weights, options);
    const Array gradient = filled({2, 3}, 1), of_moved = filled({2, 2}, 0.5F);  // sums of squares: 199 and 43.5
    CHECK(optimizer.update({gradient, of_moved}, 0.1) == doctest::Approx(std::sqrt(199 + 43.5)));
    const Array after = still.clone(), moved_after = moved.clone();
    CHECK(std::memcmp(before.data(), after.data(), before.bytes()) != 0);
    Store state;
    for (const Store::Entry& entry : optimizer.state()) state.add(entry.name, entry.value.clone());
    CHECK(optimizer.update({ArrayView(), of_moved}, 0.1) == doctest::Approx(std::sqrt(43.5)));
    CHECK(std::memcmp(after.data(), still.data(), after.bytes()) == 0);
    CHECK(std::memcmp(moved_after.data(), moved.data(), moved.bytes()) != 0);
    for (const Store::Entry& entry : optimizer.state()) {
      const bool same = std::memcmp(entry.value.data(), state.at(entry.name).data(), entry.value.bytes()) == 0;
      CHECK(same == (entry.name.find(".still") != std::string::npos));
    }
  }
}

TEST_CASE("non-finite gradients change nothing") {
  Store weights;
  const Array w = weights.add("w", filled({2, 3}, 1));
  const Array before = w.clone();
  Optimizer optimizer(weights, {});
  Array gradient = filled({2, 3}, 1);
  gradient.as<float>()[4] = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(optimizer.update({gradient}, 1e-2)));
  gradient.as<float>()[4] = std::numeric_limits<float>::infinity();
  CHECK(std::isinf(optimizer.update({gradient}, 1e-2)));
  CHECK(std::memcmp(w.data(), before.data(), w.bytes()) == 0);
  CHECK(*optimizer.state().at("updates").as<std::int64_t>() == 0);
}

namespace {
struct Overflowing {
  const char* about;
  OptimizerOptions::Kind kind;
  double gradient, rate;
  const char* message;
};
}  // namespace

TEST_CASE("an update that would overflow names weight, element and gradient, and changes nothing") {
  using Kind = OptimizerOptions::Kind;
  const std::vector<Overflowing> cases = {
      {"the second moment", Kind::adam, 1e25, 1e-3,
       "update 3 would make the second moment of 'w' inf at [1, 0], where it is 0.001999 and the gradient 1e+25 "
       "(float32)"},
      {"the same, decoupled decay", Kind::adamw, -1e25, 1e-3, "the second moment of 'w' inf at [1, 0], where it is"},
      {"the weight", Kind::sgd, 1e20, 1e20, "the value of 'w' -inf at [1, 0], where it is -2"},
      {"the weight, by a rate beyond float32", Kind::adam, 1, 1e39, "the value of 'b' -inf at [0], where it is"},
  };
  for (const Overflowing& each : cases) {
    CAPTURE(each.about);
    for (const int threads : {1, 3}) {
      Store weights;
      const Array b = weights.add("b", filled({2}, 0)), w = weights.add("w", filled({2, 3}, 0));
      OptimizerOptions options;
      options.kind = each.kind;
      Optimizer optimizer(weights, options, threads);
      Array of_b = filled({2}, 0), of_w = filled({2, 3}, 0);
      std::fill_n(of_b.as<float>(), 2, 1.0F);
      std::fill_n(of_w.as<float>(), 6, 1.0F);
      for (int i = 0; i < 2; ++i) optimizer.update({of_b, of_w}, each.kind == Kind::sgd ? 1 : 1e-3);
      Store before;
      for (const Store::Entry& entry : weights) before.add(entry.name, entry.value.clone());
      for (const Store::Entry& entry : optimizer.state()) before.add(entry.name, entry.value.clone());
      of_w.as<float>()[3] = static_cast<float>(each.gradient);
      for (int again = 0; again < 2; ++again) {
        std::string message;
        try {
          optimizer.update({of_b, of_w}, each.rate);
        } catch (const UpdateError& error) {
          message = error.what();
        }
        CHECK_MESSAGE(message.find(each.message) != std::string::npos, message);
      }
      const auto same = [&](const Store::Entry& entry) {
        return std::memcmp(entry.value.data(), before.at(entry.name).data(), entry.value.bytes()) == 0;
      };
      CHECK(std::all_of(weights.begin(), weights.end(), same));
      CHECK(std::all_of(optimizer.state().begin(), optimizer.state().end(), same));
    }
  }
}

TEST_CASE("a moment that is infinite already is found, and large gradients that do not overflow are no error") {
  Store weights;
  const Array w = weights.add("w", filled({2, 3}, 1));
  Optimizer optimizer(weights, {});
  Array second(optimizer.state().at("second.w"));
  second.as<float>()[2] = std::numeric_limits<float>::infinity();
  CHECK_THROWS_WITH_AS(
      optimizer.update({filled({2, 3}, 1)}, 0.1),
      "update 1 would make the second moment of 'w' inf at [0, 2], where it is inf and the gradient -6 (float32)",
      UpdateError);
  second.as<float>()[2] = 0;
  optimizer.update({filled({2, 3}, 1e18F)}, 0.1);  // near the limit: checked on copies
  optimizer.update({filled({2, 3}, 1)}, 0.1);
  CHECK(range_of(second).magnitude() > 1e34);
  CHECK(range_of(w).all_finite());
  CHECK(*optimizer.state().at("updates").as<std::int64_t>() == 2);
  Array(optimizer.state().at("second.w")).as<float>()[4] = -100;
  CHECK_THROWS_WITH_AS(optimizer.update({filled({2, 3}, 1)}, 0.1),
                       doctest::Contains("update 3 would make the value of 'w' nan at [1, 1], where it is "),
                       UpdateError);
  CHECK(second.as<float>()[4] == -100);
  Store small;
  small.add("w", filled({2, 3}, 1));
  OptimizerOptions momentum;
  momentum.kind = OptimizerOptions::Kind::sgd;
  momentum.momentum = 0.9;
  Optimizer of_small(small, momentum);
  Array large(Dtype::float32, {2, 3});
  large.as<float>()[1] = 3e38F;
  of_small.update({large}, 1e-38);
  CHECK_THROWS_WITH_AS(
      of_small.update({large}, 1e-38),
      "update 2 would make the velocity of 'w' inf at [0, 1], where it is 3e+38 and the gradient 3e+38 (float32)",
      UpdateError);
  Store wide;
  wide.add("w", Array(Dtype::float64, {2}));
  Optimizer of_wide(wide, {});
  Array gradient(Dtype::float64, {2});
  gradient.as<double>()[1] = 1e25;
  of_wide.update({gradient}, 0.1);
  CHECK(of_wide.state().at("second.w").as<double>()[1] == doctest::Approx(1e47));
}

TEST_CASE("an optimiser with restored state continues with the same bits") {
  const Array gradient = filled({4, 5}, 0.3f);
  Store straight_weights, weights;
  straight_weights.add("w", filled({4, 5}, 1));
  weights.add("w", filled({4, 5}, 1));
  Optimizer straight(straight_weights, {});
  Optimizer before(weights, {});
  for (int step = 0; step < 3; ++step) {
    straight.update({gradient}, 0.1);
    before.update({gradient}, 0.1);
  }
  Optimizer after(weights, {});
  for (Store::Entry entry : after.state()) entry.value.assign(before.state().at(entry.name));
  CHECK(after.state().size() == 3);
  CHECK(after.state().find("first.w") != nullptr);
  CHECK(after.state().find("second.w") != nullptr);
  straight.update({gradient}, 0.1);
  after.update({gradient}, 0.1);
  CHECK(weights.at("w").to<float>() == straight_weights.at("w").to<float>());
}

TEST_CASE("errors name the mistake and change nothing") {
  Store weights;
  weights.add("w", filled({2, 3}, 1));
  Optimizer optimizer(weights, {});
  CHECK_THROWS_WITH_AS(optimizer.update({}, 0.1), "optimizer: got 0 gradients for 1 weights", Error);
  CHECK_THROWS_WITH_AS(optimizer.update({filled({3, 2}, 1)}, 0.1),
                       "optimizer: the gradient of 'w' has shape (3, 2), the weight (2, 3)", ShapeError);
  CHECK_THROWS_WITH_AS(optimizer.update({Array(Dtype::float64, {2, 3})}, 0.1),
                       "optimizer: the gradient of 'w' is float64, the weight float32", DtypeError);
  const xt::xarray<float, xt::layout_type::column_major> columns{{1, 2, 3}, {4, 5, 6}};
  CHECK_THROWS_WITH_AS(optimizer.update({columns}, 0.1),
                       "optimizer: the gradient of 'w' must be a dense row-major array", Error);
  for (const double clip : {-1.0, std::nan("")})
    CHECK_THROWS_WITH_AS(optimizer.update({filled({2, 3}, 1)}, 0.1, 1, clip),
                         "optimizer: clip must be at least 0 (0: gradients are not clipped)", Error);
  Array updates(optimizer.state().at("updates"));
  for (const std::int64_t count : {std::numeric_limits<std::int64_t>::max(), std::int64_t{-1}}) {
    *updates.as<std::int64_t>() = count;
    CHECK_THROWS_WITH_AS(optimizer.update({filled({2, 3}, 1)}, 0.1), doctest::Contains("is not from 0 to 2^62"), Error);
    CHECK(*updates.as<std::int64_t>() == count);
  }
  CHECK(weights.at("w").to<float>() == filled({2, 3}, 1).to<float>());

  OptimizerOptions options;
  options.beta2 = 1;
  CHECK_THROWS_AS(Optimizer(weights, options), Error);
  options = {};
  options.epsilon = 1e-320;  // 0 as a float32
  CHECK_THROWS_WITH_AS(Optimizer(weights, options), "optimizer: epsilon must be above 0, in float32 too", Error);
  options = {};
  options.kind = OptimizerOptions::Kind::sgd;
  options.nesterov = true;
  CHECK_THROWS_WITH_AS(Optimizer(weights, options), "optimizer: nesterov needs a momentum above 0", Error);
  for (const auto& [dtype, hint] :
       {std::pair(Dtype::int64, ""),
        std::pair(Dtype::bfloat16, ": keep the weight as float32, and cast it where it is used"),
        std::pair(Dtype::float16, ": keep the weight as float32, and cast it where it is used")}) {
    Store others;
    others.add("t", Array(dtype, {2}));
    CHECK_THROWS_WITH_AS(
        Optimizer(others, {}),
        (std::string("optimizer: 't' is ") + name_of(dtype) + ", not float32 or float64" + hint).c_str(), DtypeError);
  }
}
