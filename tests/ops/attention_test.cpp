#include <doctest/doctest.h>

#include "expansion.hpp"
#include "xtape/xtensor.hpp"
#include "xview.hpp"

using namespace xtape;

namespace {
const std::pair<std::string, std::string> by_position{"bqhe,bkhe->bhqk", "bhqk,bkhd->bqhd"};
const std::pair<std::string, std::string> by_head{"bhqe,bhke->bhqk", "bhqk,bhkd->bhqd"};

Vars attend(const Vars& inputs, const std::pair<std::string, std::string>& equations = by_position, double rate = 0,
            Caller caller = Caller::here()) {
  return apply(builtin_ops().at("attention"), {inputs.begin(), inputs.end()},
               {{"scores", equations.first},
                {"outputs", equations.second},
                {"scale", 0.4},
                {"rate", rate},
                {"draws", std::int64_t{77}}},
               caller);
}

xt::xarray<bool> mask_of(const std::vector<std::size_t>& shape, const std::function<bool(std::size_t)>& hidden) {
  xt::xarray<bool> mask = xt::xarray<bool>::from_shape(shape);
  for (std::size_t i = 0; i < mask.size(); ++i) mask.data()[i] = hidden(i);
  return mask;
}
xt::xarray<bool> causal(std::size_t queries, std::size_t keys) {
  return mask_of({queries, keys}, [=](std::size_t i) { return i % keys > i / keys + (keys - queries); });
}

/// y and the three gradients, in float64 or float32. If `hidden` has no elements, there is no mask.
template <class T>
Vars all_of(Tape& tape, std::size_t queries, std::size_t keys, const xt::xarray<bool>& hidden, double rate) {
  const auto numbers = [&](const std::string& name, const std::vector<std::size_t>& shape, unsigned seed) {
    if constexpr (std::is_same_v<T, float>)
      return tape.parameter(name + " narrow", single(normal_array(shape, seed)));
    else
      return tape.parameter(name, normal_array(shape, seed));
  };
  Vars inputs{numbers("q", {2, queries, 3, 8}, 1), numbers("k", {2, keys, 3, 8}, 2), numbers("v", {2, keys, 3, 5}, 3)};
  if (hidden.size() > 0) inputs.push_back(tape.constant(hidden));
  const Var y = attend(inputs, by_position, rate)[0];
  Vars all{y};
  for (const Var& gradient : grad({y}, {inputs[0], inputs[1], inputs[2]}, {numbers("dy", {2, queries, 3, 5}, 4)}))
    all.push_back(gradient);
  return all;
}
}  // namespace

TEST_CASE("op attention: the kernels of the op and its gradient agree with products, mask, softmax and dropout") {
  for (const auto& [queries, keys] : {std::pair<std::size_t, std::size_t>{7, 9}, {150, 150}, {130, 201}, {1, 70}})
    for (double rate : {0.0, 0.3})
      for (const xt::xarray<bool>& hidden :
           {causal(queries, keys), mask_of({2, 1, 1, keys}, [width = keys](std::size_t i) { return i % width > 5; }),
            mask_of({queries, 1}, [](std::size_t i) { return i % 3 == 1; }),
            mask_of({}, [](std::size_t) { return false; }), mask_of({0}, nullptr),
            mask_of({2, 3, queries, keys}, [](std::size_t i) { return i % 7 == 0; })}) {
        Tape tape(Mode::train);
        check_expansion(all_of<double>(tape, queries, keys, hidden, rate), 1e-13);
        check_expansion(all_of<float>(tape, queries, keys, hidden, rate), 3e-6);
      }
}

TEST_CASE_TEMPLATE("op attention: masked keys after the last visible one do not change the bits of one query", T, float,
                   double) {
  constexpr std::size_t seen = 21;
  const auto first = [](const xt::xarray<double>& all, std::size_t keys) {
    return xt::xarray<T>(xt::cast<T>(xt::view(all, xt::all(), xt::range(0, keys))));
  };
  const auto result = [&](std::size_t keys) {
    Tape tape;
    const Var y = attend({tape.parameter("q", first(normal_array({2, 1, 3, 19}, 1), 1)),
                          tape.parameter("k", first(normal_array({2, 150, 3, 19}, 2), keys)),
                          tape.parameter("v", first(normal_array({2, 150, 3, 35}, 3), keys)),
                          tape.constant(mask_of({keys}, [](std::size_t i) { return i == 3 || i >= seen; }))})[0];
    Player player(tape, {y});
    player.play();
    return player.value<T>(y);
  };
  const xt::xarray<T> expected = result(seen);
  for (const std::size_t keys : {22, 24, 32, 64, 150}) CHECK(result(keys) == expected);
}

