#include "play.hpp"
#include "xtape/grad.hpp"

using namespace xtape;

TEST_CASE("op stop_gradient: the value passes, the gradient does not") {
  Tape tape;
  const Var x = tape.parameter("x", xt::xarray<float>{2, 3});
  const Var y = x * stop_gradient(x);
  CHECK(fast(y).to<float>() == xt::xarray<float>{4, 9});
  CHECK(fast(grad(sum(y), {x})[0]).to<float>() == xt::xarray<float>{2, 3});
  CHECK(fast(grad(sum(stop_gradient(x)), {x})[0]).to<float>() == xt::xarray<float>{0, 0});
}

TEST_CASE("op cache: its argument in training and evaluation, a marked identity when predicting") {
  for (Mode mode : {Mode::train, Mode::eval, Mode::predict}) {
    Tape tape(mode);
    const Var x = tape.parameter("x", listed<float>({2, 3}));
    const Var y = cache(x, 0);
    CHECK((y.id() == x.id()) == (mode != Mode::predict));
    CHECK(fast(y * 2).to<float>() == listed<float>({4, 6}));
    CHECK(fast(grad(sum(y * y), {x})[0]).to<float>() == listed<float>({4, 6}));
    CHECK_THROWS_AS(cache(x, 2), ShapeError);
  }
  const Op& row = builtin_ops().at("cache");
  check_gradients(
      [&](const Vars& x) {
        return record_call(x[0].tape(), row, {square(x[0])}, {{"axis", std::int64_t{0}}});
      },
      {listed({1.0, -2.0})});
}
