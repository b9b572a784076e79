#include <doctest/doctest.h>

#include <limits>

#include "expansion.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
const Op& row() {
  return builtin_ops().at("product_cross_entropy");
}

Attributes attributes_of(const std::string& equation, std::int64_t ignore = -100, double smoothing = 0,
                         std::int64_t excluded = -1) {
  return {{"equation", equation}, {"ignore", ignore}, {"label_smoothing", smoothing}, {"smoothing_excludes", excluded}};
}

/// Sum, count and gradients: the op's results and the outputs that it keeps.
Vars all_of(const Vars& inputs, const Attributes& attributes) {
  return record_call(inputs[0].tape(), row(), inputs, attributes);
}

xt::xarray<std::int64_t> targets_of(const std::vector<std::size_t>& shape, std::int64_t classes) {
  xt::xarray<std::int64_t> targets = xt::xarray<std::int64_t>::from_shape(shape);
  for (std::size_t i = 0; i < targets.size(); ++i)
    targets.data()[i] = static_cast<std::int64_t>(i * 7919 % static_cast<std::size_t>(classes));
  return targets;
}
const xt::xarray<std::int64_t> six_targets{{0, 4, 2}, {1, 0, 3}};
}  // namespace

TEST_CASE("op product_cross_entropy: the kernel agrees with product, cross_entropy and their gradients") {
  for (const char* equation : {"btd,vd->btv", "btd,dv->btv", "...d,vd->...v"})
    for (double smoothing : {0.0, 0.1})
      for (std::int64_t excluded : {-1, 2})
        for (std::int64_t ignore : {-100, 0})
          for (bool biased : {false, true}) {
            Tape tape;
            const bool turned = std::string(equation) == "btd,dv->btv";
            const std::vector<std::size_t> shape =
                turned ? std::vector<std::size_t>{4, 5} : std::vector<std::size_t>{5, 4};
            const xt::xarray<double> x = normal_array({2, 3, 4}, 1), weight = normal_array(shape, 2, 0, 3),
                                     bias = normal_array({5}, 3);
            const Var classes = tape.parameter("targets", six_targets);
            Vars wide = {tape.parameter("x", x), tape.parameter("weight", weight), classes};
            Vars narrow = {tape.parameter("x32", single(x)), tape.parameter("weight32", single(weight)), classes};
            if (biased) wide.push_back(tape.parameter("bias", bias));
            if (biased) narrow.push_back(tape.parameter("bias32", single(bias)));
            const Attributes attributes = attributes_of(equation, ignore, smoothing, excluded);
            check_expansion(all_of(wide, attributes), 1e-13);
            check_expansion(all_of(narrow, attributes), 1e-5);
          }
}

TEST_CASE("op product_cross_entropy: rows and classes of several blocks, the last one smaller") {
  struct Case {
    std::size_t rows, terms, classes;
  };
  for (const Case& c : {Case{1100, 3, 5501}, Case{9000, 5, 700}, Case{513, 40, 6144}}) {
    Tape tape;
    const xt::xarray<double> x = normal_array({c.rows, c.terms}, 1), weight = normal_array({c.classes, c.terms}, 2),
                             bias = normal_array({c.classes}, 3);
    const Var classes = tape.parameter("targets", targets_of({c.rows}, static_cast<std::int64_t>(c.classes)));
    const Vars single_precision = {tape.parameter("x", single(x)), tape.parameter("weight", single(weight)), classes,
                                   tape.parameter("bias", single(bias))};
    const Vars all = all_of(single_precision, attributes_of("rt,ct->rc", 3, 0.1));
    check_large_expansion(all, 2e-4);
    // Its expansion in float64.
    const Vars double_precision = {tape.parameter("x64", x), tape.parameter("weight64", weight), classes,
                                   tape.parameter("bias64", bias)};
    const Vars wide = all_of(double_precision, attributes_of("rt,ct->rc", 3, 0.1));
    const std::vector<Array> narrow_values = fast(all), wide_values = references_of(wide);
    for (std::size_t k = 0; k < all.size(); ++k) {
      CAPTURE(k);
      const xt::xarray<double> found = as_doubles(narrow_values[k]), wanted = as_doubles(wide_values[k]);
      REQUIRE(found.size() == wanted.size());
      bool near = true;
      for (std::size_t i = 0; i < wanted.size(); ++i) near = near && close(found.data()[i], wanted.data()[i], 2e-5);
      CHECK(near);
    }
  }
}

TEST_CASE("op product_cross_entropy: float64 of several blocks") {
  Tape tape;
  const Vars inputs = {tape.parameter("x", normal_array({1030, 3}, 1)),
                       tape.parameter("weight", normal_array({3, 5500}, 2)),
                       tape.parameter("targets", xt::xarray<std::int32_t>(targets_of({1030}, 5500))),
                       tape.parameter("bias", normal_array({5500}, 3))};
  check_large_expansion(all_of(inputs, attributes_of("rt,tc->rc", 3, 0.1, 5)), 1e-11);
}