TEST_CASE("op attention: heads before positions, and transposed inputs") {
  Tape tape(Mode::train);
  const Var hidden = tape.constant(causal(6, 6));
  const Var q = tape.parameter("q", normal_array({2, 3, 6, 4}, 1)),
            v = tape.parameter("v", normal_array({2, 3, 6, 5}, 3));
  const Var k = transpose(tape.parameter("k", normal_array({4, 6, 3, 2}, 2)), {3, 2, 1, 0});
  const Var y = attend({q, k, v, hidden}, by_head, 0.25)[0];
  Vars all{y};
  for (const Var& gradient : grad({sum(square(y))}, {q, k, v})) all.push_back(gradient);
  check_expansion(all, 1e-13);
}

TEST_CASE("op attention: a query whose keys are all masked gives zeros and zero gradients") {
  Tape tape;
  const Vars all = all_of<double>(tape, 4, 6, mask_of({4, 1}, [](std::size_t i) { return i == 2; }), 0);
  const xt::xarray<double> y = fast(all[0]).to<double>(), dq = fast(all[1]).to<double>();
  for (std::size_t b = 0; b < 2; ++b)
    for (std::size_t h = 0; h < 3; ++h) {
      CHECK(y(b, 2, h, 1) == 0);
      CHECK(dq(b, 2, h, 1) == 0);
      CHECK(y(b, 1, h, 1) != 0);
    }
}

TEST_CASE("op attention: gradients") {
  const std::vector<xt::xarray<double>> points{normal_array({1, 3, 2, 4}, 1), normal_array({1, 4, 2, 4}, 2),
                                               normal_array({1, 4, 2, 3}, 3)};
  check_gradients(
      [](const Vars& v) {
        return attend({v[0], v[1], v[2], v[0].tape().constant(causal(3, 4))}, by_position, 0.3);
      },
      points);
  check_gradients([](const Vars& v) { return attend(v); }, points);
}

TEST_CASE("op attention_grad: its own gradients") {
  check_gradients(
      [](const Vars& v) {
        return apply(builtin_ops().at("attention_grad"), {v[0], v[1], v[2], v[3], v[0].tape().constant(causal(3, 4))},
                     {{"scores", by_position.first}, {"outputs", by_position.second}, {"scale", 0.6}});
      },
      {normal_array({1, 3, 1, 2}, 1), normal_array({1, 4, 1, 2}, 2), normal_array({1, 4, 1, 3}, 3),
       normal_array({1, 3, 1, 3}, 4)});
}

TEST_CASE("op attention: its equations may use any labels") {
  Tape tape;
  const Vars inputs{tape.parameter("q", normal_array({2, 3, 2, 4}, 1)),
                    tape.parameter("k", normal_array({2, 5, 2, 4}, 2)),
                    tape.parameter("v", normal_array({2, 5, 2, 4}, 3))};
  CHECK(fast(attend(inputs)[0]).to<double>() ==
        fast(attend(inputs, {"zyxw,zvxw->zxyv", "abce,aebd->acbd"})[0]).to<double>());
}

TEST_CASE("op attention: mistakes") {
  Tape tape;
  const Var q = tape.input("q", {2, 3, 4, 5}), k = tape.input("k", {2, 6, 4, 5}), v = tape.input("v", {2, 6, 4, 7});
  const Var one = tape.constant(1.0, Dtype::float32), hidden = tape.input("hidden", {3, 6}, Dtype::boolean);
  CHECK_THROWS_WITH_AS(
      attend({q, k, v, tape.input("m", {5, 2, 4, 3, 6}, Dtype::boolean)}),
      "attention: a mask of shape (5, 2, 4, 3, 6) does not broadcast to (2, 4, 3, 6), the shape of the scores",
      ShapeError);
  CHECK_THROWS_WITH_AS(attend({q, k, v, hidden}, {"bqhe,bkhe->bhkq", "bhqk,bkhd->bqhd"}),
                       "attention: the equations 'bqhe,bkhe->bhkq' and 'bhqk,bkhd->bqhd' do not describe an attention",
                       Error);
  CHECK_THROWS_WITH_AS(attend({one, k, v, hidden}), "attention: 'q' of shape () must have the axes 'bqhe'", ShapeError);
  CHECK_THROWS_AS(attend({q, q, v, hidden}), ShapeError);
}
