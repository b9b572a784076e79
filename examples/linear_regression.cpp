// Fits y = x w + b by gradient descent, without a Step: records once, differentiates once, and plays many times.
#include <iostream>
#include <xtape/xtape.hpp>
using namespace xtape;

int main() try {
  Tape tape;
  const xt::xarray<float> slope = {1.5F, -2.0F, 0.5F};
  const Array points = evaluate(randn(tape, {256, 3}));
  const Array labels = evaluate(matmul(tape.constant(points), tape.constant(slope)) + 0.25 + 0.01 * randn(tape, {256}));

  // The weights are in a store outside the tape. The player reads them at every play.
  Store store;
  Array weight = store.add("weight", Array(Dtype::float32, {3}));
  Array bias = store.add("bias", Array(Dtype::float32, {}));

  const Var x = tape.input("x", {256, 3}), y = tape.input("y", {256});
  const Var w = tape.parameter(store, "weight"), b = tape.parameter(store, "bias");
  const Var loss = mean(square(matmul(x, w) + b - y));
  const Var dw = grad(loss, w), db = grad(loss, b);  // more nodes on the same tape

  Player player(tape, {loss, dw, db});
  for (int i = 0; i <= 200; ++i) {
    player.play({{x, points}, {y, labels}});
    weight.tensor<float>() -= 0.1F * player.tensor<float>(dw);
    bias.tensor<float>() -= 0.1F * player.tensor<float>(db);
    if (i % 50 == 0) std::cout << "step " << i << ": loss " << player.scalar(loss) << '\n';
  }
  std::cout << "weight " << weight(0) << ' ' << weight(1) << ' ' << weight(2) << ", bias " << bias() << '\n';
} catch (const Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