TEST_CASE("op product_cross_entropy: gradients and second derivatives") {
  for (double smoothing : {0.0, 0.2})
    for (const char* equation : {"btd,vd->btv", "btd,dv->btv"}) {
      const Attributes attributes = attributes_of(equation, 4, smoothing, smoothing > 0 ? 1 : -1);
      const auto loss = [&](const Vars& v) {
        Vars inputs = {v[0], v[1], v[0].tape().constant(six_targets)};
        if (v.size() > 2) inputs.push_back(v[2]);
        return Vars{apply(row(), {inputs.begin(), inputs.end()}, attributes)[0]};
      };
      const xt::xarray<double> x = normal_array({2, 3, 4}, 1), weight = std::string(equation) == "btd,vd->btv"
                                                                            ? normal_array({5, 4}, 2)
                                                                            : normal_array({4, 5}, 2);
      check_gradients(loss, {x, weight});
      check_gradients(loss, {x, weight, normal_array({5}, 3)});
    }
}

TEST_CASE("op product_cross_entropy: gradients of one input only, and through the gradients that it computes") {
  const Attributes attributes = attributes_of("rt,ct->rc", 4, 0.2);
  const xt::xarray<double> x = normal_array({6, 3}, 1), weight = normal_array({5, 3}, 2), bias = normal_array({5}, 3);
  const xt::xarray<std::int64_t> classes{0, 4, 2, 1, 0, 3};
  check_gradients(
      [&](const Vars& v) {
        Tape tape = v[0].tape();
        return Vars{apply(row(), {v[0], tape.constant(weight), tape.constant(classes)}, attributes)[0]};
      },
      {x});
  check_gradients(
      [&](const Vars& v) {
        const Vars all = all_of({v[0], v[1], v[0].tape().constant(classes), v[2]}, attributes);
        return Vars{all[2], all[3], all[4]};
      },
      {x, weight, bias}, false);
}

TEST_CASE("op product_cross_entropy: only ignored targets, or no rows, give zeros") {
  Tape tape;
  const Var weight = tape.parameter("weight", normal_array({5, 3}, 1));
  const Var bias = tape.parameter("bias", normal_array({5}, 2));
  const xt::xarray<std::int32_t> all_ignored{7, 7};
  for (std::size_t rows : {2u, 0u}) {
    const Var x = tape.parameter("x" + std::to_string(rows), normal_array({rows, 3}, 3));
    const xt::xarray<std::int32_t> ignored = xt::xarray<std::int32_t>::from_shape({rows});
    const Var classes = tape.parameter("targets" + std::to_string(rows), rows > 0 ? all_ignored : ignored);
    const Vars all = all_of({x, weight, classes, bias}, attributes_of("rt,ct->rc", 7));
    check_expansion(all, 0);
    for (const Var& var : all)
      for (double value : as_doubles(fast(var))) CHECK(value == 0);
  }
}

TEST_CASE("op product_cross_entropy: mistakes") {
  Tape tape;
  const Var x = tape.input("x", {2, 3, 4});
  const Var weight = tape.input("weight", {5, 4});
  const Var classes = tape.input("classes", {2, 3}, Dtype::int64);
  const auto call = [&](const std::string& equation, const std::vector<Operand>& inputs, double smoothing = 0,
                        std::int64_t excluded = -1, Caller caller = Caller::here()) {
    return apply(row(), inputs, attributes_of(equation, -100, smoothing, excluded), caller);
  };
  for (const char* equation : {"btd,vd->bvt", "btd,vd->btd", "btd,vd->tbv", "btd,vd->bt", "btd,td->btd"})
    CHECK_THROWS_WITH_AS(call(equation, {x, weight, classes}),
                         doctest::Contains("must multiply the last axis of x with one of the two axes of the weight"),
                         ShapeError);
  CHECK_THROWS_AS(call("btd,dv->btv", {x, weight, classes}), ShapeError);  // 4 is not 5
  CHECK_THROWS_WITH_AS(
      call("btd,vd->btv", {x, weight, tape.input("few", {2}, Dtype::int64)}),
      "product_cross_entropy: 'targets' of shape (2,) must have shape (2, 3), that of the logits without "
      "their last axis, the classes",
      ShapeError);
  CHECK_THROWS_WITH_AS(call("btd,vd->btv", {x, weight, classes, tape.input("bias", {4})}),
                       "product_cross_entropy: 'bias' of shape (4,) must have shape (5,), one number for each class",
                       ShapeError);
  CHECK_THROWS_WITH_AS(call("btd,vd->btv", {x, weight, classes}, 1.5),
                       "product_cross_entropy: label_smoothing must be between 0 and 1, got 1.500000", Error);
  CHECK_THROWS_WITH_AS(call("btd,vd->btv", {x, weight, classes}, 0.1, 5),
                       "product_cross_entropy: smoothing_excludes is class 5, but the logits have 5 classes", Error);
}

TEST_CASE("op product_cross_entropy: a target that is not a class gives cross_entropy's error") {
  Tape tape;
  const Var classes = tape.input("t", {2}, Dtype::int64);
  const Vars inputs = {tape.parameter("x", normal_array({2, 3}, 1)), tape.parameter("weight", normal_array({5, 3}, 1)),
                       classes};
  const Var sum = apply(row(), {inputs.begin(), inputs.end()}, attributes_of("rt,ct->rc", -1))[0];
  Player player(tape, {sum});
  const xt::xarray<std::int64_t> right{0, -1};
  const xt::xarray<std::int64_t> wrong{0, 70};
  player.play({{classes, right}});
  const double before = player.scalar(sum);
  CHECK_THROWS_WITH_AS(
      player.play({{classes, wrong}}),
      doctest::Contains("target 70 (element 1) is neither in [0, 5), the classes of the logits, nor -1"), Error);
  player.play({{classes, right}});
  CHECK(player.scalar(sum) == before);
}
