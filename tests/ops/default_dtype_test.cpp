// The default dtype: the dtype of floats where no var determines it.
#include <cmath>

#include "play.hpp"
#include "xtape/scan.hpp"
#include "xtape/xtensor.hpp"

using namespace xtape;

namespace {
Tape in_float64() {
  Tape tape;
  tape.set_default_dtype(Dtype::float64);
  return tape;
}
}  // namespace

TEST_CASE("the default dtype is float32 at first, and must be a float") {
  Tape tape;
  CHECK(tape.default_dtype() == Dtype::float32);
  CHECK(ones(tape, {2}).dtype() == Dtype::float32);
  CHECK_THROWS_WITH_AS(tape.set_default_dtype(Dtype::int64), "the default dtype is float32 or float64, not int64",
                       DtypeError);
  tape.set_default_dtype(Dtype::float64);
  CHECK(tape.default_dtype() == Dtype::float64);
}

TEST_CASE("literals without vars take the default dtype") {
  Tape tape = in_float64();
  const Var mask = tape.input("mask", {2}, Dtype::boolean);
  CHECK(where(mask, 1.0, 0.0).dtype() == Dtype::float64);
  CHECK(where(mask, 1, 0).dtype() == Dtype::int64);
  CHECK(apply(tape, builtin_ops().at("relu"), {2.5})[0].dtype() == Dtype::float64);
  CHECK((tape.input("i", {2}, Dtype::int32) * 0.5).dtype() == Dtype::float64);
  const Array third = fast(apply(tape, builtin_ops().at("div"), {1, 3})[0]);
  CHECK(*third.as<double>() == 1.0 / 3.0);
}

TEST_CASE("division, functions and means of integers are computed in the default dtype") {
  Tape tape = in_float64();
  const Var i = tape.constant(xt::xarray<std::int64_t>{67108865LL * 67108865LL, 3});
  CHECK(*fast(sqrt(i)).as<double>() == 67108865.0);  // not representable in float32
  CHECK(fast(i / 3).as<double>()[1] == 1.0);
  CHECK(*fast(mean(i)).as<double>() == (67108865.0 * 67108865.0 + 3) / 2);
  CHECK(fast(iota(tape, {4}) / 3).to<double>() == xt::xarray<double>{0, 1.0 / 3, 2.0 / 3, 1});
  CHECK(softmax(i).dtype() == Dtype::float64);
  const Var narrow = tape.input("narrow", {2}, Dtype::float32);
  CHECK((narrow / i).dtype() == Dtype::float32);  // a float var takes precedence over the default
}

TEST_CASE("arrays made without a dtype have the default dtype") {
  Tape tape = in_float64();
  CHECK(zeros(tape, {2}).dtype() == Dtype::float64);
  CHECK(ones(tape, {2}).dtype() == Dtype::float64);
  CHECK(full(tape, {2}, 3).dtype() == Dtype::float64);
  CHECK(eye(tape, 2, 2).dtype() == Dtype::float64);
  CHECK(uniform(tape, {2}).dtype() == Dtype::float64);
  CHECK(one_hot(iota(tape, {2}), 2).dtype() == Dtype::float64);
  CHECK(tape.input("x", {2}).dtype() == Dtype::float64);
  CHECK(zeros(tape, {2}, Dtype::float32).dtype() == Dtype::float32);
  CHECK(apply(tape, builtin_ops().at("zeros"), {}, {{"shape", Axes{2}}, {"dtype", std::string("int")}})[0].dtype() ==
        Dtype::int64);
}

TEST_CASE("bodies of checkpoints and scans, and their gradients, have the tape's default dtype") {
  Tape tape = in_float64();
  const Var x = tape.input("x", {3, 2});
  const Var inside = checkpoint([](const Vars& in) { return Vars{in[0] * 2}; }, {x})[0];
  CHECK(inside.node().body->default_dtype() == Dtype::float64);
  const auto step = [](const Vars& slices, const Vars& states) {
    const Var next = states[0] + slices[0];
    return std::pair<Vars, Vars>{{next}, {next}};
  };
  const std::size_t before = tape.size();
  ScanOptions along_rows;
  along_rows.axis = 0;
  const Var sums = scan(step, {x}, {zeros(tape, {2})}, along_rows).outputs[0];
  static_cast<void>(grad(sum(sums) + sum(inside), {x}));
  int bodies = 0;
  for (std::size_t i = before; i < tape.size(); ++i) {
    if (!tape.node(i).body) continue;
    CHECK(tape.node(i).body->default_dtype() == Dtype::float64);
    ++bodies;
  }
  CHECK(bodies >= 3);
}

TEST_CASE("ops that a player expands have the tape's default dtype") {
  Tape tape = in_float64();
  const Var hits = one_hot(iota(tape, {2}), 2);
  Player player(tape, {hits, logsumexp(iota(tape, {3}))});
  player.play();
  CHECK(player.view(hits).dtype() == Dtype::float64);
}
