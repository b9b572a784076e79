// An external program: fits y = 2 x + 1 with the installed library and reports the result. It may be compiled with
// other xtensor settings than the library, which sees its arrays as views.
#include <cmath>
#include <cstdio>
#include <xtape/xtape.hpp>

int main() {
  xtape::Tape tape;
  const xtape::Var x = tape.input("x", {8, 1});
  const xtape::Var y = tape.input("y", {8, 1});
  xtape::Store store;
  xtape::Array weight = store.add("weight", xtape::Array(xt::xarray<float>(xt::zeros<float>({1, 1}))));
  xtape::Array bias = store.add("bias", xtape::Array(xt::xarray<float>(xt::zeros<float>({1}))));
  const xtape::Var w = tape.parameter(store, "weight");
  const xtape::Var b = tape.parameter(store, "bias");
  const xtape::Var loss = xtape::mean(xtape::square(xtape::einsum("bi,io->bo", x, w) + b - y));
  const xtape::Vars gradients = xtape::grad(loss, {w, b});

  xt::xarray<float> inputs = xt::zeros<float>({8, 1});
  xt::xarray<float> labels = xt::zeros<float>({8, 1});
  for (int i = 0; i < 8; ++i) {
    inputs(i, 0) = static_cast<float>(i) / 4 - 1;
    labels(i, 0) = 2 * inputs(i, 0) + 1;
  }
  xtape::Player player(tape, {loss, gradients[0], gradients[1]});
  for (int step = 0; step < 300; ++step) {
    player.play({{x, inputs}, {y, labels}});
    const xt::xarray<float> dw = player.value<float>(gradients[0]);
    weight.as<float>()[0] -= 0.3F * dw(0, 0);
    bias.as<float>()[0] -= 0.3F * static_cast<float>(player.scalar(gradients[1]));
  }
  const bool right = std::fabs(weight.as<float>()[0] - 2) < 1e-3F && std::fabs(bias.as<float>()[0] - 1) < 1e-3F;
  const xt::xarray<double> points = {{0.5, -1.0}, {2.0, 0.1}};
  const auto cubes = [](const xtape::Vars& vars) { return xtape::Vars{vars[0] * vars[0] * vars[0]}; };
  const bool checked = xtape::gradcheck(cubes, {points}).passed;
  std::printf("weight %.4f, bias %.4f, loss %.2g\n", static_cast<double>(weight.as<float>()[0]),
              static_cast<double>(bias.as<float>()[0]), player.scalar(loss));
  return right && checked ? 0 : 1;
}
