// Faults of many kinds, recorded in C++: the op and the line are named right in all.
#include <cmath>

#include "faulty.hpp"
#include "xtape/scan.hpp"
#include "xtape/step.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;
using namespace faulty;

namespace {
#define GIVES(...)                      \
  return Recorded {                     \
    {__VA_ARGS__}, fault_op, fault_line \
  }

const std::vector<Fault>& plain_faults() {
  static const std::vector<Fault> list = {
      {"exp overflows", xt::xarray<float>{1.F, 2.F, 300.F},
       [](const Var& x) {
         AT_FAULT(exp(x), "exp");
         GIVES(mean(at_fault));
       }},
      {"scores of attention overflow", xt::xarray<float>{{1e20F, 2e20F}, {3e20F, 1.F}},
       [](const Var& x) {
         AT_FAULT(einsum("id,jd->ij", x, x), "einsum");
         GIVES(sum(einsum("ij,jd->id", softmax(at_fault), x)));
       }},
      {"log of 0 behind a mask", xt::xarray<float>{0.F, 1.F, 2.F},
       [](const Var& x) {
         AT_FAULT(log(x), "log");
         GIVES(sum(at_fault * cast(x > 0, Dtype::float32)));
       }},
      {"log of 0 behind where, backward", xt::xarray<float>{0.F, 1.F, 2.F},
       [](const Var& x) {
         AT_FAULT(log(x), "div");
         const Var loss = sum(where(x > 0, at_fault, 0));
         GIVES(loss, grad(loss, {x})[0]);
       }},
      {"division by a count of 0", xt::xarray<float>{1.F, 2.F, 3.F},
       [](const Var& x) {
         const Var kept = cast(x > 5, Dtype::float32);
         AT_FAULT(sum(x * kept) / sum(kept), "div");
         GIVES(at_fault);
       }},
      {"variance of a constant row", xt::xarray<float>{{1.F, 2.F, 3.F}, {4.F, 4.F, 4.F}},
       [](const Var& x) {
         const Var centred = x - mean(x, {1}, true);
         AT_FAULT(rsqrt(variance(x, {1}, true)), "rsqrt");
         GIVES(sum(centred * at_fault));
       }},
      {"sqrt of 0 has an infinite gradient", xt::xarray<float>{0.F, 1.F, 4.F},
       [](const Var& x) {
         AT_FAULT(sqrt(x), "div");
         const Var loss = sum(at_fault);
         GIVES(loss, grad(loss, {x})[0]);
       }},
      {"norm of a row of zeros, backward", xt::xarray<float>{{0.F, 0.F}, {3.F, 4.F}},
       [](const Var& x) {
         AT_FAULT(sqrt(sum(square(x), {1})), "div");
         const Var loss = sum(at_fault);
         GIVES(loss, grad(loss, {x})[0]);
       }},
      {"NaN in the data", xt::xarray<float>{1.F, NaN, 3.F},
       [](const Var& x) {
         return Recorded{{mean(exp(x))}, "input", 0};
       }},
      {"infinity in the data", xt::xarray<float>{1.F, inf, 3.F},
       [](const Var& x) {
         return Recorded{{mean(exp(x))}, "input", 0};
       }},
      {"index out of range", xt::xarray<float>{{1.F, 2.F}, {3.F, 4.F}},
       [](const Var& x) {
         const Var indices = x.tape().constant(xt::xarray<std::int64_t>{0, 5});
         AT_FAULT(take(x, indices), "take");
         GIVES(sum(at_fault));
       }},
      {"target out of range", xt::xarray<float>{{1.F, 2.F}, {3.F, 4.F}},
       [](const Var& x) {
         const Var targets = reshape(x.tape().constant(xt::xarray<std::int64_t>{0, -7}), {2, 1});
         AT_FAULT(gather(x, 1, targets), "gather");
         GIVES(mean(at_fault));
       }},
      {"0 / 0", xt::xarray<float>{0.F, 1.F, 2.F},
       [](const Var& x) {
         AT_FAULT(x / x, "div");
         GIVES(sum(at_fault));
       }},
      {"difference of infinities", xt::xarray<float>{100.F, 1.F, 2.F},
       [](const Var& x) {
         AT_FAULT(exp(x), "exp");
         GIVES(sum(at_fault - at_fault));
       }},
      {"root of a negative number", xt::xarray<float>{-2.F, 1.F, 2.F},
       [](const Var& x) {
         AT_FAULT(pow(x, 0.5), "sqrt");
         GIVES(sum(at_fault));
       }},
      {"log of a negative number", xt::xarray<float>{-2.F, 1.F, 2.F},
       [](const Var& x) {
         AT_FAULT(log(x), "log");
         GIVES(sum(at_fault));
       }},
      {"variance below 0 by cancellation", xt::xarray<float>{{3000.1F, 3000.1F, 3000.1F}, {1.F, 2.F, 3.F}},
       [](const Var& x) {
         const Var spread = mean(square(x), {1}) - square(mean(x, {1})) - 1e-3;
         AT_FAULT(sqrt(spread), "sqrt");
         GIVES(sum(at_fault));
       }},
      {"square overflows", xt::xarray<float>{1e25F, 1.F, 2.F},
       [](const Var& x) {
         AT_FAULT(square(x), "square");
         GIVES(sqrt(mean(at_fault)));
       }},
      {"sum overflows", xt::xarray<float>{3e38F, 3e38F, 1.F},
       [](const Var& x) {
         AT_FAULT(x + x, "add");
         GIVES(mean(at_fault) * 0.5);
       }},
      {"product overflows in the backward pass", xt::xarray<float>{1e-30F, 1.F, 2.F},
       [](const Var& x) {
         AT_FAULT(1 / x, "mul");
         const Var loss = sum(at_fault);
         GIVES(loss, grad(loss, {x})[0]);
       }},
      {"power has an infinite gradient at 0", xt::xarray<float>{0.F, 1.F, 2.F},
       [](const Var& x) {
         AT_FAULT(pow(x, 0.25), "pow");
         const Var loss = sum(at_fault);
         GIVES(loss, grad(loss, {x})[0]);
       }},
      {"log1p of -1", xt::xarray<float>{-1.F, 0.F, 2.F},
       [](const Var& x) {
         AT_FAULT(log1p(x), "log1p");
         GIVES(sum(at_fault));
       }},
      {"a check of one's own", xt::xarray<float>{1.F, 2.F, 300.F},
       [](const Var& x) {
         AT_FAULT(watch(x, x < 100), "watch");
         GIVES(sum(at_fault));
       }},
      {"mean of nothing", xt::xarray<float>{1.F, 2.F, 3.F},
       [](const Var& x) {
         AT_FAULT(mean(slice(x, {0}, {0})), "mean");
         GIVES(at_fault);
       }},
      {"sum of a running product", xt::xarray<float>{{90.F, 1.F, 1.F}, {1.F, 2.F, 3.F}},
       [](const Var& x) {
         AT_FAULT(exp(cumsum(x, 1)), "exp");
         GIVES(sum(at_fault));
       }},
      {"harmless infinity before the fault", xt::xarray<float>{200.F, 1.F, -2.F},
       [](const Var& x) {
         const Var harmless = 1 / (1 + exp(x));
         AT_FAULT(log(x), "log");
         GIVES(sum(harmless + at_fault));
       }},
      {"mask of -inf before the fault", xt::xarray<float>{{1.F, 2.F}, {0.F, 4.F}},
       [](const Var& x) {
         const Var masked = softmax(masked_fill(x, x > 1, -inf));
         AT_FAULT(rsqrt(x), "rsqrt");
         GIVES(sum(masked * at_fault));
       }},
      {"rsqrt of 0", xt::xarray<float>{0.F, 1.F, 2.F},
       [](const Var& x) {
         AT_FAULT(rsqrt(x), "rsqrt");
         GIVES(sum(at_fault));
       }},
      {"cast overflows", xt::xarray<float>{1.F, 2.F, 3.F},
       [](const Var& x) {
         const Var big = exp(cast(x, Dtype::float64) * 100);
         AT_FAULT(cast(big, Dtype::float32), "cast");
         GIVES(sum(at_fault));
       }},
      {"a state explodes", xt::xarray<float>{{3.F, 3.F, 3.F, 3.F, 3.F, 3.F, 3.F, 3.F}},
       [](const Var& x) {
         int line = 0;
         const Var last = scan(
                              [&](const Vars& slice, const Vars& state) {
                                line = __LINE__ + 1;
                                const Var next = state[0] * state[0] * slice[0];
                                return std::pair<Vars, Vars>{{}, {next}};
                              },
                              {x}, {ones(x.tape(), {1})})
                              .states[0];
         return Recorded{{sum(last)}, "mul", line};
       }},
  };
  return list;
}
}  // namespace

