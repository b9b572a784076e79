#include "xtape/compiled.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "xtape/grad.hpp"
#include "xtape/ops.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

TEST_CASE("a compiled function is recorded once for each combination of types") {
  int recorded = 0;
  Compiled f([&](Var x, Var y) {
    ++recorded;
    return Vars{sum(x * y), x + 1};
  });
  CHECK(f({std::vector<float>{1, 2}, std::vector<float>{3, 4}})[0]() == 11);
  const auto results = f({std::vector<float>{1, 2}, std::vector<float>{5, 6}});
  CHECK(results[0]() == 17);
  CHECK(results[1](1) == 3);
  CHECK(recorded == 1);
  CHECK(f({xt::xarray<float>{1, 2, 3}, std::vector<float>{1, 1, 1}})[0]() == 6);
  CHECK(recorded == 2);
  CHECK(f({std::vector<std::int64_t>{1, 2}, std::vector<std::int64_t>{3, 4}})[0]() == 11);
  CHECK(f({std::vector<float>{1, 2}, std::vector<float>{1, 1}})[0]() == 3);
  CHECK(recorded == 3);
  CHECK(f.plans() == 3);
  CHECK(f.last().plan().steps.size() > 0);
  f.clear();
  CHECK(f.plans() == 0);
  CHECK(f({std::vector<float>{1, 2}, std::vector<float>{1, 1}})[0]() == 3);
  CHECK(recorded == 4);
}

TEST_CASE("a compiled step trains: parameters are read at every call") {
  Array w = array_of({0, 0}, Dtype::float64, {2});
  Compiled step(
      [&](Var x, Var y) {
        const Var weights = x.tape().parameter("w", w);
        const Var loss = mean(square(matmul(x, weights) - y));
        return Vars{loss, grad(loss, weights)};
      },
      {}, Tape(Dtype::float64));
  const xt::xarray<double> x{{1, 0}, {0, 1}, {1, 1}}, y{2, -1, 1};
  double loss = 0;
  for (int i = 0; i < 200; ++i) {
    const auto found = step({x, y});
    loss = found[0]();
    w.tensor<double>() -= 0.5 * found[1].tensor<double>();
  }
  CHECK(loss < 1e-12);
  CHECK(std::abs(w(0) - 2) < 1e-6);
  CHECK(step.plans() == 1);
}

TEST_CASE("functions of Vars and of up to eight vars compile, and copies of a function keep their state") {
  Compiled all([](const Vars& x) { return x[0] + x[1] + x[2]; });
  CHECK(all({std::vector<float>{1}, std::vector<float>{2}, std::vector<float>{4}})[0](0) == 7);
  Compiled one([](const Var& x) { return x * 2; });
  CHECK(one({std::vector<float>{4}})[0](0) == 8);
  Compiled many([](Var a, Var b, Var c, Var d, Var e, Var f, Var g, Var h) { return a + b + c + d + e + f + g + h; });
  const std::vector<float> x{1};
  CHECK(many({x, x, x, x, x, x, x, x})[0](0) == 8);
  Compiled moved = std::move(one);
  CHECK(moved({std::vector<float>{1}})[0](0) == 2);
  CHECK_THROWS_AS(one.plans(), HandleError);
}

TEST_CASE("calls of a compiled function draw anew, whatever their types") {
  Compiled f([](Var x) { return x + uniform(x.tape(), {4}); });
  const std::vector<float> one{0}, four{0, 0, 0, 0};
  const Array first(f({one})[0]), second(f({one})[0]);
  CHECK(first(0) != second(0));
  f.set_step(0);
  CHECK(Array(f({one})[0])(0) == first(0));
  CHECK(Array(f({four})[0])(0) == second(0));
  CHECK(f.step() == 2);
}

TEST_CASE("numbers are arguments: real ones of the default dtype, integers, and bools") {
  for (const Dtype dtype : {Dtype::float32, Dtype::float64}) {
    int recorded = 0;
    Compiled f(
        [&](Var x, Var factor) {
          ++recorded;
          return where(equal(factor, 0), x, x * cast(factor, x.dtype()));
        },
        {}, Tape(dtype));
    const auto x = [&] { return dtype == Dtype::float32 ? Array(Dtype::float32, {2}) : Array(Dtype::float64, {2}); };
    Array ones = x();
    ones.assign(evaluate(cast(Tape().constant(std::vector<double>{1, 3}), dtype)));
    CHECK(f({ones, 0.5})[0](1) == 1.5);
    CHECK(f({ones, 0.25F})[0](1) == 0.75);
    CHECK(recorded == 1);
    CHECK(f.last().outputs()[0].dtype() == dtype);
    CHECK(f({ones, 2})[0](1) == 6);
    CHECK(f({ones, std::int8_t{3}})[0](1) == 9);
    CHECK(recorded == 2);
    CHECK(f({ones, true})[0](1) == 3);
    CHECK(recorded == 3);
  }
  Compiled product([](Var x, Var beta) { return x * beta; });
  const xt::xarray<float> x{1, 2};
  CHECK(product({x, 3})[0](1) == 6);  // an integer is promoted
  const std::vector<ArrayView> list{x, x};
  CHECK(product(list)[0](1) == 4);
}

TEST_CASE("errors of compiled functions name the call") {
  Compiled f([](Var x, Var y) { return matmul(x, y); });
  const std::vector<float> x{1, 2}, y{1, 2, 3};
  CHECK_THROWS_AS(f({x, y}), ShapeError);
  CHECK(f.plans() == 0);
  CHECK_THROWS_WITH_AS(f({x}), "the compiled function takes 2 arrays, not 1", Error);
  CHECK_THROWS_AS(f.last(), Error);
  CHECK(f({x, x})[0]() == 5);
  PlayerOptions options;
  Tape tape;
  const Var state = tape.input("s", {1});
  options.carries = {{state, state + 1}};
  CHECK_THROWS_AS(Compiled([](Var v) { return v; }, options), Error);
}