TEST_CASE("faults: the op and the line are named, and the capsule fails in the same way") {
  for (const Fault& fault : plain_faults()) {
    CAPTURE(fault.name);
    faulty::checked(fault, "faults_test.cpp");
  }
}

TEST_CASE("faults: a failed update of a Step of a function, and a call of a compiled function") {
  Store weights;
  weights.add("w", Array(Dtype::float32, {2}));
  Step step([&](Var x, Var factor) { return mean(log(factor * x * x.tape().parameter(weights, "w"))); }, weights,
            Sgd{});
  const std::vector<float> x{1, 2};
  CHECK_THROWS_AS(step({x, 0.5}), UpdateError);
  const auto failed = find_failure(recorded_call(step.player(), {x, 0.5}, step.updates()));
  REQUIRE(failed);
  CHECK(failed->failure.op == "log");
  CHECK(failed->failure.what == "-inf");
  CHECK(failed->failure.site.find("faults_test.cpp") != std::string::npos);

  Compiled root([](Var v) { return sqrt(v - 3); });
  root({x});
  const auto found = find_failure(recorded_call(root.last(), {x}));
  REQUIRE(found);
  CHECK(found->failure.op == "sqrt");
  CHECK(found->failure.what == "NaN");
}

TEST_CASE("faults: the call at fault is found among many that make harmless infinities") {
  Tape tape;
  const Var x = tape.input("x", {3});
  Var total = sum(x);
  for (int i = 0; i < 20; ++i) total = total + sum(1 / (1 + exp(x * (100 + i))));
  const Var root = sqrt(-x);
  const int line = __LINE__ - 1;
  for (int i = 0; i < 20; ++i) total = total + sum(1 / (1 + exp(x * (200 + i))));
  Store inputs;
  inputs.add("x", Array(ArrayView(xt::xarray<float>{1, 2, 3})));
  const std::optional<Capsule> capsule = find_failure({tape, {total + sum(root)}, inputs, {}});
  REQUIRE(capsule);
  CHECK(capsule->failure.op == "sqrt");
  CHECK(capsule->failure.site.find("line " + std::to_string(line)) != std::string::npos);
}

TEST_CASE("faults: of two calls that both fail the play, the first is named") {
  Tape tape;
  const Var x = tape.input("x", {1});
  Store inputs;
  inputs.add("x", Array(ArrayView(xt::xarray<float>{1})));
  const Var root = sqrt(-x), logarithm = log(-x);
  const std::optional<Capsule> capsule = find_failure({tape, {sum(root + logarithm)}, inputs, {}});
  REQUIRE(capsule);
  CHECK(capsule->failure.op == "sqrt");
}
